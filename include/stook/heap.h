/*
 * <stook/heap.h> - heaps: objects of any size that may all be freed at once
 *
 * A heap serves sizes unknown beforehand, as <stook/malloc.h> does, from memory of its own: no slab
 * and no page is shared with other heaps, with caches or with malloc. Any thread allocates from it,
 * any thread frees. Objects may be freed one by one, and the heap may be emptied or destroyed
 * whatever is alive. That takes time for its slabs and large objects, not for each object.
 * A heap takes memory for a size when it is first asked for it.
 * An end costs some microseconds for each size in use, however few objects it has: in time, malloc
 * is cheaper up to some thousands of objects. A reset costs little less.
 * Each size takes one of the indices that a process has for caches. When none is left, the heap
 * goes on with other sizes, and stook_cache_create() fails.
 *
 * Every object is aligned to 16 bytes at least. stook_free() and, on the drop-in, free() take the
 * objects of all heaps; stook_realloc(), and realloc(), leave an object in its heap.
 * stook_usable_size() and stook_owns() know them as well.
 *
 * Errors: an allocation returns NULL with errno ENOMEM if there is no memory, the heap's limit or
 * its group's is met, or the product of its arguments is no size_t. A heap that was destroyed is
 * misuse: it is reported, and with STOOK_ON_FAULT=log the call fails.
 * "MT-safe" and "signal-safe" mean what <stook/cache.h> says.
 */
#ifndef STOOK_HEAP_H
#define STOOK_HEAP_H

#include <stddef.h>
#include <stdint.h>
#include <stook/group.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stook_heap;

/* Of a heap's name, with the 0 at its end. */
#define STOOK_HEAP_NAME_BYTES 48

/* Zeros are the defaults. */
struct stook_heap_args {
        size_t   args_size;             /* sizeof(struct stook_heap_args) */
        /*
         * Most bytes of slabs and large objects that the heap may have; 0: no limit. Each size
         * takes a slab of 16 KiB at least with its first object.
         */
        uint64_t limit_bytes;
        /*
         * Charged all slabs and large objects of the heap, from here to its destroy. NULL: none.
         * The group of the thread that allocates is not charged.
         */
        struct stook_group *group;
};

#ifndef __cplusplus
/* struct stook_heap_args with the fields given, and args_size: STOOK_HEAP_ARGS(.group = tenant) */
#define STOOK_HEAP_ARGS(...) \
        (&(struct stook_heap_args){ .args_size = sizeof(struct stook_heap_args), __VA_ARGS__ })
#endif

/*
 * stook_heap_create() - make a heap
 * @name: 1 to 47 bytes, copied; it need not be unique. Its caches are "NAME-16", "NAME-32", ...
 * @args: read during the call; NULL: the defaults
 *
 * Ownership: the caller's, until stook_heap_destroy().
 * Return: the heap, or NULL with errno
 *   EINVAL  name NULL, empty or too long; args_size unknown
 *   ENOMEM  no memory, or the limit of the group is met
 *   EDEADLK in a callback that must not take the list of caches, as of stook_cache_for_each()
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC struct stook_heap *stook_heap_create(const char *name,
                                                  const struct stook_heap_args *args);

/*
 * stook_heap_destroy() - give back a heap with all of its objects
 * @heap: NULL is fine. No other call on it or on its objects may be under way. Objects that were
 *        given to stook_free_rcu() are waited for, but for large ones: call stook_rcu_barrier().
 *
 * Return: 0, or -errno
 *   -EBUSY    a thread is inside, membarrier is refused, or a prefilled sheaf of one of its caches
 *             was not returned; reported. The heap is as it was. But if part of its memory was
 *             given back already, it can only be destroyed, by another call.
 *   -EINVAL   the heap was destroyed before; reported
 *   -EDEADLK  as for stook_heap_create(); reported
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_heap_destroy(struct stook_heap *heap);

/*
 * stook_heap_reset() - free all objects of a heap, which stays
 * @heap: as for stook_heap_destroy()
 * Its sizes are known from then on: the next objects cost less than those of a new heap.
 * Return: 0; -errno as stook_heap_destroy(), and -EINVAL: heap NULL.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_heap_reset(struct stook_heap *heap);

/*
 * stook_heap_alloc() - an object of @size bytes; 0: a unique object
 * stook_heap_calloc() - n * size bytes of zero
 * stook_heap_aligned_alloc() - an object at an alignment: @align bytes, any power of two
 * Ownership: the caller's, until a free, or the end of the heap.
 * Return: the object, or NULL with errno
 *   ENOMEM  see above
 *   EINVAL  @align is no power of two
 * Threads: MT-safe, not signal-safe: the first object of a size waits for other threads that make
 * caches.
 */
STOOK_PUBLIC void *stook_heap_alloc(struct stook_heap *heap, size_t size)
        __attribute__((__malloc__, __warn_unused_result__));
STOOK_PUBLIC void *stook_heap_calloc(struct stook_heap *heap, size_t n, size_t size)
        __attribute__((__malloc__, __warn_unused_result__));
