/*
 * <stook/cache.h> - object caches
 *
 * A cache hands out objects of one size. Freed objects are kept in sheaves (arrays of object pointers), one
 * set for each CPU, then in the barn of the node (whole sheaves), then in their slabs (runs of pages cut
 * into objects). An allocation looks in that order; the common case is a restartable sequence of about a
 * dozen instructions without an atomic one.
 *
 * Every call here is MT-safe. "Signal-safe" means: at any instruction of any other call of the library,
 * from a signal handler too. Calls not marked signal-safe may take a process-wide mutex.
 * Plain allocation returns NULL with errno ENOMEM only. All other calls return 0 or -errno and leave
 * out-arguments untouched on failure.
 * A NULL cache is answered with EINVAL, but by the calls that are the fast path: to stook_cache_alloc, _free, and their
 * _nolock kinds NULL is not allowed, and is not looked for: it ends the process (SIGSEGV).
 */
#ifndef STOOK_CACHE_H
#define STOOK_CACHE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define STOOK_PUBLIC __attribute__((visibility("default")))
#else
#define STOOK_PUBLIC
#endif

struct stook_cache;
struct stook_rcu;

/* Cache flags. One whose code is not in this release is refused with ENOTSUP. */
#define STOOK_HWCACHE_ALIGN    (UINT64_C(1) << 0) /* align objects to cache lines (64 bytes; less for objects under 33) */
#define STOOK_TYPESAFE_BY_RCU  (UINT64_C(1) << 1) /* an object stays one of this cache, whoever has it, until its readers have left: see <stook/rcu.h> */
#define STOOK_RCU              (UINT64_C(1) << 2) /* frees by <stook/rcu.h> never fail: a hidden word behind each object */
#define STOOK_ACCOUNT          (UINT64_C(1) << 3) /* charge objects to groups: <stook/group.h> */
#define STOOK_MERGE            (UINT64_C(1) << 4) /* may share an existing cache of the same geometry made with STOOK_MERGE */
#define STOOK_NO_SHEAVES       (UINT64_C(1) << 5) /* every call goes to the slabs */
#define STOOK_RANDOM_ORDER     (UINT64_C(1) << 6) /* hand out a slab's objects in random order */
#define STOOK_CHECKS           (UINT64_C(1) << 7) /* F: not in this release */
#define STOOK_RED_ZONE         (UINT64_C(1) << 8) /* Z: not in this release */
#define STOOK_POISON           (UINT64_C(1) << 9) /* P: not in this release */
#define STOOK_STORE_USER       (UINT64_C(1) << 10)/* U: not in this release */
#define STOOK_TRACE            (UINT64_C(1) << 11)/* T: not in this release */
#define STOOK_FAIL             (UINT64_C(1) << 12)/* A: not in this release */

/* Allocation flags. */
#define STOOK_ZERO     1u               /* the object's bytes are zero */
#define STOOK_THISNODE 2u               /* from that node or not at all */
#define STOOK_NOWAIT   4u               /* no limit callback */

/* Largest object of a cache, bytes: 128 KiB. Larger things are for <stook/malloc.h>. */
#define STOOK_OBJECT_MAX ((size_t)128 << 10)

struct stook_cache_args {
        size_t   args_size;             /* sizeof(struct stook_cache_args) */
        size_t   align;                 /* bytes, power of two up to the page size; 0: natural, at least 8 */
        uint64_t flags;                 /* STOOK_* cache flags */
        void   (*ctor)(void *object, void *ctor_data); /* runs when an object is first handed out of a slab; may
                                           run in a signal handler; not together with zalloc (EINVAL) */
        void    *ctor_data;
        unsigned sheaf_capacity;        /* objects, raises the default; 0: by size; at most 65534 */
        unsigned barn_full, barn_empty; /* whole sheaves kept for each node, at most 4096; 0: 10; UINT_MAX: none */
        const struct stook_rcu *rcu;    /* for stook_cache_free_rcu; NULL: the process's default */
};

