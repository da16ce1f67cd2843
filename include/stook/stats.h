/*
 * <stook/stats.h> - counters and sizes of caches
 *
 * Counters bear the kernel's names (/sys/kernel/slab/<cache>/) and meanings. Hot paths keep no
 * counter of their own: the store that commits a pop or push counts it. Values are exact when no
 * other thread is inside a call on the cache, and close otherwise.
 *
 * These hold then, after failed calls, too:
 *      objects_live   = alloc_fastpath + alloc_slowpath
 *                       - free_fastpath - free_slowpath - free_rcu_sheaf
 *      objects_cached = sheaf_refill + free_fastpath + free_rcu_sheaf
 *                       - alloc_fastpath - sheaf_flush
 *      sheaves        = sheaf_alloc - sheaf_free
 *      slabs          = alloc_slab - free_slab
 *      sheaves on loan = sheaf_prefill_fast + sheaf_prefill_slow + sheaf_prefill_oversize
 *                       - sheaf_return_fast - sheaf_return_slow
 * For that, some counters differ from the kernel's:
 *  - alloc_slowpath, order_fallback and sheaf_prefill_* count what succeeded.
 *  - An object taken from a prefilled sheaf counts as alloc_fastpath. What fills such a sheaf
 *    counts as sheaf_refill, whatever the sheaf's size.
 *  - A sheaf made to measure counts as sheaf_return_slow when it is returned.
 *  - free_slab counts every slab given back.
 *
 * "MT-safe" and "signal-safe" mean what <stook/cache.h> says.
 */
#ifndef STOOK_STATS_H
#define STOOK_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name): each counter, in the kernel's order. */
#define STOOK_COUNTERS(X) \
        X(alloc_fastpath)        /* objects taken from a sheaf, a slot's or a prefilled one */ \
        X(alloc_slowpath)        /* objects that an allocation took from the slabs */ \
        X(free_rcu_sheaf)        /* objects put into a sheaf that waits for readers */ \
        X(free_rcu_sheaf_fail)   /* objects that found no such sheaf */ \
        X(free_fastpath)         /* objects put into a slot's sheaf */ \
        X(free_slowpath)         /* objects that a free gave straight to a slab */ \
        X(free_add_partial)      /* a free moved a full slab to the partial list */ \
        X(free_remove_partial)   /* a free emptied a slab and took it off the list */ \
        X(alloc_slab)            /* slabs got from the pages */ \
        X(free_slab)             /* slabs given back, by shrink and destroy too */ \
        X(alloc_node_mismatch)   /* an object had to be of another node than the sheaf's */ \
        X(order_fallback)        /* slabs made smaller, because memory was scarce */ \
        X(cmpxchg_double_fail)   /* a slab's word changed under a compare-and-swap */ \
        X(sheaf_flush)           /* objects moved from sheaves to slabs */ \
        X(sheaf_refill)          /* objects moved from slabs to sheaves */ \
        X(sheaf_alloc)           /* sheaves made for the cache */ \
        X(sheaf_free)            /* sheaves whose memory went back to the pool */ \
        X(barn_get)              /* full sheaves got from a barn */ \
        X(barn_get_fail)         /* tries that found no full sheaf */ \
        X(barn_put)              /* full sheaves put into a barn */ \
        X(barn_put_fail)         /* tries that found the barn full */ \
        X(sheaf_prefill_fast)    /* prefilled sheaves that were a slot's spare */ \
        X(sheaf_prefill_slow)    /* prefilled sheaves from a barn, or made */ \
        X(sheaf_prefill_oversize)/* prefilled sheaves made to measure */ \
        X(sheaf_return_fast)     /* prefilled sheaves that became a slot's spare */ \
        X(sheaf_return_slow)     /* prefilled sheaves that went elsewhere */

/* What a cache has, on all nodes together. */
struct stook_cache_stats {
        size_t   stats_size;            /* in: sizeof(struct stook_cache_stats) */
        char     name[64];              /* as given at creation */
        uint64_t object_size;           /* bytes asked for at creation */
        uint64_t stride;                /* bytes from one object of a slab to the next */
        uint64_t objects_per_slab;      /* objects that a slab is cut into */
        uint64_t slab_bytes;            /* bytes of a slab */
        uint64_t sheaf_capacity;        /* objects of a sheaf made now; 0: no sheaves */
        uint64_t slabs;                 /* live slabs */
        uint64_t objects_live;          /* in use */
        uint64_t objects_cached;        /* in sheaves: slots and barns */
        uint64_t sheaves;               /* sheaf memory that belongs to the cache */
        uint64_t slabs_peak;            /* most live slabs at once */
        /*
         * most objects at once in use or in sheaves. It is noted when a slab is made and when
         * statistics are read; what came between the two is missed by less than a slab's objects
         */
        uint64_t objects_peak;
        uint64_t reserved[6];           /* 0: room for figures of later releases */
        /* Later releases have more counters behind these. */
#define STOOK_COUNTER_FIELD(name) uint64_t name;
        STOOK_COUNTERS(STOOK_COUNTER_FIELD)
#undef STOOK_COUNTER_FIELD
};

