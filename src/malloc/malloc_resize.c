/*
 * Purpose: realloc: in place while the object's own stride or span suffices, by the page tables for
 * large objects, by copying otherwise.
 * Place: called by malloc_api.c and the drop-in's entry.c; calls malloc's other files, cache and
 *  pages.
 * Invariants:
 *  I1 shrinking never fails: without memory for something smaller the object stays where it is.
 *  I2 an object stays while it uses more than half of its stride: sizes that go up and down do not
 *     copy.
 *
 * An object that grows is likely to grow again, and an object of a slab cannot grow in place. From
 * GROWN_LEAST on it moves to a span, which grows into the free pages behind it. That saves the
 * copies of the largest classes, which are most of the bytes that a doubled size copies.
 */
#include <errno.h>
#include <string.h>
#include "cache/cache_watch.h"
#include "malloc/malloc.h"
#include "pages/pagemap.h"
#include "report/report.h"
#include "slab/slab.h"

/*
 * A span costs about 150 ns more than an object of a class. Measured in ns a step, doubled from 16
 * bytes to 1 MiB: 419 without spans, 103 from 64 KiB on, 70 from 32 KiB, 49 from 16 KiB. But where
 * 64 objects of up to 100 KiB are doubled at random, the pages behind them are seldom free: 3850
 * without spans, 4380 with either of the former, 5230 from 16 KiB on.
 */
#define GROWN_LEAST ((size_t)64 << 10)

/* @other is NULL or takes the place of @object, of which it gets the first @bytes. */
static void *replace(void *object, void *other, size_t bytes)
{
        if (STOOK_UNLIKELY(!other))
                return NULL;
        memcpy(other, object, bytes);
        stook_malloc_free_object(object, 0);
        return other;
}

/* Another object with the first @bytes of this one. */
static void *resize_by_copy(void *object, size_t size, size_t bytes)
{
        return replace(object, stook_heap_duties.beside(object, size, false), bytes);
}

static void *grow_small(void *object, size_t size, size_t usable)
{
        void *other = NULL;

        if (size >= GROWN_LEAST)
                other = replace(object, stook_heap_duties.beside(object, size, true), usable);
        return other || size > STOOK_CLASS_MAX ? other : resize_by_copy(object, size, usable);
}

static void *resize_small(void *object, size_t size, size_t usable)
{
        if (size > usable)
                return grow_small(object, size, usable);
        if (size > usable / 2 || usable <= 16)
                return object;                                          /* I2 */
        return resize_by_copy(object, size, size) ?: object;            /* I1 */
}

/*
 * Where reports do not abort: is this an object that a free would report? The call looks before it
 * does anything. Otherwise the free of the old object notices, and that comes when the caller has
 * another one already.
 */
static STOOK_COLD bool is_reported_free(uint64_t entry, void *object)
{
        struct stook_cache *cache = stook_cache_at(stook_entry_cache(entry));

        if (!stook_entry_cache(entry))
                return false;
        if (!stook_slab_object_out(&cache->slabs, object))
                stook_cache_free_misuse(NULL, object);
        else if (stook_slot_ops()->peek(cache->front.offset) == object)
                stook_cache_free_double(&cache->front, object);
        else
                return false;
        return true;
}

/*
 * The usable bytes of a live object. STOOK_NO_OBJECT: there is none, and *@error says what the
 * caller learns. Not inlined: for the depth of the stack.
 */
STOOK_NOINLINE size_t stook_malloc_resizable(void *object, int *error)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        bool     ours;
        size_t   usable = stook_malloc_usable(object, &ours);

        *error = EFAULT;
        if (!ours)
                return STOOK_NO_OBJECT;
        *error = EINVAL;
        if (STOOK_UNLIKELY(usable == STOOK_NO_OBJECT)) {
                stook_cache_free_misuse(NULL, object);
                return STOOK_NO_OBJECT;
        }
        if (STOOK_UNLIKELY(stook_report_goes_on()) && is_reported_free(entry, object))
                return STOOK_NO_OBJECT;
        *error = ENOMEM;
        return usable;
}

void *stook_malloc_resize(void *object, size_t size, int *error)
{
        size_t usable = stook_malloc_resizable(object, error);
        struct stook_span *span;
        unsigned index;

        if (STOOK_UNLIKELY(usable == STOOK_NO_OBJECT))
                return NULL;
        index = stook_entry_cache(stook_pagemap_get((uintptr_t)object));
        if (STOOK_UNLIKELY(index && stook_cache_at(index)->watch))
                return stook_watch_duties.resize(stook_cache_at(index), object, size, usable,
                                                 error);
        span = STOOK_LIKELY(index != 0) ? NULL : stook_span_large_at((uintptr_t)object);
        if (STOOK_UNLIKELY(span && stook_large_options.watched))
                return stook_watch_duties.large_resize(span, size, usable);
        /* A sample has what lies behind it as slack: it is resized as its class is. */
        if (span && !span->use.slack && !span->use.guarded &&
            (size > STOOK_CLASS_MAX || size > usable / 2))
                return stook_heap_duties.resize(span, size);
        return resize_small(object, size, usable);
}
