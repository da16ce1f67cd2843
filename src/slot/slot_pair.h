/*
 * Purpose: what a miss sees on a slot, and what it may put there: the table of the slot's states.
 * The steps of an allocation and a free share it (slot_get.c, slot_put.c).
 * Place: slot layer only; calls section and barn.
 *
 *   an allocation sees                    it does
 *   main has objects                      pop
 *   the spare has objects                 swap, pop
 *   no main                               F becomes main
 *   main empty, no spare                  F becomes main, main the spare
 *   main empty, and the spare             F becomes main, main leaves
 *
 *   a free sees                           it does
 *   main has room                         push
 *   the spare has room                    swap, push
 *   no main                               E becomes main
 *   main full, no spare                   E becomes main, main the spare
 *   main full, and the spare              E becomes main, main the spare, the spare leaves
 *
 * F is a sheaf with objects, E one with room; the barn gives both. Only the caller has them, so it
 * takes its object out of F, or puts it into E, before the sheaf is on the slot.
 * A main that is smaller than the sheaf that comes is no spare: it leaves (outgrown). As a spare it
 * would come back for ever, for a swap looks at no capacity.
 * Where both are full, the spare leaves: its objects were freed before main's. So main, spare and
 * the barn's full sheaves are one stack of objects, and what was freed last is allocated first.
 *
 * Invariants:
 *  I1 each change of the pair is one exchange. It proves the pair as it was seen, main's size, and
 *     the generation of the cache's configuration. It does not prove the spare's size: the owner of
 *     a sheaf that has left looks at it again.
 *  I2 a sheaf that was got under a generation is installed under that one, or not at all; under an
 *     odd one none is installed.
 *  I3 between a look and an exchange a call holds sheaves that it owns alone, and nothing else. So
 *     a handler, a migration, an evacuation or a jump may come at any instruction.
 * Concurrency: any thread, any instruction, handlers on top of any step. The model is
 *  tests/proof/models/slot.pml.
 */
#ifndef STOOK_SLOT_PAIR_H
#define STOOK_SLOT_PAIR_H

#include "base/inject.h"
#include "section/section_precharge.h"
#include "policy/constants.h"
#include "policy/ledger.h"
#include "slot/slot.h"

/* Other threads may empty, or fill, what was installed, but hardly four times. */
#define STOOK_SLOT_TRIES 4

/* ---- the backend ---- */

/* stook_slot_ops(), without a call where the answer is the usual one. */
STOOK_INLINE const struct stook_section_ops *stook_slot_ops_inlined(void)
{
        uint32_t ready = stook_self->ready;

        return STOOK_LIKELY(ready && *stook_section_index(stook_self) < ready)
                ? &stook_section_rseq : stook_slot_ops();
}

/* This thread's slot, racily. NULL: it can have none now. */
STOOK_INLINE struct stook_slot_head *stook_slot_at_hand(void)
{
        uint32_t ready = stook_self->ready;
        uint32_t slot = ready ? *stook_section_index(stook_self) : 0;

        return STOOK_LIKELY(slot < ready)
                ? (struct stook_slot_head *)(stook_sections.slots +
                                             ((size_t)slot << STOOK_SLOT_SHIFT))
                : stook_slot_ops()->own();
}

STOOK_INLINE struct stook_line *stook_slot_line(struct stook_slot_head *own,
                                                const struct stook_front *front)
{
        return (struct stook_line *)((char *)own + front->offset);
}

STOOK_INLINE uintptr_t stook_front_line(const struct stook_front *front)
{
        return (uintptr_t)stook_sections.slots + front->offset;
}

/* ---- slot_tick.c: is a step due on this slot? Each way to the barn asks. ---- */

/*
 * Decides on the cache at hand once in STOOK_TICK_CALLS calls (NULL: none is), and takes a step of
 * a round, and of the page layer; nothing on top of a lock's holder.
 */
void stook_slot_tick_now(struct stook_slot_head *own, struct stook_barns *at_hand);

/* The page layer has counted a take since this slot's last round began. */
STOOK_INLINE bool stook_slot_took(const struct stook_slot_head *own)
{
        return __atomic_load_n(&own->reap_clean_takes, __ATOMIC_RELAXED) !=
                       stook_fresh_clean() ||
               __atomic_load_n(&own->reap_dirty_takes, __ATOMIC_RELAXED) !=
                       stook_fresh_dirty();
}

/*
 * What most calls find: the clock is not asked, no round is under way, and no take begins one. The
 * clock is asked by every STOOK_TICK_CALLS-th call.
 */
STOOK_INLINE void stook_slot_tick(struct stook_slot_head *own, struct stook_barns *at_hand)
{
        uint16_t calls = (uint16_t)(__atomic_load_n(&own->tick_calls, __ATOMIC_RELAXED) + 1);

        __atomic_store_n(&own->tick_calls, calls, __ATOMIC_RELAXED);
        if (STOOK_UNLIKELY(!(calls % STOOK_TICK_CALLS) ||
                           __atomic_load_n(&own->reap_at, __ATOMIC_RELAXED) ||
                           __atomic_load_n(&stook_ledger_halved, __ATOMIC_RELAXED) ||
                           !__atomic_load_n(&own->used, __ATOMIC_RELAXED) ||
                           stook_slot_took(own)))
                stook_slot_tick_now(own, at_hand);
}

