/*
 * <stook/stats.h> - counters and sizes of caches
 *
 * Counters bear the kernel's names (/sys/kernel/slab/<cache>/) and meanings. The hot paths keep no counter
 * of their own: the store that commits a pop or push counts it. Values are exact when no other thread is
 * inside a call on the cache, and close otherwise.
 *
 * What holds then, failed calls included:
 *      objects_live   = alloc_fastpath + alloc_slowpath - free_fastpath - free_slowpath - free_rcu_sheaf
 *      objects_cached = sheaf_refill + free_fastpath + free_rcu_sheaf - alloc_fastpath - sheaf_flush
 *      sheaves        = sheaf_alloc - sheaf_free
 *      slabs          = alloc_slab - free_slab
 *      prefilled sheaves on loan = sheaf_prefill_fast + _slow + _oversize - sheaf_return_fast - _slow
 * For that these differ from the kernel's: alloc_slowpath, order_fallback and sheaf_prefill_* count what succeeded;
 * an object taken from a prefilled sheaf counts as alloc_fastpath, and what fills one as sheaf_refill, whatever its size;
 * sheaves made to measure count as sheaf_return_slow when they are returned; free_slab counts every slab given back.
 */
#ifndef STOOK_STATS_H
#define STOOK_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name): each counter, in the kernel's order. */
#define STOOK_COUNTERS(X) \
        X(alloc_fastpath)        /* objects taken from a sheaf, a slot's or a prefilled one */ \
        X(alloc_slowpath)        /* objects asked of the slabs by a user's allocation */ \
        X(free_rcu_sheaf)        /* objects put into a sheaf that waits for readers */ \
        X(free_rcu_sheaf_fail)   /* objects that found no such sheaf */ \
        X(free_fastpath)         /* objects put into a slot's sheaf */ \
        X(free_slowpath)         /* objects a user's free gave straight to a slab */ \
        X(free_add_partial)      /* a free moved a full slab to the partial list */ \
        X(free_remove_partial)   /* a free emptied a slab and took it off the list */ \
        X(alloc_slab)            /* slabs got from the pages */ \
        X(free_slab)             /* slabs given back, by shrink and destroy too */ \
        X(alloc_node_mismatch)   /* a sheaf was no use, for the object had to be of another node */ \
        X(order_fallback)        /* slabs smaller than the cache's, for memory was scarce */ \
        X(cmpxchg_double_fail)   /* a slab's word changed under a compare-and-swap */ \
        X(sheaf_flush)           /* objects moved from sheaves to slabs */ \
        X(sheaf_refill)          /* objects moved from slabs to sheaves */ \
        X(sheaf_alloc)           /* sheaves made for the cache */ \
        X(sheaf_free)            /* sheaves whose memory went back to the pool */ \
        X(barn_get)              /* full sheaves got from a barn */ \
        X(barn_get_fail)         /* there was none */ \
        X(barn_put)              /* full sheaves put into a barn */ \
        X(barn_put_fail)         /* it was full */ \
        X(sheaf_prefill_fast)    /* prefilled sheaves that were a slot's spare */ \
        X(sheaf_prefill_slow)    /* prefilled sheaves from a barn, or made */ \
        X(sheaf_prefill_oversize)/* prefilled sheaves made to measure */ \
        X(sheaf_return_fast)     /* prefilled sheaves that became a slot's spare */ \
        X(sheaf_return_slow)     /* prefilled sheaves that went elsewhere */

struct stook_cache_stats {
        size_t   stats_size;            /* in: sizeof(struct stook_cache_stats) */
#define STOOK_COUNTER_FIELD(name) uint64_t name;
        STOOK_COUNTERS(STOOK_COUNTER_FIELD)
#undef STOOK_COUNTER_FIELD
        char     name[64];
        uint64_t object_size;           /* bytes asked for at creation */
        uint64_t slot_size;             /* bytes an object takes in its slab */
        uint64_t objects_per_slab;
        uint64_t slab_bytes;            /* bytes of a slab */
        uint64_t sheaf_capacity;        /* objects; 0: no sheaves */
        uint64_t slabs;                 /* live slabs */
        uint64_t objects_live;          /* in the hands of users */
        uint64_t objects_cached;        /* in sheaves: slots and barns */
        uint64_t sheaves;               /* sheaf memory that belongs to the cache */
};

/* Return: 0; -EINVAL: cache or stats NULL, or stats_size unknown. Not signal-safe. */
#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"       /* g++ says it of a function that is called as a structure is */
#endif
STOOK_PUBLIC int stook_cache_stats(const struct stook_cache *cache, struct stook_cache_stats *stats);
#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* What a cache has on one node. */
struct stook_node_stats {
        size_t   stats_size;            /* in: sizeof(struct stook_node_stats) */
        uint64_t slabs;                 /* live slabs of the node */
        uint64_t slabs_partial;         /* those on its list, with free objects */
        uint64_t barn_full;             /* full sheaves in its barn */
        uint64_t barn_empty;            /* empty ones */
        uint64_t objects_sent_home;     /* objects of the node that were freed on others and came home in sheaves */
        uint64_t sheaves_sent_home;     /* those sheaves */
};

/*
 * stook_cache_node_stats() - a cache on one node
 * @node: 0 to stook_mode()'s nodes - 1
 * Exact as stook_cache_stats() is. Return: 0; -EINVAL: cache or stats NULL, stats_size unknown, or no such node. Not signal-safe.
 */
STOOK_PUBLIC int stook_cache_node_stats(const struct stook_cache *cache, unsigned node, struct stook_node_stats *stats);

/*
 * Calls @each for every living cache, oldest first, until it returns nonzero; returns that, or 0.
 * -EINVAL: @each is NULL. It may allocate and free, but not create or destroy caches. Not signal-safe.
 */
STOOK_PUBLIC int stook_for_each_cache(int (*each)(struct stook_cache *cache, void *data), void *data);

#ifdef __cplusplus
}
#endif
#endif
