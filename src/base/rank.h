/*
 * Purpose: check the order of locks in builds for debugging (Meson option lock_ranks). Each lock
 * has a rank. A take that waits checks it against the ranks that this thread holds, and ends the
 * process if one of those is not lower.
 *
 * The order (docs/CONCURRENCY.md, Locks): the two mutexes of the library's own RCU, the registry's,
 * that of evacuations, then one struct stook_lock. Each struct stook_lock has the same level: its
 * holder waits for no lock (base/lock.h I1).
 * Tries are exempt: a caller that does not wait cannot deadlock. What was had by a try counts as
 * held.
 *
 * Place: called by base/lock.c and base/mutex.c. Without the option all of this is nothing.
 * Concurrency: the ranks are this thread's own. A handler leaves them as it found them. After a
 *  jump out of a holder, stook_lock_heal forgets the ranks of locks, and the unlock after
 *  stook_mutex_inherit that of a mutex. A rank that is let go twice counts as let go once.
 */
#ifndef STOOK_RANK_H
#define STOOK_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"

/* A thread that waits for a rank holds none of the same level, nor of a later one. */
enum stook_rank {
        STOOK_RANK_LOCK,                /* a struct stook_lock that says no more: the last level */
        STOOK_RANK_SERVING,             /* first level: epoch/epoch.c */
        STOOK_RANK_CALLING,             /* second level: epoch/epoch.c */
        STOOK_RANK_REGISTRY,            /* third level: cache/cache_registry.c */
        STOOK_RANK_EVACUATE,            /* fourth level: evacuate/evacuate.c */
        STOOK_RANK_GROUPS,              /* these are of the last level, too */
        STOOK_RANK_REGIONS,
        STOOK_RANK_PARTIAL_LIST,
        STOOK_RANK_BINS,
        STOOK_RANKS
};

#ifndef STOOK_LOCK_RANKS
#define STOOK_LOCK_RANKS 0
#endif

#if STOOK_LOCK_RANKS

/* The caller is about to wait for a lock of this rank. */
void stook_rank_check(enum stook_rank wanted);
/* The caller got one; the caller lets one go. */
void stook_rank_hold(enum stook_rank rank);
void stook_rank_let_go(enum stook_rank rank);
/* This thread holds no struct stook_lock any more. */
void stook_rank_hold_no_lock(void);

/*
 * What ends the process after a violation; it gets both names. Set once at start; before, a trap.
 */
void stook_rank_set_report(void (*report)(const char *held, const char *wanted));

#else

STOOK_INLINE void stook_rank_check(enum stook_rank wanted) { (void)wanted; }
STOOK_INLINE void stook_rank_hold(enum stook_rank rank) { (void)rank; }
STOOK_INLINE void stook_rank_let_go(enum stook_rank rank) { (void)rank; }
STOOK_INLINE void stook_rank_hold_no_lock(void) { }

#endif
#endif
