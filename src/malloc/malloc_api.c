/*
 * Purpose: the calls of <stook/malloc.h>: the C library's meanings, errno included.
 * Failure: NULL with errno ENOMEM (EINVAL for an alignment that is no power of two, and for misuse where reports do not
 * abort); frees preserve errno, for
 * nothing below touches it.
 */
#include <errno.h>
#include <stook/malloc.h>
#include "cache/cache.h"
#include "malloc/malloc.h"
#include "malloc/malloc_hot.h"

static void *or_enomem(void *object)
{
        if (STOOK_UNLIKELY(!object))
                errno = ENOMEM;
        return object;
}

STOOK_NOINLINE void *stook_malloc_miss(size_t size)
{
        return or_enomem(stook_malloc_object(size));
}

STOOK_NOINLINE void *stook_calloc_miss(size_t bytes)
{
        return or_enomem(stook_malloc_zeroed(bytes));
}

STOOK_API void *stook_malloc(size_t size)
{
        void *object = stook_malloc_hot(size);

        return STOOK_LIKELY(object != NULL) ? object : stook_malloc_miss(size);
}

STOOK_API void *stook_calloc(size_t n, size_t size)
{
        size_t bytes;

        if (STOOK_UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
                return or_enomem(NULL);

        void *object = stook_calloc_hot(bytes);

        return STOOK_LIKELY(object != NULL) ? object : stook_calloc_miss(bytes);
}

STOOK_API void *stook_realloc(void *object, size_t size)
{
        void *other;
        int   error;

        if (!object)
                return stook_malloc(size);
        other = stook_malloc_resize(object, size, &error);
        if (STOOK_UNLIKELY(!other)) {
                if (error == EFAULT)
                        stook_cache_free_misuse(NULL, object);
                errno = error == ENOMEM ? ENOMEM : EINVAL;
        }
        return other;
}

STOOK_API void *stook_reallocarray(void *object, size_t n, size_t size)
{
        size_t bytes;

        if (STOOK_UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
                return or_enomem(NULL);
        return stook_realloc(object, bytes);
}

STOOK_API void *stook_aligned_alloc(size_t align, size_t size)
{
        if (STOOK_UNLIKELY(!align || (align & (align - 1)))) {
                errno = EINVAL;
                return NULL;
        }
        return or_enomem(stook_malloc_aligned(align, size));
}

static STOOK_NOINLINE void free_miss(void *object)
{
        if (!stook_malloc_release(object))
                stook_cache_free_misuse(NULL, object);
}

STOOK_API void stook_free(void *object)
{
        if (STOOK_UNLIKELY(!stook_free_hot(object)))
                free_miss(object);
}

STOOK_API void stook_free_sized(void *object, size_t size)
{
        (void)size;                             /* programs get it wrong: the pagemap knows */
        stook_free(object);
}

STOOK_API void stook_free_aligned_sized(void *object, size_t align, size_t size)
{
        (void)align;
        (void)size;
        stook_free(object);
}

STOOK_API size_t stook_usable_size(const void *object)
{
        bool ours;

        return object ? stook_malloc_usable(object, &ours) : 0;
}

STOOK_API bool stook_owns(const void *object)
{
        bool ours;

        return object && stook_malloc_usable(object, &ours) != 0;
}