/*
 * stook_cache_create() - make a cache
 * @name: 1 to 63 bytes, copied; need not be unique (find returns the oldest)
 * @size: bytes of an object, 1 to STOOK_OBJECT_MAX
 * @args: NULL for the defaults
 *
 * Ownership: the caller's, until stook_cache_destroy().
 * Return: the cache, or NULL with errno
 *   EINVAL  name NULL, empty or too long; size 0; align not a power of two or above the page size;
 *           args_size unknown; sheaf_capacity above 65534; barn_full or
 *           barn_empty above 4096 and not UINT_MAX
 *   E2BIG   size above STOOK_OBJECT_MAX (EINVAL where only the hidden words of flags, rounded up to align, pass it)
 *   ENOTSUP a flag or field whose code is not in this release
 *   ENFILE  STOOK_CACHES_MAX caches exist
 *   ENOMEM  no memory
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC struct stook_cache *stook_cache_create(const char *name, size_t size, const struct stook_cache_args *args);

/*
 * stook_cache_destroy() - take a cache down
 * Return: 0 (for NULL too); -EBUSY: objects are still allocated, or prefilled sheaves not returned: they are
 * reported (such sheaves and what is in them by their numbers), and the cache is kept; -EINVAL: one of malloc's size classes, which stay.
 * Threads: MT-safe; no other call may use the cache from here on. Not signal-safe.
 */
STOOK_PUBLIC int stook_cache_destroy(struct stook_cache *cache);

/* The oldest living cache of that name, or NULL (for NULL, too). All names of a shared cache are known until its last user destroys it. Not signal-safe. */
STOOK_PUBLIC struct stook_cache *stook_cache_find(const char *name);

/*
 * stook_cache_alloc() - one object
 * @cache: not NULL
 * Return: the object, aligned as the cache says, its content undefined (what the constructor and earlier
 * users left); NULL with errno ENOMEM. Signal-safe.
 */
STOOK_PUBLIC void *stook_cache_alloc(struct stook_cache *cache) __attribute__((malloc));

/* The same with the object's bytes zero. NULL with errno EINVAL for a cache with a constructor, or NULL. Signal-safe. */
STOOK_PUBLIC void *stook_cache_zalloc(struct stook_cache *cache) __attribute__((malloc));

/*
 * stook_cache_alloc_node() - one object of a node
 * @flags: STOOK_ZERO, STOOK_THISNODE, STOOK_NOWAIT; @node: -1 for any
 * Without STOOK_THISNODE the node is a wish. With it and -1, the node is the one this thread runs on.
 * Return: the object; NULL with errno
 *   ENOMEM  no memory; with STOOK_THISNODE: none on that node, which may be one without memory
 *   EINVAL  cache NULL, an unknown flag, a node that does not exist, STOOK_ZERO with a constructor
 * Signal-safe.
 */
STOOK_PUBLIC void *stook_cache_alloc_node(struct stook_cache *cache, unsigned flags, int node);

/*
 * stook_cache_free() - give an object back
 * @cache: not NULL
 * @object: from the same cache; NULL is fine
 * Misuse (a pointer that is not an object of this cache, a second free that is noticed) is reported, naming
 * pointer, cache, slab and offset; then the process aborts, unless STOOK_ON_FAULT says otherwise: then the
 * call does nothing. errno is preserved. Signal-safe.
 */
STOOK_PUBLIC void stook_cache_free(struct stook_cache *cache, void *object);

/*
 * stook_cache_alloc_nolock(), stook_cache_free_nolock() - for who may not wait
 *
 * stook_cache_alloc and stook_cache_free wait for another thread at most about 1 ms for each lock on their way; these
 * wait for nobody (@cache is not NULL here either): a lock is tried once, a thread that is stopped at any instruction does not hold them up, and other
 * work (purging, lending) is left to ordinary calls. For handlers of profilers, real-time threads, watchdogs.
 * Steps are bounded, but for compare-and-swaps repeated because another thread's succeeded; the system may be
 * called for memory. Objects of either kind of call may be given back by either.
 * Return: as stook_cache_alloc. NULL may also mean that what is free could not be had without waiting.
 * Signal-safe. In a child of _Fork or of a raw clone they use the heap as it is; ordinary calls repair it.
 */
