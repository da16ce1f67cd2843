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

#include "barn/barn_stacks.h"
#include "base/inject.h"
#include "section/section_precharge.h"
#include "slot/slot_idle.h"
#include "slot/slot_node.h"

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

/*
 * This thread's slot, racily: the steps below take it to mean "restartable sequences". NULL: the
 * thread is not enrolled, or its slot is not ready; each step asks stook_slot_ops() then.
 */
STOOK_INLINE struct stook_slot_head *stook_slot_at_hand(void)
{
        uint32_t ready = stook_self->ready;
        uint32_t slot = ready ? *stook_section_index(stook_self) : 0;

        return slot < ready ? (struct stook_slot_head *)(stook_sections.slots +
                                                         ((size_t)slot << STOOK_SLOT_SHIFT))
                            : NULL;
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

/* ---- one look ---- */

struct stook_view {
        struct stook_pair pair;
        struct stook_sheaf *main, *spare;
        unsigned size;                  /* main's */
};

STOOK_INLINE struct stook_view stook_slot_look(struct stook_front *front,
                                               struct stook_slot_head *own)
{
        struct stook_pair pair = own ? stook_pair_read(&stook_slot_line(own, front)->pair)
                                     : stook_slot_ops_inlined()->look(front->offset);
        struct stook_sheaf *main = (struct stook_sheaf *)pair.lo;

        return (struct stook_view){ .pair = pair, .main = main,
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

STOOK_INLINE struct stook_pair stook_pair_of(const struct stook_sheaf *main,
                                             const struct stook_sheaf *spare)
{
        return (struct stook_pair){ .lo = (uintptr_t)main, .hi = (uintptr_t)spare };
}

/* Short sheaves that have grown stay: all that a slot keeps of large objects is used. */
STOOK_INLINE bool stook_view_is_outgrown(const struct stook_view *v,
                                         const struct stook_sheaf *comes)
{
        unsigned capacity = stook_sheaf_capacity(comes);

        return capacity >= STOOK_BARN_SHORT && stook_sheaf_capacity(v->main) < capacity;
}

/* Main and the spare have no objects. Return: the sheaf that leaves; NULL: none. */
STOOK_INLINE struct stook_sheaf *stook_place_full(const struct stook_view *v,
                                                  struct stook_sheaf *full,
                                                  struct stook_pair *to)
{
        struct stook_sheaf *main = stook_view_main(v);

        if (v->spare || (main && stook_view_is_outgrown(v, full))) {
                *to = stook_pair_of(full, v->spare);
                return main;
        }
        *to = stook_pair_of(full, main);
        return NULL;
}

/* Main and the spare have no room. Return: as above. */
STOOK_INLINE struct stook_sheaf *stook_place_empty(const struct stook_view *v,
                                                   struct stook_sheaf *empty,
                                                   struct stook_pair *to)
{
        struct stook_sheaf *main = stook_view_main(v);

        if (!main) {
                *to = stook_pair_of(empty, v->spare);
                return NULL;
        }
        if (!v->spare && stook_view_is_outgrown(v, empty)) {
                *to = stook_pair_of(empty, NULL);
                return main;
        }
        *to = stook_pair_of(empty, main);
        return v->spare;
}

/* ---- steps ---- */

/* The pair that was seen becomes @to. False: it has changed, or the section was aborted. */
STOOK_INLINE bool stook_slot_exchange(struct stook_front *front, struct stook_slot_head *own,
                                      const struct stook_view *v, struct stook_pair to,
                                      uint32_t generation)
{
        if (STOOK_INJECT_EVERY(exchange_fail) || STOOK_INJECT_EVERY(abort_storm))
                return false;
        if (own)
                return stook_section_exchange(stook_front_line(front), v->pair, to, v->size,
                                              &front->config, generation);
        return stook_slot_ops_inlined()->exchange(front->offset, v->pair, to, v->size,
                                                  &front->config, generation);
}

/* Main and the spare change places; an outgrown main leaves. False: as above. */
bool stook_slot_swap(struct stook_front *front, struct stook_slot_head *own,
                     const struct stook_view *v, uint32_t generation);

/* What has left the slot goes to the barn; on several nodes to that of its objects. NULL: none. */
STOOK_INLINE void stook_slot_leave(struct stook_front *front, unsigned node,
                                   struct stook_sheaf *left)
{
        if (!left)
                return;
        if (STOOK_UNLIKELY(stook_slots_by_node))
                stook_slot_dispose(front, -1, left);
        else if (stook_sheaf_size(left) || !stook_stacks_push_empty(front->below, node, left))
                stook_barn_put(front->below, node, left);
}

/* A step of the idle reaper: before each ask of the barn. */
STOOK_INLINE void stook_slot_reap_before_barn(struct stook_slot_head *own)
{
        if (own)
                stook_slot_reap_if_due(own);
        else
                stook_slot_reap_idle();
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

/* ---- slot_get.c, slot_put.c: one step, for many objects ---- */

/*
 * Brings objects to main: by a swap, or a sheaf of the barn alone. False: there are none. True: the
 * slot is worth another look.
 */
bool stook_slot_bring_objects(struct stook_front *front);
/* Makes room in main, likewise; a new sheaf is made only where slot or barn can keep it. */
bool stook_slot_bring_room(struct stook_front *front);

#endif
