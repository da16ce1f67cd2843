/*
 * <stook/cache.h> - object caches
 *
 * A cache hands out objects of one size. Freed objects are kept in three places. Sheaves (arrays
 * of object pointers) belong to a CPU. The barn of a NUMA node keeps whole sheaves. Slabs (runs of
 * pages cut into objects) stand behind the barn. An allocation looks in that order. The common
 * case is a restartable sequence of about a dozen instructions, none of them atomic.
 *
 * Threads: every call is MT-safe. "Signal-safe" means: a signal handler may make the call, at any
 * instruction of any other call of the library. A call that is not marked signal-safe may wait for
 * a process-wide mutex, which a malloc may hold. So a handler must not wait for a thread in one.
 *
 * Errors: a call that returns a pointer returns NULL on failure, and sets errno. A call that can
 * fail otherwise returns an int, -errno on failure: 0, or a number where it says so, is success. It
 * leaves out-arguments untouched on failure. A call that returns void or bytes cannot fail. A
 * structure whose size the library does not know fails with EINVAL; a line on standard error names
 * the field. A NULL cache fails with EINVAL, except on the fast path: stook_cache_alloc(),
 * stook_cache_free() and their nolock forms do not test for it, and the process ends with SIGSEGV.
 *
 * Numbers: n = 0 objects is a number like any other. The call tests its other arguments, succeeds,
 * and allocates, frees or fills nothing; an array of 0 pointers may be NULL.
 *
 * Names: the object first, then what is done: stook_cache_alloc(), stook_group_create(). Calls for
 * the whole process name no object: stook_trim(). What a create call made, the destroy call ends.
 * A struct that a call fills has the call's name without `get_`: stook_cache_get_stats().
 *
 * Using a cache after its destroy is misuse. As long as no new cache is at the address, these calls
 * report it: an allocation; a prefill; shrink, tune, reserve; a second destroy. Where reports do
 * not abort, allocations fail with ENOMEM, and the others with EINVAL. A free to such a cache is
 * reported as one of a pointer that is no object, since a destroyed cache has no objects.
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

/*
 * Cache flags, besides the debug modes of <stook/debug.h>. stook_cache_create() refuses every other
 * bit with EINVAL. No bit is an allocation flag as well, so each call refuses those of the other.
 */

/* Align objects to cache lines of 64 bytes. Objects of 32 bytes or less share a line. */
#define STOOK_CACHE_HWCACHE_ALIGN   (UINT64_C(1) << 4)
/* The memory of a freed object stays an object of this cache until its readers left: rcu.h. */
#define STOOK_CACHE_TYPESAFE_BY_RCU (UINT64_C(1) << 5)
/* Frees by <stook/rcu.h> never fail. Each object has a hidden word behind it. */
#define STOOK_CACHE_RCU             (UINT64_C(1) << 6)
/* Charge objects to groups: <stook/group.h>. Eight bytes behind each object name the group. */
#define STOOK_CACHE_ACCOUNT         (UINT64_C(1) << 7)
/* The cache may be an existing cache of the same geometry that was made with this flag. */
#define STOOK_CACHE_MERGE           (UINT64_C(1) << 8)
/* The cache has no sheaves: every call goes to the slabs. */
#define STOOK_CACHE_NO_SHEAVES      (UINT64_C(1) << 9)
/* Hand out the objects of a slab in random order. */
#define STOOK_CACHE_RANDOM_ORDER    (UINT64_C(1) << 10)
/*
 * Huge pages. The cache gets its memory in runs of 2 MiB, aligned to 2 MiB, and asks the system to
 * make each a huge page (madvise(2), MADV_HUGEPAGE). That is for large sets of objects that are
 * used at random. Each run is resident as a whole from its first use on. A run goes back when all
 * of its objects are free, in stook_cache_shrink(), stook_trim(), maintenance under memory
 * pressure, a malloc that calls `reclaim`, or the destroy, and never in a free. Less than 2 MiB is
 * not got: an allocation then fails. STOOK_THP=never leaves the runs, and asks for no huge pages.
 */
