/*
 * Purpose: the two stacks of a barn: whole sheaves in and out.
 * Place: called by the other files of this folder; calls nothing below.
 * Invariants: barn/barn.h.
 * Concurrency: lock-free. Limits are compared before the push, so each thread inside may pass them
 *  by one sheaf (I2).
 */
#include "barn/barn_inside.h"
#include "report/report.h"

/*
 * A cache that only frees fills its barn first, and then flushes sheaf after sheaf. What the barn
 * got first stays: a few objects each of very many slabs, of which none can be given back. So a
 * barn takes no more once four times what it may keep was put while nothing was asked. Each further
 * sheaf then takes one of the barn's along to the slabs (stook_barn_put). The next ask ends it.
 */
#define UNASKED_TIMES 4                 /* arbitrary: a cache's use swings by less, as a rule */

static struct stook_sheaf *pop(struct stook_tagged_stack *stack)
{
        struct stook_link *link = stook_tagged_stack_pop(stack);

        return link ? stook_container_of(link, struct stook_sheaf, owned.link) : NULL;
}

/* Stores only what changes: other CPUs use the line, too. */
static void note_asked(struct stook_barn *barn)
{
        const uint32_t both = STOOK_BARN_REBALANCE | STOOK_BARN_REAP;

        if (__atomic_load_n(&barn->unasked, __ATOMIC_RELAXED))
                __atomic_store_n(&barn->unasked, 0, __ATOMIC_RELAXED);
        if (__atomic_load_n(&barn->returned, __ATOMIC_RELAXED))
                __atomic_store_n(&barn->returned, 0, __ATOMIC_RELAXED);
        if (__atomic_load_n(&barn->asked, __ATOMIC_RELAXED) != both)
                __atomic_store_n(&barn->asked, both, __ATOMIC_RELAXED);
}

bool stook_barn_has_room(struct stook_barns *barns, unsigned node)
{
        return stook_tagged_stack_count_racy(&barns->node[node].full) <
               __atomic_load_n(&barns->full_limit, __ATOMIC_RELAXED);
}

bool stook_barn_is_unasked(struct stook_barns *barns, unsigned node)
{
        return __atomic_load_n(&barns->node[node].unasked, __ATOMIC_RELAXED) >
               UNASKED_TIMES * __atomic_load_n(&barns->full_limit, __ATOMIC_RELAXED);
}

/* Racily: a sheaf that is not counted is one of many. */
static void count_unasked(struct stook_barns *barns, unsigned node)
{
        uint32_t *unasked = &barns->node[node].unasked;

        if (!stook_barn_is_unasked(barns, node))
                __atomic_store_n(unasked, __atomic_load_n(unasked, __ATOMIC_RELAXED) + 1,
                                 __ATOMIC_RELAXED);
}

bool stook_barn_push_full(struct stook_barns *barns, unsigned node, struct stook_sheaf *full)
{
        stook_assert(stook_sheaf_full(full), "barn I1");
        count_unasked(barns, node);
        if (stook_barn_is_unasked(barns, node) || !stook_barn_has_room(barns, node) ||
            !stook_barn_book(node, stook_barn_bytes(barns, full))) {
                stook_count(barns->below->counters, STOOK_STAT_barn_put_fail, 1);
                return false;
        }
        stook_tagged_stack_push(&barns->node[node].full, &full->owned.link);
        stook_count(barns->below->counters, STOOK_STAT_barn_put, 1);
        return true;
}

bool stook_barn_push_empty(struct stook_barns *barns, unsigned node, struct stook_sheaf *empty)
{
        struct stook_barn *barn = barns->node + node;

        stook_assert(stook_sheaf_size(empty) == 0, "barn I1");
        if (stook_sheaf_capacity(empty) != stook_barns_capacity(barns) ||
            stook_tagged_stack_count_racy(&barn->empty) >=
                    __atomic_load_n(&barns->empty_limit, __ATOMIC_RELAXED))
                return false;
        stook_tagged_stack_push(&barn->empty, &empty->owned.link);
        return true;
}

struct stook_sheaf *stook_barn_pop_full(struct stook_barns *barns, unsigned node)
{
        struct stook_barn *barn = barns->node + node;
        struct stook_sheaf *full = pop(&barn->full);
        uint32_t left;

        if (!full)
                return NULL;
        stook_barn_unbook(node, stook_barn_bytes(barns, full));
        left = stook_tagged_stack_count_racy(&barn->full);
        if (left < __atomic_load_n(&barn->low, __ATOMIC_RELAXED))
                __atomic_store_n(&barn->low, left, __ATOMIC_RELAXED);
        return full;
}

struct stook_sheaf *stook_barn_pop_empty(struct stook_barns *barns, unsigned node)
{
        struct stook_sheaf *empty;

        while ((empty = pop(&barns->node[node].empty)) &&
               STOOK_UNLIKELY(stook_sheaf_capacity(empty) != stook_barns_capacity(barns)))
                stook_sheaf_delete(empty, barns->below->counters);
        return empty;
}

struct stook_sheaf *stook_barn_ask_full(struct stook_barns *barns, unsigned node)
{
        struct stook_sheaf *full = stook_barn_pop_full(barns, node);

        note_asked(barns->node + node);
        stook_count(barns->below->counters,
                    full ? STOOK_STAT_barn_get : STOOK_STAT_barn_get_fail, 1);
        return full;
}
