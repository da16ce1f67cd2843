/*
 * Purpose: realloc: in place while the object's own slot or span does, by the page tables for large objects,
 * by copying otherwise.
 * Invariants:
 *  I1 shrinking never fails: without memory for something smaller the object stays where it is.
 *  I2 an object keeps its slot while it uses more than half of it: sizes that go up and down do not copy.
 */
#include <errno.h>
#include <string.h>
#include "cache/cache.h"
#include "malloc/large.h"
#include "malloc/malloc.h"
#include "pages/pagemap.h"
#include "report/report.h"

/* Another object with the first @bytes of this one. */
static void *resize_by_copy(void *object, size_t size, size_t bytes)
{
        void *other = stook_malloc_object(size);

        if (STOOK_UNLIKELY(!other))
                return NULL;
        memcpy(other, object, bytes);
        stook_malloc_release(object);
        return other;
}

static void *resize_small(void *object, size_t size, size_t usable)
{
        if (size > usable)
                return resize_by_copy(object, size, usable);
        if (size > usable / 2 || usable <= 16)
                return object;                                          /* I2 */

        void *other = resize_by_copy(object, size, size);

        return other ? other : object;                                  /* I1 */
}

static void *resize_large(struct stook_span *span, void *object, size_t size)
{
        if (size > STOOK_CLASS_MAX)
                return stook_large_resize(span, size);

        void *other = resize_by_copy(object, size, size < span->bytes ? size : span->bytes);

        return other || size > span->bytes ? other : object;            /* I1 */
}

/*
 * Where reports do not abort: is this an object that a free would report? Looked for before anything is done, for the
 * free of the old object, which notices it otherwise, comes when the caller has another one already.
 */
static STOOK_COLD bool is_reported_free(uint64_t entry, void *object)
{
        struct stook_cache *cache = stook_cache_at(stook_entry_cache(entry));

        if (!stook_entry_cache(entry))
                return false;
        if (!stook_slab_object_valid(&cache->slabs, object))
                stook_cache_free_misuse(NULL, object);
        else if (stook_slot_ops()->peek(cache->front.offset) == object)
                stook_cache_free_double(&cache->front, object);
        else
                return false;
        return true;
}

void *stook_malloc_resize(void *object, size_t size, int *error)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        bool     ours;
        size_t   usable = stook_malloc_usable(object, &ours);

        *error = EFAULT;
        if (!ours)
                return NULL;
        *error = EINVAL;
        if (STOOK_UNLIKELY(!usable)) {
                stook_cache_free_misuse(NULL, object);
                return NULL;
        }
        if (STOOK_UNLIKELY(stook_report_goes_on()) && is_reported_free(entry, object))
                return NULL;
        *error = ENOMEM;
        if (STOOK_LIKELY(stook_entry_cache(entry) != 0))
                return resize_small(object, size, usable);
        return resize_large(stook_span_large_at((uintptr_t)object), object, size);
}