#define STOOK_CACHE_HUGE_PAGES      (UINT64_C(1) << 11)

/*
 * Allocation flags. Every call with an argument `flags` takes all of them, or'ed, or 0, and refuses
 * every other bit with EINVAL. `flags` is the argument behind the cache.
 */

/* The objects' bytes are zero. EINVAL for a cache with a constructor. */
#define STOOK_ALLOC_ZERO     1u
/*
 * Fail rather than take an object of another node than the one named. Where a call names no node:
 * than the one this thread runs on, or the nearest with memory.
 */
#define STOOK_ALLOC_THISNODE 2u
/* Do not call a group's limit callback, nor on_low, reclaim and memory_in of a cache. */
#define STOOK_ALLOC_NOWAIT   4u
/* Wait for no other thread, as stook_cache_alloc_nolock(). Includes STOOK_ALLOC_NOWAIT. */
#define STOOK_ALLOC_NOLOCK   8u

/* Largest object of a cache: 128 KiB, in bytes. <stook/malloc.h> serves larger sizes. */
#define STOOK_OBJECT_MAX 131072ul

/* Of a setting where 0 stands for "as it is by default": none. */
#define STOOK_NONE 0xffffffffu

/* What stook_cache_create() may be told. Zero in a field means its default. */
struct stook_cache_args {
        /* in: sizeof(struct stook_cache_args) */
        size_t   args_size;
        /* bytes, a power of two up to the page size; 0: natural, at least 8 */
        size_t   align;
        /* cache flags, or'ed */
        uint64_t flags;
        /*
         * The constructor. It runs when an object is first handed out of a slab, in the thread
         * that allocates, which may be in a signal handler. stook_cache_zalloc() and
         * STOOK_ALLOC_ZERO fail with EINVAL in a cache that has one. A constructor that acquires
         * what has to be released again needs a destructor, below. Callers that rely on the
         * constructor free an object in its constructed state. If it is left by a jump, the objects
         * that the allocation took from slabs stay allocated: a sheaf's at most.
         * stook_cache_destroy() then fails with -EBUSY, and stook_cache_destroy_all() ends the
         * cache.
         */
        void   (*ctor)(void *object, void *ctor_data);
        /* the constructor's second argument */
        void    *ctor_data;
        /*
         * objects of a sheaf, at least so many; 0 to 65534. The cache begins with the larger of
         * this number, rounded up to a power of two (65534 at most), and the default, which depends
         * on the size. stook_cache_get_stats() shows it. Later it may grow by itself.
         * stook_cache_tune() sets an exact number.
         */
        unsigned sheaf_capacity;
        /* whole sheaves that the barn of a node keeps, at most 4096; 0: 10; STOOK_NONE */
        unsigned barn_full, barn_empty;
        /* for stook_cache_free_rcu(); lives as long as the process; NULL: the process's */
        const struct stook_rcu *rcu;
        /*
         * The destructor. It needs a constructor beside it. NULL: none; memory leaves the cache
         * without a call. It runs exactly once for each run of the constructor, when the object's
         * slab goes back to the pages. That happens in stook_cache_shrink(), stook_trim(),
         * maintenance under memory pressure, a malloc that calls `reclaim` (below), and the
         * destroy. It runs in the thread that makes these calls, and never in a free. Between two
         * of these calls the cache keeps its empty slabs. With STOOK_CACHE_HUGE_PAGES or memory_in
         * it also runs for an empty slab that stays, because its run of 2 MiB has objects in use.
         * The destructor does not run at the end of the process. It may use the heap, but not this
         * cache: an object that it has made there in a destroy would never be destructed. It must
         * return, must not take the list of caches (see EDEADLK), and must not wait for a thread
         * that does. Its second argument is ctor_data.
         */
        void   (*dtor)(void *object, void *ctor_data);
        /*
         * The objects that callers may own at once; 0: any number. An allocation beyond the limit
         * fails. The number is never exceeded, also where several threads allocate. Callers own
         * objects that are allocated and not freed, and all objects in prefilled sheaves. A
         * prefilled sheaf of such a cache has exactly as many objects as were asked for. An object
         * that waits for readers is no caller's. Each allocation and free of a cache with a limit
         * makes a slow call. The cache uses two of the STOOK_CACHES_MAX indices.
         */
        size_t   limit_objects;
        /*
         * on_low is called when callers may own only low_objects more, or fewer. The allocation
         * that crosses this mark calls it; later allocations below the mark do not. @left: the
         * objects that callers may still get. NULL: no call. With it the mark is below the limit.
         *
         * on_low and reclaim run in the thread that allocates, which may be in a signal handler.
         * Allocations with STOOK_ALLOC_NOWAIT and nolock calls call neither. Both callbacks may use
         * the heap and this cache, and must return.
         */
        size_t   low_objects;
        void   (*on_low)(struct stook_cache *cache, size_t left, void *data);
        /*
         * reclaim frees objects of this cache that the program can spare; NULL: no call.
         * Return: the objects freed; 0: the allocation fails.
         *
         * An allocation that met the limit, or found no memory, calls it before it fails. @wanted
         * is the number of objects that were missing. Then the allocation is tried again. A
         * prefill calls it for the limit only.
         *
         * stook_trim() and maintenance under memory pressure call it as well, with @wanted
         * SIZE_MAX: all that can be spared. There it may run in the library's own thread, must not
         * take the list of caches (see EDEADLK), and must not wait for a thread that does.
         *
         * So does a malloc that finds no memory, the drop-in's too: it calls the callbacks of all
         * caches before it fails, under the same rules, in the thread that allocates. It calls
         * none while another thread has the list of caches, nor where it may be in a handler: on
         * the alternate signal stack, or while a signal is blocked that has a handler. Not seen
         * is a handler that is installed with SA_NODEFER or SA_RESETHAND, or that unblocks its
         * signal or resets it to SIG_DFL. A malloc holds the list of caches meanwhile: a callback
         * that it calls must not be left by a jump.
         *
         * One thread at a time is in the callback. An allocation that fails meanwhile, in the
         * callback or in another thread, does not call it.
         */
        size_t (*reclaim)(struct stook_cache *cache, size_t wanted, void *data);
        /* the last argument of on_low and reclaim */
        void    *limit_data;
        /*
         * memory_in prepares memory for objects: it registers it with a device, locks it, binds it
         * to nodes, or maps a file or shared memory over it (MAP_FIXED). NULL: nothing is done. The
         * cache gets its memory in runs of 2 MiB, aligned to 2 MiB, as with STOOK_CACHE_HUGE_PAGES,
         * which may be asked for beside this. A run never moves. @start, @bytes: a run. It is
         * private anonymous memory that may be read and written, and has no object yet. The library
         * never reads or writes objects, but for debug modes, hardening and STOOK_ALLOC_ZERO. It
         * has no data of its own in the run. Return: 0; any other number: the run is not used,
         * memory_out is not called for it, and the allocation fails with ENOMEM. Before that it is
         * asked for a run of each other node, unless the allocation is for one node only.
         *
         * memory_in is called once for each run, before its first object is handed out, by the
         * thread that needs the memory: in an allocation, a prefill or stook_cache_reserve(). With
         * STOOK_ALLOC_NOWAIT and in nolock calls it is not called. These get what is there, or
         * ENOMEM. So a signal handler allocates from such a cache with STOOK_ALLOC_NOWAIT or nolock
         * calls only; that its memory is made ahead is what stook_cache_reserve() is for. Several
         * threads may be in the function at once, each for a run of its own. It may use the heap,
         * but not this cache. It must return. In stook_cache_reserve() it must not take the list of
         * caches (see EDEADLK), nor wait for a thread that does.
         */
        int    (*memory_in)(void *start, size_t bytes, void *data);
        /*
         * memory_out undoes memory_in; NULL: no call. It needs memory_in beside it. It is called
         * once for each run that memory_in took, when all of the run's objects are free and their
         * destructors have run: in stook_cache_shrink(), stook_trim(), maintenance under memory
         * pressure, a malloc that calls `reclaim`, and the destroy, in the thread that makes these
         * calls. It is not called in a free, nor at the end of the process. No object is there any
         * more. After it the library maps fresh memory over the run. So what the program mapped
         * there goes, and what it locked is unlocked. The rules are those of memory_in in
         * stook_cache_reserve().
         *
         * fork: the child has the runs as the system leaves them to it. Shared memory is shared
         * with the parent, and both hand out the same objects; of what has MADV_DONTFORK it has
         * nothing. Neither function is told. So a child uses such a cache only if its memory is
         * private. In the child memory_out is called for runs that the parent got, if the child
         * gives them back.
         */
        void   (*memory_out)(void *start, size_t bytes, void *data);
        /* the last argument of memory_in and memory_out */
        void    *memory_data;
};

