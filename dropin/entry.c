/*
 * Purpose: the C library's allocation calls, in front of stook's: for a program that is linked to
 * libstook-malloc.so, or has it preloaded.
 * Place: hot paths are in hot_x86_64.S and hot_aarch64.S, which come here when they miss (malloc's
 *  go to stook_malloc_miss), and in malloc/malloc_hot.h; the rest is src/malloc, and foreign.c for
 *  pointers that are not ours.
 * Invariants:
 *  I1 nothing here, or below, calls anything that can call malloc. The exception is malloc_info,
 *     which writes where the caller says.
 *  I2 every call may run before any constructor, in a handler on top of any other, and in the child
 *     of a fork.
 * Failure: as glibc. realloc(p, 0) frees and returns NULL. memalign rounds an alignment up to a
 *  power of two; the other calls refuse it with EINVAL. posix_memalign leaves *out and errno alone;
 *  frees preserve errno.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/compiler.h"
#include "cache/cache_watch.h"
#include "group/group.h"
#include "foreign.h"
#include "hot.h"
#include "malloc/malloc.h"
#include "malloc/malloc_hot.h"
#include "os/os.h"
#include "watch/watch.h"

/* The hot paths in assembly have them in numbers. */
_Static_assert(STOOK_CLASS_TABLE_MAX == 16384 && STOOK_CLASS_ALIGNED_MAX == 4096 &&
               STOOK_CLASS_MAX == 131072 && STOOK_CLASSES == 72 &&
               STOOK_CLASS_LINE_LARGE * sizeof(*stook_class_line) == 8200,
               "dropin/hot_*.S: TABLE_MAX, ALIGNED_MAX, CLASS_MAX, BY_CLASS, CLASSES");
_Static_assert(STOOK_BY_MALLOC == 0 && STOOK_BY_NEW == 1 && STOOK_BY_NEW_ARRAY == 2 &&
               STOOK_BY_NEW_ALIGNED == 3 && STOOK_BY_NEW_ARRAY_ALIGNED == 4,
               "dropin/hot_*.S: MISS has them in numbers");
_Static_assert(STOOK_MAP_SHIFT == 12 && STOOK_SLAB_BYTES_MAX - 1 == 0x7ffff &&
               STOOK_ENTRY_CACHE_SHIFT == 51 && sizeof(struct stook_shape) == 16 &&
               offsetof(struct stook_shape, starts) == 8 &&
               offsetof(struct stook_range, bytes) == 8 &&
               offsetof(struct stook_range, entries) == 16,
               "dropin/hot_*.S: FREE finds an object's offset, and the shape of its cache");

#ifdef __x86_64__
_Static_assert(STOOK_SEAL_BYTES == 8 && STOOK_SEAL_SAYS == 0x1fffff &&
               STOOK_SEALED_LIVE == 1 && STOOK_SEALED_BY_SHIFT == 1 &&
               STOOK_SEALED_BYTES_SHIFT == 4 &&
               STOOK_DELAY_FACTOR == 0x9e3779b97f4a7c15 && STOOK_SEAL_ONES == 0x0101010101010101 &&
               offsetof(struct stook_seal_secret, factor) == 8 &&
               offsetof(struct stook_seal_secret, tie) == 16 &&
               offsetof(struct stook_seal_secret, untie) == 24 &&
               sizeof(struct stook_sealed) == 32 &&
               offsetof(struct stook_sealed, at) == 8 &&
               offsetof(struct stook_sealed, delay.first) == 12 &&
               offsetof(struct stook_sealed, delay.mask) == 16 &&
               offsetof(struct stook_delay_block, place) == 8 && STOOK_DELAY_BLOCKS == 64 &&
               sizeof(stook_sealed_first) == 4 &&
               sizeof(stook_groups_exist) == 4, "dropin/hot_sealed_x86_64.h");
#endif

static void *no_memory(void)
{
        errno = ENOMEM;
        return NULL;
}

static void *aligned_or_enomem(size_t align, size_t size)
{
        return stook_malloc_aligned(align, size, STOOK_HOW_ERRNO);
}

static bool power_of_two(size_t n)
{
        return n && !(n & (n - 1));
}

