/*
 * Purpose: malloc's semantics on caches and spans, errno left to the callers (malloc_api.c wraps it for libstook,
 * malloc/ for the drop-in).
 * Size classes: multiples of 16 up to 128, then four per doubling up to 128 KiB; class c is the cache of
 * index c + 1. Above: a span of its own (kind LARGE, large.h).
 * Place: called by malloc_api.c and the drop-in; calls slot (the hot path), cache (misuse), pages (large objects).
 */
#ifndef STOOK_MALLOC_INTERNAL_H
#define STOOK_MALLOC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"
#include "cache/cache.h"
#include <stook/layout.h>

#define STOOK_CLASSES 48                        /* 16..128 by 16: 8; 160..131072: 40 */
#define STOOK_CLASS_MAX ((size_t)128 << 10)
#define STOOK_CLASS_TABLE_MAX 4096              /* sizes up to here by table */
/* What main and spare of a slot may hold of one class; all classes together: 1.5 MiB (size_class.c). */
#define STOOK_CLASS_SLOT_BYTES ((size_t)64 << 10)
/* Full sheaves in the barn of a class, as far as its bytes (STOOK_BARN_CACHE_BYTES) and those of all barns allow. */
#define STOOK_CLASS_BARN_FULL 64

/*
 * [(size + 15) / 16]: the class's line in slot 0, so that a class is one load away. Size 0 counts as 1. Written at
 * start, and once more: malloc_charged.c.
 */
extern uintptr_t stook_class_line[STOOK_CLASS_TABLE_MAX / 16 + 1] STOOK_HIDDEN;
extern const uint8_t stook_class_of[STOOK_CLASS_TABLE_MAX / 16 + 1] STOOK_HIDDEN;
extern const uint32_t stook_class_bytes[STOOK_CLASSES] STOOK_HIDDEN;

/* Class of a size up to STOOK_CLASS_MAX. */
STOOK_INLINE unsigned stook_class_for(size_t size)
{
        if (STOOK_LIKELY(size <= STOOK_CLASS_TABLE_MAX))
                return stook_class_of[(size + 15) >> 4];
        size_t   top = size - 1;
        unsigned msb = 63 - (unsigned)__builtin_clzll(top);     /* 12..16 */

        return 8 + (msb - 7) * 4 + (unsigned)((top >> (msb - 2)) & 3);
}

/* Objects a sheaf of a class holds; 0: the class has no sheaves. */
unsigned stook_class_capacity(unsigned class);

/* The cache of a class; @charged: the accounted one, whose slots are as large. NULL: no memory, or, if not @charged, the
 * registry is somebody's: it is not waited for. */
struct stook_cache *stook_class_create(unsigned class, bool charged);
/* Prepares the hot path. Called by life/start. A class's cache is made when its first object is asked for. */
void stook_malloc_start(void);

struct stook_cache *stook_class_first(unsigned class);
/* NULL: as above; an object of the class is a span of its own then. */
STOOK_INLINE struct stook_cache *stook_class_cache(unsigned class)
{
        struct stook_cache *cache = stook_cache_at(class + 1);

        if (STOOK_LIKELY(__atomic_load_n(&cache->state, __ATOMIC_ACQUIRE) == STOOK_CACHE_LIVE))
                return cache;
        return stook_class_first(class);
}

/* ---- malloc_charged.c: objects of threads in a group (group/group.h) ---- */
/* Called when the process gets its first group: the hot paths miss from now on. False: no memory. */
bool stook_malloc_charge(void);
/* As stook_malloc_object; charged to @id, which is not 0. */
void *stook_malloc_charged(size_t size, uint16_t id);

/* NULL: no memory, over a limit, or a size above PTRDIFF_MAX; errno untouched. Size 0 counts as 1. */
void *stook_malloc_object(size_t size);
void *stook_malloc_zeroed(size_t size);
void *stook_malloc_aligned(size_t align, size_t size);  /* align: a power of two */

/*
 * Another size for a live object, in place where that wastes little. NULL: nothing done, and *@error is ENOMEM; EINVAL:
 * misuse of our own memory, which was reported; EFAULT: it is not in our memory. Shrinking never fails. Size 0 counts
 * as 1.
 */
void *stook_malloc_resize(void *object, size_t size, int *error);

/*
 * What @object is: usable bytes if it is the start of a live (or cached: that cannot be told) object of ours,
 * 0 if not. *@ours: it lies in one of our ranges.
 */
size_t stook_malloc_usable(const void *object, bool *ours);

/* NULL is fine. False: foreign, nothing done. Misuse of our own memory is reported. */
bool stook_malloc_release(void *object);

/* ---- malloc_api.c: with errno, for what the hot path of libstook and of the drop-in left over ---- */
void *stook_malloc_miss(size_t size);
void *stook_calloc_miss(size_t bytes);

#endif