/*
 * stook_cache_get_stats() - counters and sizes of a cache
 * @stats: stats_size is set by the caller; the call fills the rest
 * Return: 0; -EINVAL: cache or stats NULL, or stats_size unknown.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_get_stats(const struct stook_cache *cache,
                                       struct stook_cache_stats *stats);

/* What a cache has on one node. */
struct stook_cache_node_stats {
        size_t   stats_size;            /* in: sizeof(struct stook_cache_node_stats) */
        uint64_t slabs;                 /* live slabs of the node */
        uint64_t slabs_partial;         /* those on its list, with free objects */
        uint64_t barn_full;             /* full sheaves in its barn */
        uint64_t barn_empty;            /* empty sheaves in its barn */
        uint64_t objects_sent_home;     /* its objects freed on other nodes, come home in sheaves */
        uint64_t sheaves_sent_home;     /* those sheaves */
};

/*
 * stook_cache_get_node_stats() - what a cache has on one node
 * @node: 0 to the nodes of stook_get_mode() - 1
 * @stats: stats_size is set by the caller; the call fills the rest
 * Exact when stook_cache_get_stats() is.
 * Return: 0; -EINVAL: cache or stats NULL, stats_size unknown, or no such node.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_get_node_stats(const struct stook_cache *cache, unsigned node,
                                            struct stook_cache_node_stats *stats);

/*
 * stook_cache_for_each() - call a function for every living cache, oldest first
 * @each: ends the walk by returning a number other than 0. It may allocate, free and read
 *        statistics. Calls that take the list of caches are refused in it, and reported:
 *        create, destroy, find, tune, reserve, shrink, validate, this call (all EDEADLK), the
 *        making of the first group (EDEADLK), and trim (0).
 * @data: passed to @each
 * Return: what @each returned last, 0 without a cache; or
 *   -EINVAL  @each NULL
 *   -EDEADLK called in a callback of itself
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_for_each(int (*each)(struct stook_cache *cache, void *data),
                                      void *data);

/*
 * stook_stats_print() - all statistics as text
 * @out: a stream that is open for writing; it stays the caller's
 * A table of caches, living and destroyed ones, with their highest use; bytes of pages; groups; and
 * the STOOK_ variables of the environment. The text is for people and may change. No lock is held
 * while it is written, so figures of calls under way may be off. STOOK_PRINT=exit, or a signal's
 * name, prints the same to standard error.
 * Return: 0; or
 *   -EINVAL  @out NULL
 *   -ENOMEM  the library could not start
 *   -EIO     the stream has an error
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_stats_print(FILE *out);

/* What the whole heap has: all caches, malloc's too, and large objects. All sizes in bytes. */
struct stook_totals {
        size_t   totals_size;           /* in: sizeof(struct stook_totals) */
        /* Both calls fill these. */
        uint64_t active_bytes;          /* of slabs, empty ones too, and of large objects */
        uint64_t active_peak_bytes;     /* most of that so far; with several nodes: at most */
        uint64_t resident_bytes;        /* at most: active, free_dirty and metadata together */
        uint64_t free_dirty_bytes;      /* of free pages with content, which are resident */
        uint64_t free_clean_bytes;      /* of free pages without content */
        uint64_t free_spans;            /* runs of free pages */
        uint64_t metadata_bytes;        /* the library's own data, sheaves too */
        uint64_t reserved_bytes;        /* of address space for the heap */
        uint64_t rcu_bytes;             /* of objects that wait for readers */
        uint64_t large_objects;         /* objects of malloc that are no slab's */
        uint64_t guarded_objects;       /* those of them between guard pages */
        uint64_t purges;                /* calls that gave the content of free pages back */
        uint64_t purged_bytes;          /* which they gave back */
        uint64_t refaulted_bytes;       /* which were purged and then taken again */
        /* stook_get_totals() alone fills these; else they are 0. */
        uint64_t allocated_bytes;       /* of live objects, as large as users may use them */
        uint64_t cached_bytes;          /* of objects in sheaves */
        uint64_t space_bytes;           /* of all slabs */
        uint64_t large_bytes;           /* active but in no slab: large objects, their guards */
        uint64_t objects_live;          /* in use, large ones too */
        uint64_t objects_cached;        /* in sheaves: slots and barns */
        uint64_t slabs;                 /* live slabs */
        uint64_t sheaves;               /* sheaves that belong to caches */
        uint64_t caches;                /* living caches */
        uint64_t groups;                /* groups that have not ended */
        uint64_t reserved[8];           /* 0: room for figures of later releases */
        /* Sums over all caches, destroyed ones too. Later releases have more behind these. */
#define STOOK_COUNTER_FIELD(name) uint64_t name;
        STOOK_COUNTERS(STOOK_COUNTER_FIELD)
#undef STOOK_COUNTER_FIELD
};

