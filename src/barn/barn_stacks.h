/*
 * Purpose: the two stacks of a barn: whole sheaves in and out. Inlined, for the gets and puts of
 * barn.c. The other files of this folder call the functions of barn_stacks.c, which are made of
 * these.
 * Place: below the rest of the barn; calls nothing but bookings (barn_budget.c).
 * Invariants: barn/barn.h.
 * Concurrency: lock-free. Limits are compared before the push, so each thread inside may pass them
 *  by one sheaf (I2).
 */
#ifndef STOOK_BARN_STACKS_H
#define STOOK_BARN_STACKS_H

#include "barn/barn_inside.h"

/*
 * A cache that only frees fills its barn first, and then flushes sheaf after sheaf. What the barn
 * got first stays: a few objects each of very many slabs, of which none can be given back. So a
 * barn takes no more once four times what it may keep was put while nothing was asked. Each further
 * sheaf then takes one of the barn's along to the slabs (stook_barn_put). The next ask ends it.
 */
/* Stores only what changes: other CPUs use the line, too. */
STOOK_INLINE void stook_barn_note_asked(struct stook_barn *barn)
{
        if (__atomic_load_n(&barn->unasked, __ATOMIC_RELAXED))
                __atomic_store_n(&barn->unasked, 0, __ATOMIC_RELAXED);
        if (__atomic_load_n(&barn->returned, __ATOMIC_RELAXED))
                __atomic_store_n(&barn->returned, 0, __ATOMIC_RELAXED);
        if (!__atomic_load_n(&barn->asked, __ATOMIC_RELAXED))
                __atomic_store_n(&barn->asked, 1, __ATOMIC_RELAXED);
}

STOOK_INLINE bool stook_stacks_have_room(struct stook_barns *barns, unsigned node)
{
        return stook_tagged_stack_count_racy(&barns->node[node].full) <
               __atomic_load_n(&barns->full_limit, __ATOMIC_RELAXED);
}

STOOK_INLINE bool stook_stacks_are_unasked(const struct stook_barns *barns, uint32_t puts)
{
        return puts > STOOK_BARN_UNASKED * __atomic_load_n(&barns->full_limit, __ATOMIC_RELAXED);
}

/*
 * Counts a put of a full sheaf, racily: one that is not counted is one of many. True: so many came
 * since the last ask that the barn keeps none.
 */
STOOK_INLINE bool stook_stacks_count_put(struct stook_barns *barns, unsigned node)
{
        uint32_t *unasked = &barns->node[node].unasked;
        uint32_t puts = __atomic_load_n(unasked, __ATOMIC_RELAXED);

        if (!stook_stacks_are_unasked(barns, puts))
                __atomic_store_n(unasked, ++puts, __ATOMIC_RELAXED);
        return stook_stacks_are_unasked(barns, puts);
}

STOOK_INLINE bool stook_stacks_push_full(struct stook_barns *barns, unsigned node,
                                         struct stook_sheaf *full)
{
        if (STOOK_UNLIKELY(stook_stacks_count_put(barns, node)) ||
            !stook_stacks_have_room(barns, node) ||
            !stook_barn_book(node, stook_barn_bytes(barns, full))) {
                stook_count(barns->below->counters, STOOK_STAT_barn_put_fail, 1);
                return false;
        }
        stook_tagged_stack_push(&barns->node[node].full, &full->owned.link);
        stook_count(barns->below->counters, STOOK_STAT_barn_put, 1);
        return true;
}

STOOK_INLINE bool stook_stacks_push_empty(struct stook_barns *barns, unsigned node,
                                          struct stook_sheaf *empty)
{
        struct stook_barn *barn = barns->node + node;

        if (STOOK_UNLIKELY(stook_sheaf_capacity(empty) != stook_barns_capacity(barns)) ||
            stook_tagged_stack_count_racy(&barn->empty) >=
                    __atomic_load_n(&barns->empty_limit, __ATOMIC_RELAXED))
                return false;
        stook_tagged_stack_push(&barn->empty, &empty->owned.link);
        return true;
}

STOOK_INLINE struct stook_sheaf *stook_stacks_pop(struct stook_tagged_stack *stack)
{
        struct stook_link *link = stook_tagged_stack_pop(stack);

        return link ? stook_container_of(link, struct stook_sheaf, owned.link) : NULL;
}

STOOK_INLINE struct stook_sheaf *stook_stacks_pop_full(struct stook_barns *barns, unsigned node)
{
        struct stook_barn *barn = barns->node + node;
        struct stook_sheaf *full = stook_stacks_pop(&barn->full);
        uint32_t left;

        if (!full)
                return NULL;
        stook_barn_unbook(node, stook_barn_bytes(barns, full));
        left = stook_tagged_stack_count_racy(&barn->full);
        if (left < __atomic_load_n(&barn->low, __ATOMIC_RELAXED))
                __atomic_store_n(&barn->low, left, __ATOMIC_RELAXED);
        return full;
}

STOOK_INLINE struct stook_sheaf *stook_stacks_pop_empty(struct stook_barns *barns, unsigned node)
{
        struct stook_sheaf *empty;

        while ((empty = stook_stacks_pop(&barns->node[node].empty)) &&
               STOOK_UNLIKELY(stook_sheaf_capacity(empty) != stook_barns_capacity(barns)))
                stook_sheaf_delete(empty, barns->below->counters);
        return empty;
}

/* NULL: none. That is an ask, too: a barn that is asked in vain is in use. */
STOOK_INLINE struct stook_sheaf *stook_stacks_ask_full(struct stook_barns *barns, unsigned node)
{
        struct stook_sheaf *full = stook_stacks_pop_full(barns, node);

        stook_barn_note_asked(barns->node + node);
        stook_count(barns->below->counters, full ? STOOK_STAT_barn_get : STOOK_STAT_barn_get_fail,
                    1);
        return full;
}

#endif
