/*
 * <stook/malloc.h> - sizes unknown beforehand
 *
 * The C library's allocation calls on stook's caches, under names of their own. They share one heap with
 * the object caches. libstook-malloc.so exports the same functions under the C and C++ names.
 *
 * All are MT-safe and signal-safe (at any instruction of any other call). Meanings, errno included, are the
 * C standard's and POSIX's; differences are noted. Every object is aligned to 16 bytes at least.
 */
#ifndef STOOK_MALLOC_H
#define STOOK_MALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

STOOK_PUBLIC void  *stook_malloc(size_t size);                  /* size 0: a unique object */
STOOK_PUBLIC void  *stook_calloc(size_t n, size_t size);
/*
 * Size 0: frees, returns a unique object. A pointer that is not ours, no object, or known to be freed, is reported; where
 * reports do not abort (STOOK_ON_FAULT=report), nothing is done: NULL with errno EINVAL.
 */
STOOK_PUBLIC void  *stook_realloc(void *object, size_t size);
STOOK_PUBLIC void  *stook_reallocarray(void *object, size_t n, size_t size);
STOOK_PUBLIC void  *stook_aligned_alloc(size_t align, size_t size); /* EINVAL: align not a power of two */
STOOK_PUBLIC void   stook_free(void *object);                   /* errno preserved; a foreign pointer is reported */
STOOK_PUBLIC void   stook_free_sized(void *object, size_t size);/* the size is a hint, never trusted */
STOOK_PUBLIC void   stook_free_aligned_sized(void *object, size_t align, size_t size);
STOOK_PUBLIC size_t stook_usable_size(const void *object);      /* 0 for NULL */
STOOK_PUBLIC bool   stook_owns(const void *object);             /* a live or cached object of ours starts there */

/*
 * The same for who may not wait for another thread, whatever that one holds: see stook_cache_alloc_nolock. Any size;
 * what either kind of call returned may be given back by either. ENOMEM, too, before the library has started.
 */
STOOK_PUBLIC void  *stook_malloc_nolock(size_t size);
STOOK_PUBLIC void   stook_free_nolock(void *object);

#ifdef __cplusplus
}
#endif
#endif
