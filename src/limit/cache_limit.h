/*
 * Purpose: what a cache asks the program: how many objects of it callers may own at once, the
 * callbacks by which it asks for some back, and memory that the program prepares itself (memory_in
 * of <stook/cache.h>). The slabs get such memory only for a caller that says so
 * (STOOK_FILL_MAY_ASK). Refills of sheaves do not. So the program's functions run in slow calls,
 * with no lock held, and not where the call forbids callbacks.
 * Place: called by watch and prefill (limits), life (reclaim), and through stook_limit_duties by
 *  cache and malloc, where an allocation found too little.
 *
 * A cache with a limit is watched (cache_watch.h): no hot path hands out its objects. A slow call
 * counts each object by a compare-and-swap. A cache without a limit pays nothing. Counted are
 * objects that callers own, and all objects in lent sheaves. Objects in other sheaves, in barns and
 * in slabs are not.
 *
 * Invariants:
 *  L1 `owned` is at most the limit that was in force when it last grew. It grows before an object
 *     is taken, and shrinks after it was given back.
 *  L2 at most one thread of a process is in a cache's reclaim callback. An allocation that meets
 *     the limit meanwhile, in the callback or in another thread, fails without a call of it.
 *  L3 a malloc that found no memory asks the callbacks of all caches, under the registry mutex. It
 *     only tries that mutex, and holds nothing else. So a malloc in such a callback, or within a
 *     call that holds the registry, asks nothing and fails at once. Nor does a malloc that may be
 *     in a signal handler: the program's lock that a callback wants may be the interrupted code's.
 *     Whether it may be in one is a guess on the safe side (os/thread_end.c), but for handlers
 *     on top of the program's own code whose signal is not blocked, or has no handler any more:
 *     SA_NODEFER, SA_RESETHAND, and what a handler does to its signal by itself.
 * Concurrency: any thread, any instruction. M1: acquire-release of `reclaiming`, for what the
 *  callback keeps. A thread that vanishes (in the child of a fork, or by a jump) leaves its counts
 *  behind. After a jump `reclaiming` stays, and the callback is called no more. In the child of a
 *  fork it stays only if its thread is the one that forked: the callback goes on there.
 */
#ifndef STOOK_CACHE_LIMIT_H
#define STOOK_CACHE_LIMIT_H

#include "cache/cache_slow.h"
#include "cache/cache_watch.h"

STOOK_INLINE bool stook_cache_is_limited(const struct stook_cache *cache)
{
        return cache->watch & STOOK_WATCH_LIMIT;
}

/*
 * Counts @n more objects as a caller's. If they pass the limit, the program is asked for some back
 * first, unless @how forbids callbacks. False: the limit is met, nothing changed.
 */
bool stook_limit_take(struct stook_cache *cache, size_t n, uint64_t how);
void stook_limit_give(struct stook_cache *cache, size_t n);

/* True: the callback gave back some of @wanted objects, so what failed may be tried again. */
STOOK_COLD bool stook_reclaim_from(struct stook_cache *cache, size_t wanted);
/*
 * stook_limit_duties: the same for an allocation that failed, unless @how forbids callbacks. A
 * malloc, and a class of malloc, has no callback of its own: those of all caches are called (L3).
 */
STOOK_COLD bool stook_reclaim(struct stook_cache *or_null, size_t wanted, uint64_t how);
/* In a child of fork: for each cache; and once, for what the whole process has. */
void stook_reclaim_fork_child(struct stook_cache *cache);
void stook_no_memory_fork_child(void);

/*
 * stook_limit_duties: @n objects, or none, with new memory if need be and @how allows that. Return:
 * how many. They are counted as an allocation's.
 */
STOOK_COLD size_t stook_alloc_with_memory(struct stook_cache *cache, size_t n, void **objects,
                                          uint64_t how);
/* The same for a sheaf that is to have @n objects, of @node if @how says THISNODE. */
STOOK_COLD void stook_fill_with_memory(struct stook_cache *cache, struct stook_sheaf *sheaf,
                                       size_t n, unsigned node, uint64_t how);

#endif
