/*
 * Purpose: the calls of <stook/malloc.h>: the C library's meanings, errno included.
 * Failure: NULL with errno ENOMEM (EINVAL for an alignment that is no power of two, and for misuse
 * where reports do not abort). Frees preserve errno, since nothing below touches it.
 */
#include <errno.h>
#include <stook/malloc.h>
#include "cache/cache.h"
#include "malloc/malloc.h"
#include "malloc/malloc_hot.h"

static void *too_large(void)
{
        errno = ENOMEM;
        return NULL;
}

STOOK_API void *stook_malloc(size_t size)
{
        void *object = stook_malloc_hot(size);

        return STOOK_LIKELY(object != NULL) ? object : stook_malloc_miss(size);
}

STOOK_API void *stook_malloc_nolock(size_t size)
{
        void *object = stook_malloc_hot(size);

        if (STOOK_LIKELY(object != NULL))
                return object;
        return stook_malloc_slow(size, STOOK_HOW_ERRNO | STOOK_HOW_NOLOCK);
}

STOOK_API void *stook_calloc(size_t n, size_t size)
{
        size_t bytes;

        if (STOOK_UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
                return too_large();

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
                return too_large();
        return stook_realloc(object, bytes);
}

STOOK_API void *stook_aligned_alloc(size_t align, size_t size)
{
        if (STOOK_UNLIKELY(!align || (align & (align - 1)))) {
                errno = EINVAL;
                return NULL;
        }
        return stook_malloc_aligned(align, size, STOOK_HOW_ERRNO);
}

static void release(void *object, uint64_t how)
{
        if (!stook_malloc_free_object(object, how))
                stook_cache_free_misuse(NULL, object);
}

/* Without a second argument, which the hot path would have to make. */
static STOOK_NOINLINE void free_miss(void *object)
{
        release(object, 0);
}

STOOK_API void stook_free(void *object)
{
        if (STOOK_UNLIKELY(!stook_free_hot(object)))
                free_miss(object);
}

STOOK_API void stook_free_nolock(void *object)
{
        if (STOOK_UNLIKELY(!stook_free_hot(object)))
                release(object, STOOK_HOW_NOLOCK);
}

/* Programs get the size wrong, and the pagemap knows. Only watched caches look at it. */
static STOOK_NOINLINE void free_sized_miss(void *object, size_t size)
{
        if (!stook_malloc_free_sized(object, size, 0))
                stook_cache_free_misuse(NULL, object);
}

STOOK_API void stook_free_sized(void *object, size_t size)
{
        if (STOOK_UNLIKELY(!stook_free_hot(object)))
                free_sized_miss(object, size);
}

STOOK_API void stook_free_aligned_sized(void *object, size_t align, size_t size)
{
        (void)align;
        stook_free_sized(object, size);
}

STOOK_API size_t stook_usable_size(const void *object)
{
        bool   ours;
        size_t usable = stook_malloc_usable(object, &ours);

        return usable == STOOK_NO_OBJECT ? 0 : usable;
}

STOOK_API bool stook_owns(const void *object)
{
        bool ours;

        return stook_malloc_usable(object, &ours) != STOOK_NO_OBJECT;
}