#ifndef __cplusplus
/* struct stook_cache_args with the fields given, and args_size: STOOK_CACHE_ARGS(.ctor = make) */
#define STOOK_CACHE_ARGS(...) \
        (&(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args), __VA_ARGS__ })
#endif

/*
 * stook_cache_create() - make a cache
 * @name: 1 to 63 bytes, copied; it need not be unique
 * @size: bytes of an object, 1 to STOOK_OBJECT_MAX
 * @args: NULL: all defaults; read only during the call
 *
 * Ownership: the caller owns the cache until stook_cache_destroy().
 * Return: the cache, or NULL with errno
 *   EINVAL  name NULL, empty or too long; size 0; align not a power of two or above the page
 *           size; args_size unknown; an unknown flag; a destructor without a constructor;
 *           memory_out without memory_in; on_low with low_objects not below limit_objects;
 *           sheaf_capacity above 65534; barn_full or barn_empty above 4096 and not STOOK_NONE; rcu:
 *           ops_size unknown, or call or barrier missing
 *   ERANGE  size above STOOK_OBJECT_MAX, or above what the hidden words of STOOK_CACHE_RCU and
 *           STOOK_CACHE_ACCOUNT leave of it
 *   ENOTSUP a destructor or memory_in with STOOK_CACHE_TYPESAFE_BY_RCU
 *   EAGAIN  as many caches exist as may: STOOK_CACHES_MAX less 74 of the library's own. One made
 *           with STOOK_CACHE_ACCOUNT or a limit counts twice, and a heap's sizes count. Where the
 *           address space is limited there are fewer
 *   ENOMEM  no memory
 *   EDEADLK called in a callback of stook_cache_for_each(), stook_cache_for_each_object() or
 *           stook_cache_destroy_all(). All calls below that take the list of caches fail so
 *           there, and the call is reported.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC struct stook_cache *stook_cache_create(const char *name, size_t size,
                                                    const struct stook_cache_args *args);

/*
 * stook_cache_destroy() - end a cache
 * @cache: NULL is fine. No other call may use the cache from here on, unless this call fails.
 *
 * The call waits for objects that wait for readers. A cache shared by STOOK_CACHE_MERGE ends with
 * the last of its users.
 * Return: 0; on failure the cache is kept and stays usable
 *   -EBUSY   objects are still allocated; prefilled sheaves are not returned; the slots could not
 *            be emptied, because the system refuses membarrier or a thread is stopped in one; or
 *            another thread is inside the cache's barns. The cause is reported.
 *   -EINVAL  one of malloc's size classes; or a cache that was destroyed before, which is misuse
 *   -EDEADLK see stook_cache_create()
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_destroy(struct stook_cache *cache);

/*
 * stook_cache_for_each_object() - call a function for every object that is allocated
 * @each: called once for each object that a caller owns, in no order. A value other than 0 ends
 *        the walk.
 * @data: passed on
 *
 * Objects in sheaves, barns and slabs are not shown. The call empties the slots and barns first,
 * and the cache has no sheaves until the call returns. The call waits until objects freed by RCU
 * before it are free, as stook_cache_rcu_barrier() does. So a thread in a read section must not
 * make it. Of a cache shared by STOOK_CACHE_MERGE it shows the objects of all users.
 * The callback may use, allocate and free objects of this cache and of others. An object that it
 * frees is not shown afterwards. One that it allocates may be shown. The callback must not free
 * objects of this cache by RCU: until readers have left they would be shown, and freed again by
 * stook_cache_destroy_all(). It must return, and must not take the list of caches: see EDEADLK. No
 * other thread may use this cache until the call returns: objects that another thread allocates or
 * frees meanwhile may be shown or not.
 * Return: 0, or the value that ended the walk; or, before @each was called,
 *   -EINVAL  cache or each NULL; one of malloc's size classes; or a cache that was destroyed
 *   -EBUSY   prefilled sheaves are not returned; or slots or barns could not be emptied, see
 *            stook_cache_destroy()
 *   -EDEADLK see stook_cache_create()
 * Threads: MT-safe but for the cache itself, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_for_each_object(struct stook_cache *cache,
                                             int (*each)(void *object, void *data), void *data);

/*
 * stook_cache_destroy_all() - free all objects of a cache, and end it
 * @cache: NULL is fine. No other call may use the cache from here on, unless this call fails.
 * @last_look: called for each object that is still allocated, right before it is freed; or NULL.
 *             The rules are those of the callback of stook_cache_for_each_object(). In addition
 *             it must not free the object that it is shown.
 * @data: passed on
 *
 * Each object is freed as by stook_cache_free(): debug modes check it, and groups get their bytes
 * back.
 * Return: 0; on failure the cache is kept and stays usable
 *   -EINVAL  one of malloc's size classes; or a cache that was destroyed before, which is misuse
 *   -EBUSY   prefilled sheaves are not returned, slots or barns could not be emptied (see
 *            stook_cache_destroy()), or the cache is shared by STOOK_CACHE_MERGE: nothing was
 *            freed. Or last_look or another thread allocated objects meanwhile: the others were
 *            freed
 *   -EDEADLK see stook_cache_create()
 * Threads: MT-safe but for the cache itself, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_destroy_all(struct stook_cache *cache,
                                         void (*last_look)(void *object, void *data), void *data);

/*
 * stook_cache_find() - a cache by its name
 * @name: NULL finds nothing
 * All names of a cache shared by STOOK_CACHE_MERGE find it until its last user destroys it.
 * Return: the oldest living cache of that name; NULL: there is none, or errno EDEADLK (see
 * stook_cache_create()); errno is untouched otherwise.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC struct stook_cache *stook_cache_find(const char *name);

/*
 * stook_cache_alloc() - one object
 * @cache: not NULL: the call does not test it, and the process ends with SIGSEGV
 * Ownership: the caller owns the object until a free.
 * Return: the object, aligned as the cache says. Its content is what the constructor and earlier
 * users left. NULL with errno
 *   ENOMEM  no memory, or a limit is met
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC void *stook_cache_alloc(struct stook_cache *cache);

/*
 * stook_cache_zalloc() - one object whose bytes are zero
 * Return: the object, or NULL with errno
 *   ENOMEM  no memory, or a limit is met
 *   EINVAL  cache NULL, or the cache has a constructor
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC void *stook_cache_zalloc(struct stook_cache *cache);

/*
 * stook_cache_alloc_flags() - one object, as flags say
 * @flags: allocation flags. stook_cache_alloc() is this call with 0, stook_cache_zalloc() with
 *         STOOK_ALLOC_ZERO, stook_cache_alloc_nolock() with STOOK_ALLOC_NOLOCK; all three are a
 *         little faster.
 * Return: the object, or NULL with errno
 *   ENOMEM  no memory, or a limit is met; with STOOK_ALLOC_THISNODE: none on that node; with
 *           STOOK_ALLOC_NOLOCK: see stook_cache_alloc_nolock()
 *   EINVAL  cache NULL, an unknown flag, STOOK_ALLOC_ZERO with a constructor
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC void *stook_cache_alloc_flags(struct stook_cache *cache, unsigned flags);

/*
 * stook_cache_alloc_node() - one object of a NUMA node
 * @flags: allocation flags
 * @node: 0 to the number of nodes - 1; -1: as stook_cache_alloc_flags()
 * Without STOOK_ALLOC_THISNODE an object of another node may be returned.
 * Return: the object, or NULL with errno
 *   ENOMEM  no memory, or a limit is met; with STOOK_ALLOC_THISNODE: none on that node, which
 *           may be a node without memory
 *   EINVAL  cache NULL, an unknown flag, no such node, STOOK_ALLOC_ZERO with a constructor
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC void *stook_cache_alloc_node(struct stook_cache *cache, unsigned flags, int node);

/*
 * stook_cache_free() - give an object back
 * @cache: not NULL: the call does not test it, and the process ends with SIGSEGV
 * @object: from this cache; NULL is fine
 * Misuse is a pointer that is no object of this cache, or a second free that is noticed. It is
 * reported with the pointer, the cache, the slab and the offset there. Then the process aborts.
 * With STOOK_ON_FAULT=log the call does nothing instead. errno is preserved.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC void stook_cache_free(struct stook_cache *cache, void *object);

/*
 * stook_cache_alloc_nolock(), stook_cache_free_nolock() - one object, for callers that must not
 *     block
 * @cache: not NULL
 *
 * stook_cache_alloc() and stook_cache_free() may wait for another thread, for each lock on their
 * way: once for 0.1 s, where its holder is stopped, and 1 s at most where others take it in turn.
 * The nolock forms do not wait: they try a lock once, and a thread that is stopped at any
 * instruction does not delay them. They leave other work, such as purging, to ordinary calls. They
 * are for handlers of profilers, real-time threads and watchdogs.
 * The number of steps is bounded, except that a compare-and-swap is repeated when another thread's
 * succeeded. They may call the system for memory. Either form of free takes objects of either form
 * of allocation.
 * Return: as stook_cache_alloc(). ENOMEM may also mean that free memory was not to be had without
 * waiting.
 * Threads: MT-safe, signal-safe. A child of _Fork() or of a raw clone uses the heap as it is; an
 * ordinary call repairs it there.
 */