static uint64_t how_by(unsigned by)
{
        return (uint64_t)by << STOOK_HOW_BY_SHIFT;
}

void stook_drop_in_free_miss(void *object, unsigned by)
{
        if (!stook_malloc_free_object(object, how_by(by)))
                stook_foreign_free(object);
}

void stook_drop_in_free_sized_miss(void *object, size_t size, unsigned by)
{
        if (!stook_malloc_free_sized(object, size, how_by(by)))
                stook_foreign_free(object);
}

void *stook_drop_in_calloc_miss(size_t n, size_t size)
{
        size_t bytes;

        if (STOOK_UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
                return no_memory();
        return stook_calloc_miss(bytes);
}

static STOOK_NOINLINE void *realloc_miss(void *object, size_t size)
{
        void *other;
        int   error;

        if (!size) {
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

/* Shrinking never fails. Not inlined: what stays needs no registers saved. */
static STOOK_NOINLINE void *realloc_by_copy(void *object, size_t size, unsigned index)
{
        size_t usable = stook_class_bytes[index - 1];
        void *other = stook_hot_object(size);

        if (STOOK_UNLIKELY(!other))
                return size <= usable ? object : no_memory();
        if (STOOK_UNLIKELY(__atomic_load_n(&stook_malloc_has_guarded, __ATOMIC_RELAXED)))
                memcpy(other, object, size < usable ? size : usable);
        else
                stook_copy_object(other, object, size < usable ? size : usable);
        stook_hot_free_known(object, 0, index * 8);
        return other;
}

STOOK_API void *realloc(void *object, size_t size)
{
        unsigned index;

        if (!object)                            /* the only way in which Lua allocates */
                return malloc(size);
        index = stook_resize_hot(object);
        if (STOOK_UNLIKELY(!index))
                return realloc_miss(object, size);
        if (stook_resize_stays(size, stook_class_bytes[index - 1]))
                return object;
        /*
         * Behind a charged object its group is named, and this copies in pieces of 16. A thread
         * enters a group by itself, so it is in none during the copy if there was none before.
         */
        if (STOOK_UNLIKELY(size - 1 >= STOOK_CLASS_TABLE_MAX ||
                           __atomic_load_n(&stook_groups_exist, __ATOMIC_RELAXED)))
                return realloc_miss(object, size);
        return realloc_by_copy(object, size, index);
}

STOOK_API void *reallocarray(void *object, size_t n, size_t size)
{
        size_t bytes;

        if (STOOK_UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
                return no_memory();
        return realloc(object, bytes);
}

void *stook_aligned_alloc_miss(size_t align, size_t size)
{
        if (STOOK_UNLIKELY(!power_of_two(align))) {
                errno = EINVAL;
                return NULL;
        }
        return aligned_or_enomem(align, size);
}

int stook_posix_memalign_miss(void **out, size_t align, size_t size)
{
        if (STOOK_UNLIKELY(!power_of_two(align) || align % sizeof(void *)))
                return EINVAL;

        void *object = stook_malloc_aligned(align, size, 0);

        if (STOOK_UNLIKELY(!object))
                return ENOMEM;
        *out = object;
        return 0;
}

void *stook_memalign_miss(size_t align, size_t size)
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
        return aligned_or_enomem(align, size);
}

void *valloc(size_t size);
STOOK_API void *valloc(size_t size)
{
        return aligned_or_enomem(stook_os_page_bytes(), size);
}

void *pvalloc(size_t size);
STOOK_API void *pvalloc(size_t size)
{
        size_t page = stook_os_page_bytes();

        if (STOOK_UNLIKELY(size > PTRDIFF_MAX))
                return no_memory();
        return aligned_or_enomem(page, size ? (size + page - 1) & -page : page);
}

size_t malloc_usable_size(void *object);
STOOK_API size_t malloc_usable_size(void *object)
{
        unsigned index = stook_object_class(object);
        bool     ours;
        size_t   usable;

        if (STOOK_LIKELY(index != 0))
                return stook_class_bytes[index - 1];
        if (!object)
                return 0;
        usable = stook_malloc_usable(object, &ours);
        if (STOOK_UNLIKELY(!ours))
                return stook_foreign_usable(object);
        return usable == STOOK_NO_OBJECT ? 0 : usable;
}
