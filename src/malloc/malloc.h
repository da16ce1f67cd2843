/*
 * Purpose: malloc's semantics on caches and spans, errno left to the callers (include/stook/malloc.h wraps it for
 * libstook, malloc/ for the drop-in).
 * Size classes: multiples of 16 up to 128, then four per doubling up to 128 KiB; class c is the cache of
 * index c + 1. Above: a span of its own (kind LARGE).
 */
#ifndef STOOK_MALLOC_INTERNAL_H
#define STOOK_MALLOC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cache/cache.h"
#include "slot/slot_fast.h"

#define STOOK_CLASSES 48                        /* 16..128 by 16: 8; 160..131072: 40 */
#define STOOK_CLASS_MAX ((size_t)128 << 10)
#define STOOK_CLASS_TABLE_MAX 1024              /* sizes up to here by table */

extern const uint8_t  stook_class_of[STOOK_CLASS_TABLE_MAX / 16 + 1];   /* [(size + 15) / 16] */
extern const uint32_t stook_class_bytes[STOOK_CLASSES];

STOOK_INLINE unsigned stook_class_for(size_t size)      /* 0 < size <= STOOK_CLASS_MAX */
{
        if (STOOK_LIKELY(size <= STOOK_CLASS_TABLE_MAX))
                return stook_class_of[(size + 15) >> 4];
        size_t   top = size - 1;
        unsigned msb = 63 - (unsigned)__builtin_clzll(top);     /* 10..16 */

        return 8 + (msb - 7) * 4 + (unsigned)((top >> (msb - 2)) & 3);
}

/* Makes the caches of all classes. Called by life/start. False: no memory. */
bool stook_malloc_start(void);

/* NULL: no memory or a size above PTRDIFF_MAX; errno untouched. Size 0 counts as 1. */
void *stook_malloc_object(size_t size);
void *stook_malloc_zeroed(size_t size);
void *stook_malloc_aligned(size_t align, size_t size);  /* align: a power of two */
/* NULL: no memory, @object as it was. @object is ours and live, size is not 0. */
void *stook_malloc_resize(void *object, size_t size);
/*
 * What @object is: usable bytes if it is the start of a live (or cached: that cannot be told) object of ours,
 * 0 if not. *@ours: it lies in one of our ranges.
 */
size_t stook_malloc_usable(const void *object, bool *ours);
/* False: foreign, nothing done. Misuse of our own memory is reported. */
bool stook_malloc_release(void *object);

#endif