STOOK_PUBLIC void *stook_heap_aligned_alloc(struct stook_heap *heap, size_t align, size_t size)
        __attribute__((__malloc__, __warn_unused_result__, __alloc_align__(2)));

/*
 * stook_heap_realloc() - another size for an object, which may move within its heap
 * @object: of this heap; NULL: as stook_heap_alloc()
 * @size: bytes; 0 frees the object and returns a unique one
 * Return: the object, whose old pointer is not valid any more; NULL with errno, and the object is
 * as it was
 *   ENOMEM  see above
 *   EINVAL  no live object of this heap, which is reported, and reports do not abort
 * Threads: as stook_heap_alloc().
 */
STOOK_PUBLIC void *stook_heap_realloc(struct stook_heap *heap, void *object, size_t size)
        __attribute__((__warn_unused_result__));

/*
 * stook_heap_free() - give an object back
 * @object: NULL is fine. One that is not of this heap is misuse: it is reported, and with
 *          STOOK_ON_FAULT=log nothing else is done.
 * Threads: MT-safe, signal-safe. errno is preserved.
 */
STOOK_PUBLIC void stook_heap_free(struct stook_heap *heap, void *object);

/*
 * stook_heap_of() - the heap that an object is of
 * @object: any pointer; of a large object its start
 * Return: the heap of the slab or the large object there; NULL: none of a heap.
 * Threads: MT-safe, signal-safe; the object stays alive meanwhile.
 */
STOOK_PUBLIC struct stook_heap *stook_heap_of(const void *object);

/*
 * stook_heap_for_each_object() - call a function for each object of a heap
 * @heap: NULL: for each object of malloc, those of <stook/malloc.h> and of the drop-in
 * @each: gets an object that a caller owns, and the bytes that may be used there. A value other
 *        than 0 ends the walk. The rules are those of stook_cache_for_each_object()'s callback; it
 *        may free the object.
 * @data: passed to @each
 * No other thread may use the heap, or malloc, until the call returns: objects that another thread
 * allocates or frees meanwhile may be shown or not, and large ones may be shown as they were.
 * Return: 0, or the value that ended the walk; or
 *   -EINVAL  each NULL; or the heap was destroyed, which is reported
 *   -EBUSY   a prefilled sheaf is not returned, or slots or barns could not be emptied: objects of
 *            other sizes may have been shown
 *   -EDEADLK as for stook_heap_create(); reported
 *   -ENOMEM  the library could not start
 * Threads: MT-safe but for the heap itself, not signal-safe.
 */
STOOK_PUBLIC int stook_heap_for_each_object(struct stook_heap *heap,
                                            int (*each)(void *object, size_t bytes, void *data),
                                            void *data);

/*
 * stook_heap_shrink() - give back what a heap keeps for objects to come
 * Return: 0, or -errno
 *   -EINVAL   heap NULL, or destroyed, which is reported
 *   -EBUSY    slots were not emptied: a thread is inside, or membarrier is refused
 *   -EDEADLK  as for stook_heap_create(); reported
 * Threads: MT-safe, beside allocations and frees; not signal-safe.
 */
STOOK_PUBLIC int stook_heap_shrink(struct stook_heap *heap);

/*
 * stook_heap_set_limit() - another limit
 * @limit_bytes: 0: none. A limit below what the heap has takes nothing away.
 * Near a limit a heap gives back what it keeps for objects to come, before it refuses.
 * Return: 0; -EINVAL: heap NULL.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_heap_set_limit(struct stook_heap *heap, uint64_t limit_bytes);

/* The figures of a heap. */
struct stook_heap_stats {
        size_t   stats_size;            /* in: sizeof(struct stook_heap_stats) */
        char     name[STOOK_HEAP_NAME_BYTES];
        uint64_t limit_bytes;           /* 0: none */
        uint64_t bytes;                 /* of slabs and large objects */
        uint64_t peak_bytes;            /* most of them at once */
        uint64_t large_bytes;           /* of large objects */
        uint64_t objects_live;          /* of slabs: what callers own */
        uint64_t objects_cached;        /* of slabs: free in sheaves */
        uint64_t slabs;
        uint64_t caches;                /* sizes that the heap was asked for */
        uint64_t refusals;              /* allocations that failed */
        /* Allocations that another size, or pages, served: no cache could be made. */
        uint64_t spilled;
};

/*
 * stook_heap_get_stats() - the figures of a heap
 * @stats: stats_size is set by the caller; the call fills the rest, exactly while no other thread
 *         is inside a call on the heap
 * Return: 0; -EINVAL: heap or stats NULL, stats_size unknown, or the heap was destroyed; -EDEADLK:
 * as for stook_heap_create(), reported.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_heap_get_stats(struct stook_heap *heap, struct stook_heap_stats *stats);

/*
 * stook_heap_for_each() - call a function for each heap
 * @each: the walk ends when it returns another number than 0. It must not make or destroy heaps or
 *        caches.
 * Return: what @each returned last, 0 if there is no heap; -EINVAL: each NULL; -EDEADLK: as for
 * stook_heap_create(), reported.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_heap_for_each(int (*each)(struct stook_heap *heap, void *data), void *data);

#ifdef __cplusplus
}
#endif
#endif