STOOK_PUBLIC void *stook_cache_alloc_nolock(struct stook_cache *cache);
STOOK_PUBLIC void stook_cache_free_nolock(struct stook_cache *cache, void *object);

/*
 * stook_cache_alloc_bulk() - n objects, or none
 * @flags: allocation flags. STOOK_ALLOC_THISNODE: all objects are of one node.
 * @n: objects; 0 does nothing
 * @objects: room for n pointers; unspecified after a failure. May be NULL only if n is 0.
 * Return: 0; or
 *   -ENOMEM  no memory, or a limit is met; with STOOK_ALLOC_THISNODE: fewer on that node
 *   -EINVAL  cache NULL, objects NULL and n not 0, an unknown flag, STOOK_ALLOC_ZERO with a
 *            constructor
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_cache_alloc_bulk(struct stook_cache *cache, unsigned flags, size_t n,
                                        void **objects);

/*
 * stook_cache_free_bulk() - give n objects back
 * @cache: that of all of them; NULL: each object is of any cache, or of <stook/malloc.h>
 * @n: objects; 0 does nothing
 * @objects: n pointers, none of them NULL. The call uses the array as scratch space: its content
 *           is unspecified afterwards. May be NULL only if n is 0.
 * A pointer that is no object is misuse, as in stook_cache_free(). errno is preserved.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC void stook_cache_free_bulk(struct stook_cache *cache, size_t n, void **objects);

/*
 * stook_cache_free_bulk_nolock() - stook_cache_free_bulk() for callers that must not block
 * The arguments are those of stook_cache_free_bulk(); what the call waits for and leaves to others
 * is as in stook_cache_free_nolock(). For the allocation see STOOK_ALLOC_NOLOCK of
 * stook_cache_alloc_bulk(). errno is preserved.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC void stook_cache_free_bulk_nolock(struct stook_cache *cache, size_t n,
                                               void **objects);

/*
 * stook_cache_shrink() - give back what is cached
 * Empties all slots and barns of the cache, and returns empty slabs to the pages. Other threads
 * may go on using the cache.
 * Return: slabs still in use, at most INT_MAX; or
 *   -EINVAL  cache NULL or destroyed
 *   -EDEADLK see stook_cache_create()
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_shrink(struct stook_cache *cache);

/* What stook_cache_tune() changes. 0 leaves a number as it is. */
struct stook_tuning {
        /* in: sizeof(struct stook_tuning) */
        size_t   tuning_size;
        /* objects of a sheaf, 1 to 65534; STOOK_NONE: no sheaves */
        unsigned sheaf_capacity;
        /* whole sheaves that the barn of a node keeps, 1 to 4096; STOOK_NONE: none */
        unsigned barn_full, barn_empty;
};

