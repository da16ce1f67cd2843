/*
 * Purpose: what the miss paths of single objects (slot_miss.c) and of many (slot_bulk.c) share: a
 * look at the slot's pair, the ways to make main usable again (slot_replace.c), and the bound on
 * how often they try.
 * Place: slot layer only.
 */
#ifndef STOOK_SLOT_REPLACE_H
#define STOOK_SLOT_REPLACE_H

#include "base/inject.h"
#include "section/section_precharge.h"
#include "slot/slot_node.h"

/* stook_slot_ops(), without a call where the answer is the usual one: a miss asks several times. */
STOOK_INLINE const struct stook_section_ops *stook_slot_ops_inlined(void)
{
        uint32_t ready = stook_self->ready;

        return STOOK_LIKELY(ready && *stook_section_index(stook_self) < ready)
                ? &stook_section_rseq : stook_slot_ops();
}

/* ---- the pair ---- */

STOOK_INLINE struct stook_sheaf *stook_main_of(struct stook_pair pair)
{
        return (struct stook_sheaf *)pair.lo;
}

STOOK_INLINE struct stook_sheaf *stook_spare_of(struct stook_pair pair)
{
        return (struct stook_sheaf *)pair.hi;
}

STOOK_INLINE struct stook_pair stook_pair_of(const struct stook_sheaf *main,
                                             const struct stook_sheaf *spare)
{
        return (struct stook_pair){ .lo = (uintptr_t)main, .hi = (uintptr_t)spare };
}

STOOK_INLINE struct stook_pair stook_slot_look(struct stook_front *front)
{
        return stook_slot_ops_inlined()->look(front->offset);
}

/* Of the cache's configuration: what sheaves that are got now may be installed under. */
STOOK_INLINE uint32_t stook_slot_generation(struct stook_front *front)
{
        return __atomic_load_n(&front->config, __ATOMIC_ACQUIRE);
}

/* ---- a sheaf that becomes main ---- */

/*
 * As a rule another CPU wrote the lines of a sheaf that is about to become main. Prefetched, they
 * all come while the install is under way. Otherwise they would come one after the other, as
 * objects are taken or put. STOOK_FETCH_BYTES is a sheaf of 128 objects; in a longer one the CPU
 * has seen the direction by then.
 */
#define STOOK_FETCH_BYTES ((size_t)1056)

STOOK_INLINE void stook_sheaf_fetch_top(const struct stook_sheaf *full)
{
        const char *line = (const char *)(full->objects + stook_sheaf_size(full)) - 1;
        const char *end = (const char *)full;

        if (line > end + STOOK_FETCH_BYTES)
                end = line - STOOK_FETCH_BYTES;
        __builtin_prefetch(full, 1);
        for (; line > end; line -= STOOK_CACHELINE)
                __builtin_prefetch(line);
}

STOOK_INLINE void stook_sheaf_fetch_bottom(const struct stook_sheaf *empty)
{
        const char *end = (const char *)(empty->objects + stook_sheaf_capacity(empty));
        const char *line = (const char *)empty;

        if (line + STOOK_FETCH_BYTES < end)
                end = line + STOOK_FETCH_BYTES;
        for (; line < end; line += STOOK_CACHELINE)
                __builtin_prefetch(line, 1);
}

/* ---- how often a miss path tries ---- */

/* Other threads may empty, or fill, what was installed, but hardly four times. */
#define STOOK_MISSES_MAX 4

struct stook_patience {
        unsigned aborts, misses;
};

/* False: there were enough of them. */
STOOK_INLINE bool stook_again_after_abort(struct stook_patience *patience)
{
        return ++patience->aborts < stook_slot_ops_inlined()->abort_limit;
}

STOOK_INLINE bool stook_again_after_miss(struct stook_patience *patience)
{
        return ++patience->misses <= STOOK_MISSES_MAX;
}

/* ---- slot_replace.c ---- */

/*
 * Main was seen empty: brings objects, from the spare or the barn; with @refill also from the
 * slabs. False: there are none. True: *@one is an object for the caller, or as it was; then the
 * slot is worth another look. @one NULL: no object is wanted.
 */
bool stook_slot_replace_empty(struct stook_front *front, struct stook_pair seen, bool refill,
                              void **one);
/*
 * Main was seen full: makes room for *@one. False: no room is to be had. True: *@one is NULL, and
 * the slot has the object; or it is as it was, and the slot is worth another look. @one NULL: room
 * for many objects, so a new sheaf is made only where it can be kept.
 */
bool stook_slot_replace_full(struct stook_front *front, struct stook_pair seen, void **one);

/*
 * An empty sheaf for many objects. A new one is made only if the slot or, once it is full, the barn
 * can keep it (@room_in_slot: the slot can). NULL: the slabs take the objects just as well.
 */
struct stook_sheaf *stook_slot_get_empty_for_bulk(struct stook_front *front, bool room_in_slot);
/*
 * Puts @full, a sheaf of stook_slot_get_full, on the slot, if there is a place for it under
 * @generation. Return: the sheaf that is left, which may be @full itself. The caller disposes of
 * it. NULL: none.
 */
struct stook_sheaf *stook_slot_install_full(struct stook_front *front, struct stook_sheaf *full,
                                            uint32_t generation);

/*
 * Main was seen full. If there is no spare, or it is full, too, stook_slot_replace_full will ask
 * the barn: then this takes a step of the idle reaper first. That call does not do it itself, for
 * the depth of the stack.
 */
void stook_slot_reap_before_barn(struct stook_pair seen);

/*
 * A sheaf with objects in it. It is full, but for the first refills of a cache on a slot. They
 * bring less than a full sheaf, at first 8 objects or fewer (barn.h, `brought`). @below: the slabs
 * may be asked, too. @first: the slot has no main of the cache, so a new sheaf is small. NULL: none
 * to be had. Inlined for the depth of the stack.
 */
STOOK_INLINE struct stook_sheaf *stook_slot_get_full(struct stook_front *front, bool below,
                                                     bool first)
{
        unsigned node = stook_slot_node();      /* first, for the depth of the stack */
        struct stook_slot_head *own = below ? stook_slot_ops_inlined()->own() : NULL;
        struct stook_barn_want want = { .kind = STOOK_WANT_FULL };

        if (own)
                want.brought = &((struct stook_line *)((char *)own + front->offset))->brought;
        if (!STOOK_INJECT_EVERY(get_fail))
                want.from |= STOOK_FROM_BARN;
        if (below && !STOOK_INJECT_EVERY(refill_fail))
                want.from |= first ? STOOK_FROM_BELOW | STOOK_FROM_SMALL : STOOK_FROM_BELOW;
        return stook_barn_get(front->below, node, want);
}

#endif
