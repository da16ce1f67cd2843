/*
 * Purpose: what the files of src/barn call of each other. Other layers include barn/barn.h.
 * Place: the stacks, whole sheaves in and out, are below the rest; barn.c, with the two verbs, is
 * above it.
 * Concurrency: the stacks are lock-free. Limits are compared before the push, so each thread inside
 *  may pass them by one sheaf (barn.h I2).
 */
#ifndef STOOK_BARN_INSIDE_H
#define STOOK_BARN_INSIDE_H

#include "barn/barn.h"
#include "base/inject.h"
#include "base/probe.h"

/* Bytes that a full sheaf keeps from its slabs. */
STOOK_INLINE uint64_t stook_barn_bytes(const struct stook_barns *barns,
                                       const struct stook_sheaf *sheaf)
{
        return (uint64_t)stook_sheaf_capacity(sheaf) * barns->slabs->stride;
}

/* A cache without sheaves, until its objects have swung between the slabs and its users. */
STOOK_INLINE bool stook_barns_begin_with_none(const struct stook_barns *barns)
{
        return !__atomic_load_n(&barns->growth.at_least, __ATOMIC_RELAXED);
}

/* False: a tuner, or the user, set the capacity. Sheaves have it then. */
STOOK_INLINE bool stook_barns_grow(const struct stook_barns *barns)
{
        return __atomic_load_n(&barns->growth.at_least, __ATOMIC_RELAXED) != STOOK_BARN_FIXED;
}

/* ---- barn_refill.c ---- */

/*
 * A sheaf with @most objects from the slabs, or with as many as it holds: @empty, or a new one if
 * that is NULL. Return NULL: no memory. What was got is back in the slabs then, and @empty is still
 * the caller's. Counts sheaf_refill.
 */
struct stook_sheaf *stook_barn_refill(struct stook_barns *barns, unsigned node,
                                      struct stook_sheaf *empty, unsigned most);
/*
 * All objects of a sheaf go into the slabs; nothing else is done. Counts sheaf_flush. Inlined:
 * below a free's deepest call the stack has no room for one more frame. A flush, and a put, take
 * stook_barn_step after it.
 */
STOOK_INLINE void stook_barn_drain(struct stook_barns *barns, struct stook_sheaf *sheaf)
{
        unsigned size = stook_sheaf_size(sheaf);

        if (!size)
                return;
        stook_slab_drain(barns->slabs, size, sheaf->objects);
        stook_sheaf_set_size(sheaf, 0);
        stook_count(barns->slabs->counters, STOOK_STAT_sheaf_flush, size);
        STOOK_PROBE2(sheaf_flush, barns->cache_index, size);
}
/*
 * After every refill, flush and draining put: the page layer's step, and the statistics' tick.
 * Nothing of the barn.
 */
void stook_barn_step(void);
/* Drains and deletes one full sheaf of a barn. False: there was none. */
bool stook_barn_evict(struct stook_barns *barns, unsigned node);

/* ---- barn_room.c ---- */

/* What has grown shrinks: no full sheaf was asked for since the last reap. */
void stook_barns_shrink(struct stook_barns *barns);
/*
 * Books room for @bytes more in full sheaves of @node; stook_barn_unbook gives it back. False: no
 * room.
 */
bool stook_barn_book(unsigned node, uint64_t bytes);
void stook_barn_unbook(unsigned node, uint64_t bytes);
/* From here on they may keep at least @bytes more, within that. 0: no more than before bursts. */
void stook_barn_expect_burst(uint64_t bytes);

/* ---- the two stacks of a node: whole sheaves in and out ---- */

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

/* Room for a full sheaf, seen racily: a hint before a sheaf is filled. */
STOOK_INLINE bool stook_barn_has_room(struct stook_barns *barns, unsigned node)
{
        return stook_tagged_stack_count_racy(&barns->node[node].full) <
               __atomic_load_n(&barns->full_limit, __ATOMIC_RELAXED);
}

/*
 * A cache that only frees fills its barn first, and then flushes sheaf after sheaf. What the barn
 * got first stays: a few objects each of very many slabs, of which none can be given back. So a
 * barn takes no more once STOOK_BARN_UNASKED times what it may keep was put while nothing was
 * asked. Each further sheaf then takes one of the barn's along to the slabs (barn.c: put_below),
 * and the slot's next sheaf is a small one, for the same reason (stook_barn_get_empty). The next
 * ask ends it.
 */
