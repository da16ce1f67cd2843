/*
 * bench/counted/count_locks.h - included before the sources of slab and pages for
 * bench/counted/contention.cc
 *
 * Purpose: count how often a layer asks for a lock, how often another thread has it then, and how
 * often the layer is refused and goes the way without it. In slab the locks are those of the slab
 * lists, in pages those of the bins.
 * Place: STOOK_BENCH_LOCKS names the counters of the layer that is compiled.
 */
#ifndef BENCH_COUNT_LOCKS_H
#define BENCH_COUNT_LOCKS_H

#include "base/lock.h"

struct stook_bench_locks {
        uint64_t asked, busy, refused;  /* atomic */
};
extern struct stook_bench_locks STOOK_BENCH_LOCKS;

/* @take: stook_lock_take or stook_lock_try. */
STOOK_INLINE bool stook_bench_lock(struct stook_lock *lock, bool (*take)(struct stook_lock *))
{
        bool busy = __atomic_load_n(&lock->word, __ATOMIC_RELAXED) != 0, got = take(lock);

        __atomic_fetch_add(&STOOK_BENCH_LOCKS.asked, 1, __ATOMIC_RELAXED);
        if (busy)
                __atomic_fetch_add(&STOOK_BENCH_LOCKS.busy, 1, __ATOMIC_RELAXED);
        if (!got)
                __atomic_fetch_add(&STOOK_BENCH_LOCKS.refused, 1, __ATOMIC_RELAXED);
        return got;
}

#define stook_lock_take(lock) stook_bench_lock(lock, stook_lock_take)
#define stook_lock_try(lock)  stook_bench_lock(lock, stook_lock_try)

#endif
