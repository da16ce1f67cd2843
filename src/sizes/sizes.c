/*
 * Purpose: malloc's calls beyond the C library's: sizes that waste nothing, what an object got,
 * growth in place, aligned objects of another size, many objects at once.
 * Place: API; calls malloc, which knows classes and spans, and cache for many objects of a class.
 * Concurrency: as the calls of malloc.
 * Failure: NULL, false or -errno, and nothing changed.
 */
#include <errno.h>
#include <string.h>
#include <stook/malloc.h>

#include "cache/cache_watch.h"
#include "gate/gate.h"
#include "group/group.h"
#include "heap/heaps.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "pages/pagemap.h"

/* ---- sizes ---- */

STOOK_API size_t stook_good_size(size_t size)
{
        /* The last word of an object that is charged names the group. */
        size_t word = stook_gate_start() && stook_group_now() ? STOOK_ACCOUNT_BYTES : 0;
        size_t page = stook_os_page_bytes();

        if (size > PTRDIFF_MAX)         /* no object is so large */
                return size;
        if (size <= STOOK_CLASS_MAX - word)
                return stook_class_bytes[stook_class_for(size + word)] - word;
        if (!stook_large_options.guarded)
                size = stook_large_rounded(size);
        return (size + page - 1) & -page;
}

STOOK_API void *stook_malloc_at_least(size_t size, size_t *got)
{
        void *object = stook_malloc(size);

        if (object && got)
                *got = stook_usable_size(object);
        return object;
}

/* ---- another size ---- */

/* A large object, into free pages behind it. What it grows by is charged first. */
static bool expand_large(struct stook_span *span, size_t size)
{
        size_t before = span->bytes, page = stook_os_page_bytes(), more;
        uint16_t group = span->use.group;
        bool done;

        if (size > PTRDIFF_MAX || span->use.heap)       /* a heap counts its bytes */
                return false;
        more = ((size + page - 1) & -page) - before;
        if (group && !stook_group_charge(group, more, STOOK_CHARGE_TRY))
                return false;
        done = stook_span_resize(span, size);
        if (group && !done)
                stook_group_uncharge(group, more);
        return done;
}

STOOK_API bool stook_try_expand(void *object, size_t size)
{
        struct stook_span *span;
        size_t usable;
        int    error;

        if (!object)
                return false;
        usable = stook_malloc_resizable(object, &error);
        if (usable == STOOK_NO_OBJECT) {
                if (error == EFAULT)
                        stook_cache_free_misuse(NULL, object);
                return false;
        }
        if (size <= usable)
                return true;
        /* What watches large objects keeps their sizes, and guards stand behind them. */
        if (stook_entry_cache(stook_pagemap_get((uintptr_t)object)) || stook_large_options.watched)
                return false;
        span = stook_span_large_at((uintptr_t)object);
        return !span->use.guarded && !span->use.slack && expand_large(span, size);
}

static bool is_aligned(const void *object, size_t align)
{
        return !((uintptr_t)object & (align - 1));
}

/*
 * True: stook_realloc keeps the alignment. Objects are aligned to 16 bytes, and what is large
 * before and afterwards to pages.
 */
static bool realloc_aligns(size_t align, size_t size, size_t usable)
{
        return align <= 16 || (align <= stook_os_page_bytes() && size > STOOK_CLASS_MAX &&
                               usable > STOOK_CLASS_MAX && !stook_large_options.watched);
}

STOOK_API void *stook_aligned_realloc(void *object, size_t align, size_t size)
{
        struct stook_heap *heap;
        size_t usable;
        void  *other;
        int    error;

        if (!align || (align & (align - 1))) {
                errno = EINVAL;
                return NULL;
        }
        if (!object)
                return stook_aligned_alloc(align, size);
        usable = stook_malloc_resizable(object, &error);
        if (usable == STOOK_NO_OBJECT) {
                if (error == EFAULT)
                        stook_cache_free_misuse(NULL, object);
                errno = EINVAL;
                return NULL;
        }
        heap = stook_object_heap(object);
        if (is_aligned(object, align)) {
                if (realloc_aligns(align, size, usable))
                        return stook_realloc(object, size);
                if (size > usable / 2 && stook_try_expand(object, size))
                        return object;
        }
        other = heap ? stook_heap_aligned_alloc(heap, align, size)
                     : stook_aligned_alloc(align, size);
        if (!other)                     /* shrinking does not fail */
                return size <= usable && is_aligned(object, align) ? object : NULL;
        memcpy(other, object, size < usable ? size : usable);
        stook_free(object);
        return other;
}

/* ---- many ---- */

/* The cache whose sheaves serve @size, where no group is charged and nothing watches. */
static struct stook_cache *plain_cache(size_t size)
{
        if (!stook_gate_start() || size > STOOK_CLASS_MAX || stook_malloc_is_watched ||
            stook_group_now())
                return NULL;
        return stook_class_cache(stook_class_for(size));
}

static int one_by_one(size_t size, size_t n, void **objects)
{
        for (size_t i = 0; i < n; i++) {
                objects[i] = stook_malloc_slow(size, 0);
                if (!objects[i]) {
                        stook_cache_free_bulk(NULL, i, objects);
                        return -ENOMEM;
                }
        }
        return 0;
}

STOOK_API int stook_malloc_bulk(size_t size, size_t n, void **objects)
{
        struct stook_cache *cache;

        if (!n)
                return 0;
        if (!objects)
                return -EINVAL;
        if (n > PTRDIFF_MAX / sizeof(*objects))         /* no array has so many pointers */
                return -ENOMEM;
        cache = plain_cache(size);
        if (!cache)
                return one_by_one(size, n, objects);
        return stook_alloc_bulk_slow(cache, n, objects, 0) ? 0 : -ENOMEM;
}

STOOK_API void stook_free_bulk(size_t n, void **objects)
{
        stook_cache_free_bulk(NULL, n, objects);
}
