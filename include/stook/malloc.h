/*
 * <stook/malloc.h> - sizes unknown beforehand
 *
 * The C library's allocation calls on Stook's caches, under names of their own. They share one heap
 * with the object caches. libstook-malloc.so exports the same functions under the C and C++ names.
 *
 * Meanings, errno included, are the C standard's and POSIX's, except for what is said below.
 * Every object is aligned to 16 bytes at least.
 * Threads: all calls are MT-safe and signal-safe, as <stook/cache.h> defines these words.
 * Errors: an allocation returns NULL with errno ENOMEM if there is no memory, a group's limit is
 * met, or the product of its arguments is no size_t. Frees preserve errno. A pointer at which no
 * object of this heap starts is misuse: it is reported, and with STOOK_ON_FAULT=log nothing else
 * is done.
 */
#ifndef STOOK_MALLOC_H
#define STOOK_MALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The attribute malloc lets compilers take it that no other pointer leads to the memory, and that
 * it holds none. An object of a cache may hold what its constructor wrote, and be known to readers:
 * no call of <stook/cache.h> has the attribute. None here has alloc_size, since all bytes of
 * stook_usable_size() may be used, or names its free, since on the drop-in free() is one, too.
 */

/*
 * stook_malloc() - an object of @size bytes; 0: a unique object
 * stook_calloc() - n * size bytes of zero
 * Ownership: the caller's, until a free.
 * Return: the object, or NULL with errno ENOMEM.
 */
STOOK_PUBLIC void  *stook_malloc(size_t size)
        __attribute__((__malloc__, __warn_unused_result__));
STOOK_PUBLIC void  *stook_calloc(size_t n, size_t size)
        __attribute__((__malloc__, __warn_unused_result__));

/*
 * stook_realloc() - another size for an object, which may move
 * stook_reallocarray() - the same with n * size bytes
 * @object: NULL: as stook_malloc()
 * @size: bytes; 0 frees the object and returns a unique one
 * Return: the object, whose old pointer is not valid any more; NULL with errno, and the object is
 * as it was
 *   ENOMEM  see above
 *   EINVAL  @object is no live object, and reports do not abort
 */
STOOK_PUBLIC void  *stook_realloc(void *object, size_t size)
        __attribute__((__warn_unused_result__));
STOOK_PUBLIC void  *stook_reallocarray(void *object, size_t n, size_t size)
        __attribute__((__warn_unused_result__));

/*
 * stook_aligned_alloc() - an object of any size at an alignment
 * @align: bytes, any power of two
 * Return: the object, or NULL with errno
 *   ENOMEM  see above
 *   EINVAL  @align is no power of two
 */
STOOK_PUBLIC void  *stook_aligned_alloc(size_t align, size_t size)
        __attribute__((__malloc__, __warn_unused_result__, __alloc_align__(1)));

/*
 * stook_aligned_realloc() - another size for an object, which stays aligned
 * @object: NULL: as stook_aligned_alloc()
 * @align: bytes, any power of two; the object need not have had that alignment
 * @size: bytes; 0: a unique object
 * An object of a heap (<stook/heap.h>) stays one.
 * Return: as stook_realloc(), but for EINVAL, which also says that @align is no power of two. An
 * object that shrinks, and has the alignment, stays where there is no memory.
 */
STOOK_PUBLIC void  *stook_aligned_realloc(void *object, size_t align, size_t size)
        __attribute__((__warn_unused_result__, __alloc_align__(2)));

/*
 * stook_good_size() - the least size that wastes nothing
 * @size: bytes
 * Return: what stook_usable_size() is of an object that this thread asks for with @size now, where
 * no debug mode is on, and the object is no guarded sample (<stook/sampling.h>); an object of the
 * returned size has it, too. @size, if no object is so large.
 */
STOOK_PUBLIC size_t stook_good_size(size_t size);

/*
 * stook_malloc_at_least() - an object, and how large it has become
 * @size: bytes; 0 counts as 1
 * @got: is set to stook_usable_size() of the object; NULL is fine
 * Return: the object, or NULL with errno ENOMEM, and *@got is as it was.
 */
STOOK_PUBLIC void  *stook_malloc_at_least(size_t size, size_t *got)
        __attribute__((__malloc__, __warn_unused_result__));

/*
 * stook_try_expand() - more bytes for an object where it is
 * @object: a live one; NULL: nothing is done
 * @size: bytes that it is to have
 * Return: true: stook_usable_size() is @size or more. False: nothing changed: it cannot grow in
 * place, its group's limit is met, or @object is no live object, which is reported.
 */
STOOK_PUBLIC bool   stook_try_expand(void *object, size_t size)
        __attribute__((__warn_unused_result__));

/*
 * stook_malloc_bulk() - n objects of a size, or none
 * @size: bytes of each; 0 counts as 1
 * @n: objects; 0 does nothing
 * @objects: room for n pointers; unspecified after a failure. May be NULL only if n is 0.
 * Return: 0; or
 *   -ENOMEM  see above
 *   -EINVAL  objects NULL and n not 0
 */
STOOK_PUBLIC int    stook_malloc_bulk(size_t size, size_t n, void **objects)
        __attribute__((__warn_unused_result__));

/*
 * stook_free_bulk() - give n objects back, of any sizes
 * @objects: n pointers, none of them NULL. The call uses the array as scratch space: its content
 *           is unspecified afterwards. May be NULL only if n is 0.
 * A pointer at which no object starts is misuse, as in stook_free().
 */
STOOK_PUBLIC void   stook_free_bulk(size_t n, void **objects);

/*
 * stook_free() - give an object back
 * stook_free_sized(), stook_free_aligned_sized() - the same; size and alignment are hints that the
 *     library does not trust
 * @object: NULL is fine
 */
STOOK_PUBLIC void   stook_free(void *object);
STOOK_PUBLIC void   stook_free_sized(void *object, size_t size);
STOOK_PUBLIC void   stook_free_aligned_sized(void *object, size_t align, size_t size);

/* stook_usable_size() - bytes that may be used at a live object; 0 for NULL */
STOOK_PUBLIC size_t stook_usable_size(const void *object);

/* stook_owns() - whether an object of this heap starts there, in use or free in a sheaf */
STOOK_PUBLIC bool   stook_owns(const void *object);

/*
 * stook_malloc_nolock(), stook_free_nolock() - an object, for callers that must not block
 * @size: any, as for stook_malloc()
 * They wait for no other thread: see stook_cache_alloc_nolock(). Either form of free takes objects
 * of either form of allocation.
 * Return: the object, or NULL with errno ENOMEM. That may also mean that free memory was not to be
 * had without waiting, or that the library has not started yet.
 */
STOOK_PUBLIC void  *stook_malloc_nolock(size_t size)
        __attribute__((__malloc__, __warn_unused_result__));
STOOK_PUBLIC void   stook_free_nolock(void *object);

#ifdef __cplusplus
}
#endif
#endif
