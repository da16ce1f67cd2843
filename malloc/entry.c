/*
 * Purpose: the C library's allocation calls, in front of stook's: what a program gets that is linked to
 * libstook-malloc.so, or has it preloaded.
 * Place: the hot paths of malloc/malloc_hot.h; the rest is src/malloc, and foreign.c for pointers that are not ours.
 * Invariants:
 *  I1 nothing here, or below, calls anything that can call malloc, but for malloc_info, which writes where the
 *     caller says.
 *  I2 every call may run before any constructor, in a handler on top of any other, and in the child of a fork.
 * Failure: as glibc. realloc(p, 0) frees and returns NULL; memalign rounds an alignment up to a power of two, the
 *  other calls refuse it with EINVAL; posix_memalign leaves *out and errno alone; frees preserve errno.
 */
#include <errno.h>
#include <stdlib.h>
#include "base/compiler.h"
#include "foreign.h"
#include "hot.h"
#include "malloc/malloc.h"
#include "malloc/malloc_hot.h"
#include "os/os.h"

static void *or_enomem(void *object)
{
        if (STOOK_UNLIKELY(!object))
                errno = ENOMEM;
        return object;
}

static bool power_of_two(size_t n)
{
        return n && !(n & (n - 1));
}

void stook_drop_in_free_miss(void *object)
{
        if (!stook_malloc_release(object))
                stook_foreign_free(object);
}

void cfree(void *object);                       /* glibc dropped it in 2.26; old binaries still call it */
STOOK_API void cfree(void *object)
{
        free(object);
}

void free_sized(void *object, size_t size);     /* C23 */
STOOK_API void free_sized(void *object, size_t size)
{
        (void)size;                             /* never trusted */
        free(object);
}

void free_aligned_sized(void *object, size_t align, size_t size);       /* C23 */
STOOK_API void free_aligned_sized(void *object, size_t align, size_t size)
{
        (void)align;
        (void)size;
        free(object);
}

STOOK_API void *calloc(size_t n, size_t size)
{
        size_t bytes;

        if (STOOK_UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
                return or_enomem(NULL);

        void *object = stook_calloc_hot(bytes);

        return STOOK_LIKELY(object != NULL) ? object : stook_calloc_miss(bytes);
}

STOOK_API void *realloc(void *object, size_t size)
{
        void *other;
        int   error;

        if (!object)
                return malloc(size);
        if (STOOK_UNLIKELY(!size)) {
                free(object);
                return NULL;
        }
        other = stook_malloc_resize(object, size, &error);
        if (STOOK_UNLIKELY(!other)) {
                if (error == EFAULT)
                        return stook_foreign_realloc(object, size);
                errno = error;
        }
        return other;
}

STOOK_API void *reallocarray(void *object, size_t n, size_t size)
{
        size_t bytes;

        if (STOOK_UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
                return or_enomem(NULL);
        return realloc(object, bytes);
}

STOOK_API void *aligned_alloc(size_t align, size_t size)
{
        if (STOOK_UNLIKELY(!power_of_two(align))) {
                errno = EINVAL;
                return NULL;
        }
        return or_enomem(stook_malloc_aligned(align, size));
}

STOOK_API int posix_memalign(void **out, size_t align, size_t size)
{
        if (STOOK_UNLIKELY(!power_of_two(align) || align % sizeof(void *)))
                return EINVAL;

        void *object = stook_malloc_aligned(align, size);

        if (STOOK_UNLIKELY(!object))
                return ENOMEM;
        *out = object;
        return 0;
}

void *memalign(size_t align, size_t size);
STOOK_API void *memalign(size_t align, size_t size)
{
        if (STOOK_UNLIKELY(!power_of_two(align))) {
                if (align > SIZE_MAX / 2) {
                        errno = EINVAL;
                        return NULL;
                }
                size_t up = 16;

                while (up < align)
                        up *= 2;
                align = up;
        }
        return or_enomem(stook_malloc_aligned(align, size));
}

void *valloc(size_t size);
STOOK_API void *valloc(size_t size)
{
        return or_enomem(stook_malloc_aligned(stook_os_page_bytes(), size));
}

void *pvalloc(size_t size);
STOOK_API void *pvalloc(size_t size)
{
        size_t page = stook_os_page_bytes();

        if (STOOK_UNLIKELY(size > PTRDIFF_MAX))
                return or_enomem(NULL);
        return or_enomem(stook_malloc_aligned(page, size ? (size + page - 1) & -page : page));
}

size_t malloc_usable_size(void *object);
STOOK_API size_t malloc_usable_size(void *object)
{
        bool   ours;
        size_t usable;

        if (!object)
                return 0;
        usable = stook_malloc_usable(object, &ours);
        return STOOK_LIKELY(ours) ? usable : stook_foreign_usable(object);
}
