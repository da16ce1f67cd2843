/*
 * Purpose: a cache's counters of slow calls, named as the kernel's (<stook/stats.h>).
 * alloc_fastpath and free_fastpath hold only what was folded from sheaf memory that left the cache;
 * the rest is in the sheaves' words (barn/sheaf.h).
 * Concurrency: relaxed atomic adds by any thread; sums are exact when quiescent.
 */
#ifndef STOOK_COUNTER_H
#define STOOK_COUNTER_H

#include <stook/stats.h>
#include "base/compiler.h"

enum stook_counter {
#define STOOK_COUNTER_ENUM(name) STOOK_STAT_##name,
        STOOK_COUNTERS(STOOK_COUNTER_ENUM)
#undef STOOK_COUNTER_ENUM
        STOOK_STAT_COUNT
};

struct stook_counters {
        uint64_t n[STOOK_STAT_COUNT];
};

STOOK_INLINE void stook_count(struct stook_counters *c, enum stook_counter which, uint64_t by)
{
        __atomic_fetch_add(&c->n[which], by, __ATOMIC_RELAXED);
}

STOOK_INLINE uint64_t stook_counted(const struct stook_counters *c, enum stook_counter which)
{
        return __atomic_load_n(&c->n[which], __ATOMIC_RELAXED);
}

#endif