#ifndef __cplusplus
/* struct stook_tuning with the fields given, and tuning_size: STOOK_TUNING(.barn_full = 20) */
#define STOOK_TUNING(...) \
        (&(struct stook_tuning){ .tuning_size = sizeof(struct stook_tuning), __VA_ARGS__ })
#endif

/*
 * stook_cache_tune() - change a live cache
 * Empties slots and barns, as stook_cache_shrink() does. Sheaves made from then on have exactly
 * the capacity asked for, and it no longer grows or shrinks by itself. A barn keeps at most 512 KiB
 * of objects, whatever is asked for. A cache shared by STOOK_CACHE_MERGE changes for all its users.
 * Other threads may go on using the cache.
 * Return: 0; or
 *   -EINVAL  cache or tuning NULL, cache destroyed, tuning_size unknown, a number out of its range
 *   -ENOTSUP a capacity for a cache that has no sheaves: one made with STOOK_CACHE_NO_SHEAVES or
 *            debug modes, or under STOOK_TINY=1
 *   -EBUSY   the change is made, but slots could not be emptied: the system refuses membarrier,
 *            or a thread is stopped in one. Sheaves of the old capacity go when they are empty.
 *   -EDEADLK see stook_cache_create()
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_tune(struct stook_cache *cache, const struct stook_tuning *tuning);

/*
 * stook_cache_set_limit() - change how many objects callers may own
 * @cache: made with a limit
 * @limit_objects: 0: none. If callers own more, allocations fail until they own fewer.
 * Return: 0; or
 *   -EINVAL  cache NULL or destroyed
 *   -ENOTSUP the cache was made without a limit
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_cache_set_limit(struct stook_cache *cache, size_t limit_objects);

/*
 * stook_cache_reserve() - keep n objects ready on each node
 * @n: objects; 0 ends the reserve. What is empty then goes at the next shrink, trim, or by age.
 *
 * On success n objects are free in the slabs of each node that has memory. From then on the cache
 * keeps slabs for n objects there, counting objects in use. That holds through shrink and trim,
 * until another reserve or destroy. Slabs are address space: their pages come when the objects are
 * first written to, unless they were in use before. The call makes all the slabs, so its time grows
 * with n.
 * Return: 0; or
 *   -ENOMEM  fewer objects could be had; the cache keeps those
 *   -EINVAL  cache NULL or destroyed, or n beyond any memory
 *   -EDEADLK see stook_cache_create()
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_reserve(struct stook_cache *cache, size_t n);

/*
 * stook_object_node() - the NUMA node of an object's memory
 * @object: of a cache or of <stook/malloc.h>
 * Return: 0 to the number of nodes - 1; -EINVAL: @object is NULL or no such object.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_object_node(const void *object);

/*
 * stook_cache_get_name() - the name of a cache, as given at its creation
 * Return: the text, which lasts as long as the cache; NULL for NULL.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC const char *stook_cache_get_name(const struct stook_cache *cache);

/*
 * stook_cache_object_size() - bytes of an object, as given at creation
 * Return: bytes; for a cache shared by STOOK_CACHE_MERGE the largest of its users; 0 for NULL.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC size_t stook_cache_object_size(const struct stook_cache *cache);

/*
 * stook_object_cache() - the cache of an object
 * Return: the cache, which its maker still owns; NULL: @object is NULL or no object of a cache.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC struct stook_cache *stook_object_cache(const void *object);

#ifdef __cplusplus
}
#endif
#endif