/* ---- one look ---- */

struct stook_view {
        struct stook_slot_head *own;    /* the slot; NULL: none */
        struct stook_sheaf *main, *spare;       /* of the cache's line there */
        unsigned size;                  /* main's */
};

STOOK_INLINE struct stook_view stook_slot_look(struct stook_front *front)
{
        struct stook_pair nothing = { .lo = (uintptr_t)&stook_sheaf_zero };
        struct stook_slot_head *own = stook_slot_at_hand();
        struct stook_pair pair = STOOK_LIKELY(own != NULL)
                ? stook_pair_read(&stook_slot_line(own, front)->pair) : nothing;
        struct stook_sheaf *main = (struct stook_sheaf *)pair.lo;

        return (struct stook_view){ .own = own, .main = main,
                                    .spare = (struct stook_sheaf *)pair.hi,
                                    .size = stook_sheaf_size(main) };
}

STOOK_INLINE bool stook_view_is_full(const struct stook_view *v)
{
        return v->size == stook_sheaf_capacity(v->main);
}

/* NULL for the zero-capacity sheaf, which never leaves and is never a spare. */
STOOK_INLINE struct stook_sheaf *stook_view_main(const struct stook_view *v)
{
        return v->main == &stook_sheaf_zero ? NULL : v->main;
}

/* What sheaves that are got now may be installed under. Read before the cache's capacity: I2. */
STOOK_INLINE uint32_t stook_slot_generation(struct stook_front *front)
{
        return __atomic_load_n(&front->config, __ATOMIC_ACQUIRE);
}

/* ---- the table ---- */

/* What main and the spare become, and the sheaf that leaves; NULL: none. */
struct stook_placing {
        struct stook_sheaf *main, *spare, *leaves;
};

/* Short sheaves that have grown stay: all that a slot keeps of large objects is used. */
STOOK_INLINE bool stook_view_is_outgrown(const struct stook_view *v,
                                         const struct stook_sheaf *comes)
{
        unsigned capacity = stook_sheaf_capacity(comes);

        return capacity >= STOOK_BARN_SHORT && stook_sheaf_capacity(v->main) < capacity;
}

/* Main and the spare have no objects. */
STOOK_INLINE struct stook_placing stook_placing_full(const struct stook_view *v,
                                                     struct stook_sheaf *full)
{
        struct stook_sheaf *main = stook_view_main(v);

        if (v->spare || (main && stook_view_is_outgrown(v, full)))
                return (struct stook_placing){ full, v->spare, main };
        return (struct stook_placing){ full, main, NULL };
}

/* Main and the spare have no room. */
STOOK_INLINE struct stook_placing stook_placing_empty(const struct stook_view *v,
                                                      struct stook_sheaf *empty)
{
        struct stook_sheaf *main = stook_view_main(v);

        if (!main)
                return (struct stook_placing){ empty, v->spare, NULL };
        if (!v->spare && stook_view_is_outgrown(v, empty))
                return (struct stook_placing){ empty, NULL, main };
        return (struct stook_placing){ empty, main, v->spare };
}

/* ---- steps ---- */

/* stook_slot_exchange(), in words: for the depth of the stack. */
bool stook_slot_exchange_words(struct stook_front *front, uintptr_t main, uintptr_t spare,
                               uintptr_t to_main, uintptr_t to_spare, unsigned size,
                               uint32_t generation);

/* The pair that was seen becomes @to. False: it has changed, or the section was aborted. */
STOOK_INLINE bool stook_slot_exchange(struct stook_front *front, const struct stook_view *v,
                                      struct stook_placing to, uint32_t generation)
{
        return stook_slot_exchange_words(front, (uintptr_t)v->main, (uintptr_t)v->spare,
                                         (uintptr_t)to.main, (uintptr_t)to.spare, v->size,
                                         generation);
}

/* Main and the spare change places; an outgrown main leaves. False: as above. */
STOOK_INLINE bool stook_slot_swap(struct stook_front *front, const struct stook_view *v,
                                  uint32_t generation)
{
        struct stook_sheaf *main = stook_view_main(v);
        bool outgrown = main && stook_sheaf_capacity(main) < stook_barns_capacity(front->barns);
        struct stook_placing to = { .main = v->spare, .spare = outgrown ? NULL : main };

        if (!stook_slot_exchange(front, v, to, generation))
                return false;
        if (outgrown)
                stook_slot_dispose(front, -1, main);
        return true;
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

/* As the sole owner of a sheaf: @by is what an operation adds to its word, or takes back. */
STOOK_INLINE void stook_sheaf_add(struct stook_sheaf *sheaf, int64_t by)
{
        __atomic_store_n(&sheaf->word, sheaf->word + (uint64_t)by, __ATOMIC_RELAXED);
}

/* ---- slot_get.c, slot_put.c: one step, for many objects ---- */

/*
 * Brings objects to main: by a swap, or a sheaf of the barn alone. False: there are none. True: the
 * slot is worth another look.
 */
bool stook_slot_bring_objects(struct stook_front *front);
/* Makes room in main, likewise; a new sheaf is made only where slot or barn can keep it. */
bool stook_slot_bring_room(struct stook_front *front);

#endif