/*
 * stook_get_totals() - what the whole heap has
 * stook_get_totals_approximate() - what is known of that without a look at caches
 * @totals: totals_size is set by the caller; the call fills the rest
 * Exact when no other thread is inside a call, and close otherwise. They take no lock. The first
 * reads the word of each sheaf and the counters of each cache; the other a few dozen words.
 * Return: 0; or
 *   -EINVAL  totals NULL, or totals_size unknown
 *   -ENOMEM  the library could not start
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_get_totals(struct stook_totals *totals);
STOOK_PUBLIC int stook_get_totals_approximate(struct stook_totals *totals);

/* How full an object's slab is, and those of its cache. "Out": with users, or in sheaves. */
struct stook_occupancy {
        size_t   occupancy_size;        /* in: sizeof(struct stook_occupancy) */
        uint64_t slab_objects;          /* that the slab is cut into */
        uint64_t slab_out;              /* of them out */
        uint64_t cache_slabs;           /* slabs of the cache */
        uint64_t cache_out;             /* objects of all of them that are out */
};

/*
 * stook_object_get_occupancy() - would it help to move this object?
 * @object: a live one, of a cache or of <stook/malloc.h>
 * @occupancy: occupancy_size is set by the caller; the call fills the rest
 * A program that defragments allocates another object, copies, and frees this one, if the answer is
 * 1: its slab is emptier than those of its cache are on average. New objects come from fuller slabs
 * first. It reads a few words.
 * Return: 1: the slab is emptier; 0: it is not; or
 *   -EINVAL  occupancy NULL, occupancy_size unknown, or no object of a slab starts there: NULL, a
 *            large object
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_object_get_occupancy(const void *object, struct stook_occupancy *occupancy);

enum stook_metrics_format {
        STOOK_METRICS_PROMETHEUS,       /* text format 0.0.4 */
        STOOK_METRICS_OPENMETRICS,      /* text format 1.0.0, with its "# EOF" */
};

/*
 * stook_metrics_write() - the heap's metrics, for a scraper
 * @out: a stream that is open for writing; it stays the caller's
 * Totals, caches that ever had a slab, groups, heaps. Caches of a heap have a new `born` when it is
 * made, so a program that makes many has many samples. Names are those of
 * `stook info --prometheus`, where it has the same metric; no sample has labels for process and
 * library. No lock is held while it is written.
 * Return: 0; or
 *   -EINVAL  @out NULL, or no such format
 *   -ENOMEM  the library could not start, or no memory
 *   -EIO     the stream has an error
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_metrics_write(FILE *out, enum stook_metrics_format format);

/*
 * stook_profile_write() - write the heap profile of this process
 * The process has one if STOOK_PROFILE or STOOK_SAMPLE was set when it started (stook-env(7)), or
 * after stook_sampling_start().
 * @path: the file, in pprof's format; "%p" in it stands for the process number. It is replaced when
 *        the new one is whole. NULL: the file that STOOK_PROFILE names.
 * Return: 0; or
 *   -ENOTSUP the process has no profile
 *   -EINVAL  path is empty
 *   -EBUSY   another thread is writing it, or the call that this handler is on top of
 *   -EEXIST  a folder, a device, a pipe or a link has that name
 *   -ENAMETOOLONG, -ENOMEM, and the errors of openat(2), write(2) and rename(2)
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_profile_write(const char *path);

/*
 * stook_profile_mark() - have the heap profile's growth begin here
 * The types growth_objects and growth_space of a profile are what is in use when it is written,
 * less what was in use at the last mark; without a mark, less nothing. A call takes as long with
 * many stacks as with few.
 * Return: 0; or
 *   -ENOTSUP the process has no profile
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_profile_mark(void);

#ifdef __cplusplus
}
#endif
#endif