STOOK_PUBLIC void *stook_cache_alloc_nolock(struct stook_cache *cache) __attribute__((malloc));
STOOK_PUBLIC void stook_cache_free_nolock(struct stook_cache *cache, void *object);

/*
 * stook_cache_alloc_bulk() - n objects or none
 * @flags: STOOK_ZERO; @objects: room for n pointers, unspecified after a failure
 * Return: 0; -ENOMEM; -EINVAL: cache or objects NULL, unknown flag, n 0, or STOOK_ZERO with a constructor. Signal-safe.
 */
STOOK_PUBLIC int stook_cache_alloc_bulk(struct stook_cache *cache, unsigned flags, size_t n, void **objects);

/*
 * stook_cache_free_bulk() - give n objects back
 * @or_null: their cache, or NULL: each object finds its own; those of <stook/malloc.h> may be among them
 * @objects: n pointers, none of them NULL (that is reported, as any pointer that is not ours); the array is scratch
 *     space for the call and unspecified after it. NULL only where n is 0: it is not looked for.
 * Signal-safe.
 */
STOOK_PUBLIC void stook_cache_free_bulk(struct stook_cache *or_null, size_t n, void **objects);

/*
 * stook_cache_shrink() - give back what is cached
 * Empties all slots and barns of the cache, and returns empty slabs to the pages.
 * Return: slabs still in use, at most INT_MAX; -EINVAL: cache NULL. Not signal-safe; other threads may go on using the cache.
 */
STOOK_PUBLIC int stook_cache_shrink(struct stook_cache *cache);

struct stook_tuning {
        size_t   tuning_size;           /* sizeof(struct stook_tuning) */
        int      sheaf_capacity;        /* objects of a sheaf, 0 to 65534; 0: no sheaves. -1: leave as it is */
        int      barn_full, barn_empty; /* whole sheaves kept for each node, 0 to 4096; -1: leave as they are */
};

/*
 * stook_cache_tune() - change a live cache
 * Empties slots and barns, as stook_cache_shrink() does; sheaves made from then on have the new capacity, exactly as
 * asked for. It does not grow or shrink by itself any more. Barns keep at most 512 KiB of objects whatever is asked for.
 * For a cache shared by STOOK_MERGE it holds for all its users.
 * Return: 0; -EINVAL: cache or tuning NULL, tuning_size unknown, a number out of its range; -ENOTSUP: a capacity for a
 * cache made with STOOK_NO_SHEAVES, or under STOOK_TINY; -EBUSY: the change is made, but slots could not be emptied
 * (the system refuses membarrier, or a thread was stopped in one): sheaves of the old capacity go when they are empty.
 * Threads: MT-safe; other threads may go on using the cache. Not signal-safe.
 */
STOOK_PUBLIC int stook_cache_tune(struct stook_cache *cache, const struct stook_tuning *tuning);

/*
 * stook_cache_reserve() - have objects in store
 * @n: objects; 0 gives the reserve up (what is empty then goes at the next shrink, trim or by age)
 * When it returns 0, @n objects are free in the slabs of each node that has memory, so wherever the threads are that
 * will want them. From then on the cache keeps slabs for @n objects there, in use and free together, through shrink
 * and trim, until another reserve or destroy. Slabs are address
 * space: their pages come when the objects are written to first, unless they were in use before.
 * Return: 0; -ENOMEM: fewer could be had, which are kept; -EINVAL: cache NULL, or @n beyond any memory.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_reserve(struct stook_cache *cache, size_t n);

/* The node of an object's memory; -EINVAL for a pointer that is not ours, NULL too. Signal-safe. */
STOOK_PUBLIC int stook_object_node(const void *object);

/* Bytes of an object as given at creation (for a merged cache: the largest); 0 for NULL. Signal-safe. */
STOOK_PUBLIC size_t stook_cache_object_size(const struct stook_cache *cache);

/* The cache of an object; NULL: not an object of ours, NULL too. Signal-safe. */
STOOK_PUBLIC struct stook_cache *stook_object_cache(const void *object);

#ifdef __cplusplus
}
#endif
#endif