STOOK_INLINE bool stook_barns_are_unasked(const struct stook_barns *barns, uint32_t puts)
{
        return puts > STOOK_BARN_UNASKED * __atomic_load_n(&barns->full_limit, __ATOMIC_RELAXED);
}

/* So many full sheaves came since the last ask that the barn keeps none. */
STOOK_INLINE bool stook_barn_is_unasked(const struct stook_barns *barns, unsigned node)
{
        return stook_barns_are_unasked(barns, __atomic_load_n(&barns->node[node].unasked,
                                                              __ATOMIC_RELAXED));
}

/*
 * Counts a put of a full sheaf, racily: one that is not counted is one of many. True: so many came
 * since the last ask that the barn keeps none.
 */
STOOK_INLINE bool stook_barn_count_put(struct stook_barns *barns, unsigned node)
{
        uint32_t *unasked = &barns->node[node].unasked;
        uint32_t puts = __atomic_load_n(unasked, __ATOMIC_RELAXED);

        if (!stook_barns_are_unasked(barns, puts))
                __atomic_store_n(unasked, ++puts, __ATOMIC_RELAXED);
        return stook_barns_are_unasked(barns, puts);
}

/* False: at its limit; the sheaf is still the caller's. Counts barn_put(_fail). */
STOOK_INLINE bool stook_barn_push_full(struct stook_barns *barns, unsigned node,
                                       struct stook_sheaf *full)
{
        if (STOOK_UNLIKELY(stook_barn_count_put(barns, node)) ||
            !stook_barn_has_room(barns, node) ||
            !stook_barn_book(node, stook_barn_bytes(barns, full))) {
                stook_count(barns->slabs->counters, STOOK_STAT_barn_put_fail, 1);
                return false;
        }
        STOOK_INJECT_CALL(putting, barns);
        stook_tagged_stack_push(&barns->node[node].full, &full->owned.link);
        stook_count(barns->slabs->counters, STOOK_STAT_barn_put, 1);
        return true;
}

/* False: at its limit, or the sheaf is not of the cache's capacity. */
STOOK_INLINE bool stook_barn_push_empty(struct stook_barns *barns, unsigned node,
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

STOOK_INLINE struct stook_sheaf *stook_stack_pop_sheaf(struct stook_tagged_stack *stack)
{
        struct stook_link *link = stook_tagged_stack_pop(stack);

        return link ? stook_container_of(link, struct stook_sheaf, owned.link) : NULL;
}

/* NULL: none. */
STOOK_INLINE struct stook_sheaf *stook_barn_pop_full(struct stook_barns *barns, unsigned node)
{
        struct stook_barn *barn = barns->node + node;
        struct stook_sheaf *full = stook_stack_pop_sheaf(&barn->full);
        uint32_t left;

        if (!full)
                return NULL;
        stook_barn_unbook(node, stook_barn_bytes(barns, full));
        left = stook_tagged_stack_count_racy(&barn->full);
        if (left < __atomic_load_n(&barn->low, __ATOMIC_RELAXED))
                __atomic_store_n(&barn->low, left, __ATOMIC_RELAXED);
        return full;
}

STOOK_INLINE struct stook_sheaf *stook_barn_pop_empty(struct stook_barns *barns, unsigned node)
{
        struct stook_sheaf *empty;

        while ((empty = stook_stack_pop_sheaf(&barns->node[node].empty)) &&
               STOOK_UNLIKELY(stook_sheaf_capacity(empty) != stook_barns_capacity(barns)))
                stook_sheaf_delete(empty, barns->slabs->counters);
        return empty;
}

/*
 * stook_barn_pop_full() for a caller that wants objects. NULL: none. That is an ask, too: a barn
 * that is asked in vain is in use. Counts barn_get(_fail).
 */
STOOK_INLINE struct stook_sheaf *stook_barn_ask_full(struct stook_barns *barns, unsigned node)
{
        struct stook_sheaf *full = stook_barn_pop_full(barns, node);

        stook_barn_note_asked(barns->node + node);
        stook_count(barns->slabs->counters, full ? STOOK_STAT_barn_get : STOOK_STAT_barn_get_fail,
                    1);
        return full;
}

#endif
