/*
 * Purpose: a cache's counters of slow calls, named as the kernel's (<stook/stats.h>).
 * alloc_fastpath and free_fastpath hold only what was folded from sheaf memory that left the cache;
 * the rest is in the sheaves' words (barn/sheaf.h).
 * The few counters that a cache's first objects change, and its idle sheaves, lie in the cache. The
 * others lie in memory that is not touched until one of them changes (struct stook_seldom): a
 * program may have many caches of which it uses little.
 * Concurrency: relaxed atomic adds by any thread; sums are exact when quiescent.
 */
#ifndef STOOK_COUNTER_H
#define STOOK_COUNTER_H

#include <stook/stats.h>
#include "base/compiler.h"
#include "base/lock.h"

enum stook_counter {
#define STOOK_COUNTER_ENUM(name) STOOK_STAT_##name,
        STOOK_COUNTERS(STOOK_COUNTER_ENUM)
#undef STOOK_COUNTER_ENUM
        STOOK_STAT_COUNT
};

/* A bit for each counter that lies in the cache. */
#define STOOK_COUNTERS_NEAR \
        (1u << STOOK_STAT_alloc_fastpath | 1u << STOOK_STAT_alloc_slowpath | \
         1u << STOOK_STAT_alloc_slab | 1u << STOOK_STAT_sheaf_flush | \
         1u << STOOK_STAT_sheaf_refill | 1u << STOOK_STAT_sheaf_alloc | \
         1u << STOOK_STAT_sheaf_free | 1u << STOOK_STAT_barn_get_fail)
#define STOOK_COUNTERS_NEAR_COUNT 8
#define STOOK_COUNTERS_FAR_COUNT  (STOOK_STAT_COUNT - STOOK_COUNTERS_NEAR_COUNT)

_Static_assert(__builtin_popcount(STOOK_COUNTERS_NEAR) == STOOK_COUNTERS_NEAR_COUNT &&
               STOOK_STAT_COUNT <= 32, "counters");

/* Both arrays in the order of the enum. Use stook_counter_at. */
struct stook_counters {
        uint64_t  near[STOOK_COUNTERS_NEAR_COUNT];
        uint64_t *far;                  /* const; [STOOK_COUNTERS_FAR_COUNT] */
};

STOOK_INLINE uint64_t *stook_counter_at(const struct stook_counters *c, enum stook_counter which)
{
        unsigned near = (unsigned)__builtin_popcount(STOOK_COUNTERS_NEAR & ((1u << which) - 1));

        return STOOK_COUNTERS_NEAR >> which & 1 ? (uint64_t *)&c->near[near]
                                                : &c->far[which - near];
}

STOOK_INLINE void stook_count(struct stook_counters *c, enum stook_counter which, uint64_t by)
{
        __atomic_fetch_add(stook_counter_at(c, which), by, __ATOMIC_RELAXED);
}

STOOK_INLINE uint64_t stook_counted(const struct stook_counters *c, enum stook_counter which)
{
        return __atomic_load_n(stook_counter_at(c, which), __ATOMIC_RELAXED);
}

/*
 * The slow calls' tick for the publisher of the heap's figures (inspect/stats_page.c): slow calls
 * of slot, cache and malloc make it with no lock held. The function to call is handed in at start,
 * so no layer includes one above it. Without STOOK_STATS a tick is one load and a branch that is
 * never taken. Any thread, any instruction. The hook is written at start and at the end of the
 * process, and is a function or NULL at all times; a call that began before the end may still run
 * after it.
 */
/* Atomic, relaxed: what it reads was there before it was set. */
extern void (*stook_stats_page_hook)(void);

STOOK_INLINE void stook_stats_page_tick(void)
{
        void (*hook)(void) = __atomic_load_n(&stook_stats_page_hook, __ATOMIC_RELAXED);

        if (STOOK_UNLIKELY(hook != NULL) && !stook_lock_may_not_wait())
                hook();
}

#endif
