/*
 * Purpose: trades of whole sheaves with a node's barn.
 * Place: called by slot's misses and by barn_refill.c; calls nothing below.
 * Invariants: barn/barn.h.
 * Concurrency: lock-free; limits are looked at before the push, so that each thread inside may overshoot by
 *  one. The stacks order a sheaf's content: its owner's stores before the push, the next owner's loads after
 *  the pop (base/tagged_stack.h M1).
 */
#include <errno.h>

#include "barn/barn.h"
#include "os/os.h"
#include "pages/meta.h"
#include "report/report.h"

static struct stook_barns *all_barns;   /* atomic: push-only; M2, with the acquire in stook_barns_first */

struct stook_barns *stook_barns_first(void)
{
        return __atomic_load_n(&all_barns, __ATOMIC_ACQUIRE);
}

int stook_barns_init(struct stook_barns *barns, struct stook_slabs *below, struct stook_counters *counters,
                     unsigned capacity, unsigned full_limit, unsigned empty_limit)
{
        bool listed = barns->node;

        if (!listed) {
                barns->node = stook_meta_bump(stook_os_node_count() * sizeof(struct stook_barn), 0);
                if (!barns->node)
                        return -ENOMEM;
        }
        barns->below = below;
        barns->counters = counters;
        barns->cache_index = barns->line_index = below->cache_index;
        stook_barns_set(barns, capacity, full_limit, empty_limit);
        if (!listed) {
                barns->next = __atomic_load_n(&all_barns, __ATOMIC_RELAXED);
                while (!__atomic_compare_exchange_n(&all_barns, &barns->next, barns, true,
                                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
                        ;
        }
        return 0;
}

static struct stook_sheaf *pop(struct stook_tagged_stack *stack)
{
        struct stook_link *link = stook_tagged_stack_pop(stack);

        return link ? stook_container_of(link, struct stook_sheaf, link) : NULL;
}

/* A store only where it changes something: the line is busy enough. */
static void mark_traded(struct stook_barn *barn)
{
        const uint32_t both = STOOK_BARN_LENT | STOOK_BARN_RESTED;

        if (__atomic_load_n(&barn->traded, __ATOMIC_RELAXED) != both)
                __atomic_store_n(&barn->traded, both, __ATOMIC_RELAXED);
}

bool stook_barn_has_room(struct stook_barns *barns, unsigned node)
{
        return stook_tagged_stack_count_racy(&barns->node[node].full) <
               __atomic_load_n(&barns->full_limit, __ATOMIC_RELAXED);
}

static bool book_full(struct stook_barns *barns, unsigned node, const struct stook_sheaf *full)
{
        return stook_barn_has_room(barns, node) && stook_barn_book(node, stook_barn_bytes(barns, full));
}

struct stook_sheaf *stook_barn_get_full(struct stook_barns *barns, unsigned node)
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

struct stook_sheaf *stook_barn_get_empty(struct stook_barns *barns, unsigned node)
{
        struct stook_sheaf *empty;

        while ((empty = pop(&barns->node[node].empty)) &&
               STOOK_UNLIKELY(stook_sheaf_capacity(empty) != stook_barns_capacity(barns)))
                stook_sheaf_delete(empty, barns->counters);
        return empty;
}

struct stook_sheaf *stook_barn_get_full_or_empty(struct stook_barns *barns, unsigned node)
{
        struct stook_sheaf *full = stook_barn_get_full(barns, node);

        mark_traded(barns->node + node);
        stook_count(barns->counters, full ? STOOK_STAT_barn_get : STOOK_STAT_barn_get_fail, 1);
        return full ? full : stook_barn_get_empty(barns, node);
}

bool stook_barn_put_full(struct stook_barns *barns, unsigned node, struct stook_sheaf *full)
{
        stook_assert(stook_sheaf_full(full), "barn I1");
        if (!book_full(barns, node, full)) {
                stook_count(barns->counters, STOOK_STAT_barn_put_fail, 1);
                return false;
        }
        stook_tagged_stack_push(&barns->node[node].full, &full->link);
        stook_count(barns->counters, STOOK_STAT_barn_put, 1);
        return true;
}

bool stook_barn_put_empty(struct stook_barns *barns, unsigned node, struct stook_sheaf *empty)
{
        struct stook_barn *barn = barns->node + node;

        stook_assert(stook_sheaf_size(empty) == 0, "barn I1");
        if (stook_sheaf_capacity(empty) != stook_barns_capacity(barns) ||
            stook_tagged_stack_count_racy(&barn->empty) >= __atomic_load_n(&barns->empty_limit, __ATOMIC_RELAXED))
                return false;
        stook_tagged_stack_push(&barn->empty, &empty->link);
        return true;
}

struct stook_sheaf *stook_barn_trade_empty(struct stook_barns *barns, unsigned node, struct stook_sheaf *empty)
{
        struct stook_sheaf *full = stook_barn_get_full(barns, node);

        mark_traded(barns->node + node);
        if (!full) {
                stook_count(barns->counters, STOOK_STAT_barn_get_fail, 1);
                return NULL;
        }
        stook_count(barns->counters, STOOK_STAT_barn_get, 1);
        /* The kernel files it whatever the count; then a barn filled by one-way puts would grow for ever. */
        if (empty && !stook_barn_put_empty(barns, node, empty))
                stook_sheaf_delete(empty, barns->counters);
        return full;
}

struct stook_sheaf *stook_barn_trade_full(struct stook_barns *barns, unsigned node, struct stook_sheaf *full)
{
        struct stook_barn *barn = barns->node + node;
        struct stook_sheaf *empty;

        stook_assert(stook_sheaf_full(full), "barn I1");
        mark_traded(barn);
        if (!book_full(barns, node, full)) {
                stook_count(barns->counters, STOOK_STAT_barn_put_fail, 1);
                return NULL;
        }
        empty = stook_barn_get_empty(barns, node);
        if (!empty) {
                stook_barn_unbook(node, stook_barn_bytes(barns, full));
                return NULL;
        }
        stook_tagged_stack_push(&barn->full, &full->link);
        stook_count(barns->counters, STOOK_STAT_barn_put, 1);
        return empty;
}
