/*
 * Purpose: the objects of a heap: allocated, resized, freed, recognised.
 * Place: API; calls malloc's parts, the slow calls of cache, slot for the hot path.
 *
 * A class gets its cache with its first object. Where no index is left for one, or no memory, the
 * objects come from the heap's next larger class, or are spans: they are never of a cache that
 * others use.
 * Concurrency: any thread. What makes a cache waits for the registry mutex, unless this thread has
 *  it, or the call is a resize of malloc's (stook_heap_beside).
 * Failure: NULL. Before that the heap gives back what it keeps, and its group may be asked.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "cache/cache_watch.h"
#include "gate/gate.h"
#include "group/group.h"
#include "heap/heaps.h"
#include "malloc/malloc_hot.h"
#include "os/os.h"
#include "report/report.h"

/* No slab of a class up to STOOK_HEAP_CLASS_MAX is larger. */
#define SLAB_MOST ((size_t)256 << 10)
/* How much larger than what was asked for an object of the next class may be. Arbitrary. */
#define LARGER_MOST 4

/* ---- classes ---- */

/* A resize by malloc's calls may be a handler's: it only tries. False: not to be had. */
static bool hold_registry(uint64_t how)
{
        if (!(how & STOOK_HOW_ERRNO))
                return stook_registry_try();
        stook_gate_check();
        if (stook_registry_is_mine())
                return false;
        stook_registry_wait();
        return true;
}

/* NULL: no memory, no index, or the registry is not to be had. */
static STOOK_COLD struct stook_cache *make_class(struct stook_heap *heap, unsigned class,
                                                 uint64_t how)
{
        size_t bytes = stook_class_bytes[class];
        unsigned capacity = stook_class_capacity(class);
        size_t full = STOOK_BARN_CACHE_BYTES / (capacity * bytes);
        char name[STOOK_NAME_BYTES];
        struct stook_cache_plan plan = {
                .name = name, .size = bytes, .capacity = (int)capacity,
                .full_limit = full < STOOK_CLASS_BARN_FULL ? (unsigned)full : STOOK_CLASS_BARN_FULL,
                .empty_limit = STOOK_BARN_SHEAVES, .grows = true, .flags = STOOK_CACHE_OF_MALLOC,
                .heap = heap,
        };
        struct stook_cache *cache;

        stook_report_format(name, sizeof(name), "%s-%u", heap->name, (uint64_t)bytes);
        plan.watch = stook_watch_duties.wanted(name, 0, &plan.debug);
        plan.align = plan.watch ? stook_class_align(class) : 16;
        if (!hold_registry(how))
                return NULL;
        cache = stook_heap_class(heap, class);
        if (!cache && stook_heap_is_live(heap) && !stook_cache_make(0, &plan, &cache))
                stook_heap_set_class(heap, class, cache);
        stook_registry_unlock();
        return cache;
}

/* NULL: the heap has none. */
static STOOK_COLD struct stook_cache *larger_class(const struct stook_heap *heap, unsigned class)
{
        size_t most = LARGER_MOST * (size_t)stook_class_bytes[class];
        struct stook_cache *cache;

        while (++class < STOOK_CLASSES && stook_class_bytes[class] <= most)
                if ((cache = stook_heap_class(heap, class)))
                        return cache;
        return NULL;
}

/* ---- objects ---- */

static void *large_object(struct stook_heap *heap, size_t align, size_t size, uint64_t how)
{
        size_t page = stook_os_page_bytes(), bytes = (size + page - 1) & ~(page - 1), more;
        struct stook_span *span;
        void *object;
        bool counted;

        if (size > PTRDIFF_MAX || !stook_heap_take_large(heap, bytes))
                return NULL;
        object = stook_large_alloc(align, size, stook_how_with_group(how & ~(uint64_t)
                                                                     STOOK_HOW_ERRNO, heap->group));
        if (STOOK_UNLIKELY(!object)) {
                stook_heap_give_large(heap, bytes);
                return NULL;
        }
        span = stook_span_large_at((uintptr_t)object);
        more = span->bytes - bytes;
        counted = !more || stook_heap_take_large(heap, more);
        if (STOOK_LIKELY(counted) && STOOK_LIKELY(stook_heap_note_span(heap, span))) {
                __atomic_store_n(&span->use.heap, heap, __ATOMIC_RELAXED);
                return object;
        }
        stook_large_free(object, 0);
        stook_heap_give_large(heap, counted ? bytes + more : bytes);
        return NULL;
}

void stook_heap_large_left(struct stook_span *span)
{
        struct stook_heap *heap = span->use.heap;

        stook_heap_forget_span(heap, span);
        stook_heap_give_large(heap, span->bytes);
        __atomic_store_n(&span->use.heap, NULL, __ATOMIC_RELAXED);
}

/* An object that grows may get ahead (malloc/large.c): at most a quarter, and a page. */
static size_t more_at_most(size_t size)
{
        return size / 4 + stook_os_page_bytes();
}

/*
 * Meanwhile the object is of no heap, and all that it may grow by is taken. Near the limit that is
 * what it needs, and it is cut to that.
 */
void *stook_heap_resize_large(struct stook_span *span, size_t size)
{
        struct stook_heap *heap = span->use.heap;
        uint32_t entry = span->heap_entry;
        size_t had = span->bytes, has = had, least = stook_os_whole_pages(size);
        void *object;

        if (STOOK_LIKELY(!heap))
                return stook_large_resize(span, size);
        if (STOOK_UNLIKELY(size > PTRDIFF_MAX))
                return NULL;
        if (size > had && stook_heap_take_large(heap, least + more_at_most(size) - had))
                has = least + more_at_most(size);
        else if (size > had && stook_heap_take_large(heap, least - had))
                has = least;
        else if (size > had)
                return NULL;
        __atomic_store_n(&span->use.heap, NULL, __ATOMIC_RELAXED);
        object = stook_large_resize(span, size);
        if (object)
                span = stook_span_large_at((uintptr_t)object);
        if (STOOK_UNLIKELY(span->bytes > has)) {
                size_t ahead = span->bytes;

                stook_span_resize(span, size);
                if (span->use.group)
                        stook_group_uncharge(span->use.group, ahead - span->bytes);
        }
        stook_heap_span_moved(heap, entry, span);
        __atomic_store_n(&span->use.heap, heap, __ATOMIC_RELAXED);
        stook_heap_give_large(heap, has - span->bytes);         /* modulo 2^64 */
        return object;
}

/*
 * Racy. What fails then fails for a limit: other caches are not asked for memory, which is there.
 */
static bool is_near_limit(const struct stook_heap *heap)
{
        uint64_t limit = __atomic_load_n(&heap->limit, __ATOMIC_RELAXED);
        uint64_t bytes = __atomic_load_n(&heap->bytes, __ATOMIC_RELAXED);

        return heap->group || bytes > limit || limit - bytes < SLAB_MOST;
}

/* Of a watched cache the call says which size was asked for. */
static void *class_object(struct stook_heap *heap, struct stook_cache *cache, size_t size,
                          uint64_t how)
{
        if (is_near_limit(heap))
                how |= STOOK_HOW_ASKED;
        if (STOOK_LIKELY(!cache->watch))
                how = stook_how_without_size(how);
        else if (!stook_how_has_size(how))
                how = stook_how_with_size(how, size);
        return stook_alloc_slow(cache, how & ~(uint64_t)STOOK_HOW_ERRNO);
}

/* With a size in @how: @size is that, rounded up for an alignment. */
static void *get(struct stook_heap *heap, size_t size, uint64_t how)
{
        unsigned class;
        struct stook_cache *cache;

        if (STOOK_UNLIKELY(size > STOOK_HEAP_CLASS_MAX))
                return large_object(heap, 1, size, how);
        class = stook_class_for(size);
        cache = stook_heap_class(heap, class);
        if (STOOK_UNLIKELY(!cache))
                cache = make_class(heap, class, how);
        if (STOOK_LIKELY(cache != NULL))
                return class_object(heap, cache, size, how);
        __atomic_fetch_add(&heap->spilled, 1, __ATOMIC_RELAXED);
        cache = stook_how_has_size(how) ? NULL : larger_class(heap, class);
        return cache ? class_object(heap, cache, size, how)
                     : large_object(heap, 1, size ? size : 1, how);
}

/*
 * False: nothing may help. The group is asked for a page: so its callback runs, which the making of
 * a slab must not call.
 */
static STOOK_COLD bool may_help(struct stook_heap *heap, size_t size)
{
        size_t page = stook_os_page_bytes();

        if (size > __atomic_load_n(&heap->limit, __ATOMIC_RELAXED) || size > PTRDIFF_MAX ||
            stook_registry_is_mine() || stook_heap_shrink(heap))
                return false;
        if (heap->group && stook_group_charge(heap->group, page, 0))
                stook_group_uncharge(heap->group, page);
        return true;
}

/* @align above 16: a span is wanted. */
static void *miss(struct stook_heap *heap, size_t align, size_t size, uint64_t how)
{
        unsigned tries = 0;
        void *object;

        if (STOOK_UNLIKELY(!stook_heap_is_live(heap))) {
                stook_heap_report_destroyed(heap);
                return stook_slow_answer(how & STOOK_HOW_ERRNO, NULL, 0);
        }
        do
                object = align > 16 ? large_object(heap, align, size ? size : 1, how)
                                    : get(heap, size, how);
        while (STOOK_UNLIKELY(!object) && !tries++ && may_help(heap, size));
        if (STOOK_UNLIKELY(!object))
                __atomic_fetch_add(&heap->refusals, 1, __ATOMIC_RELAXED);
        return stook_slow_answer(how & STOOK_HOW_ERRNO, object, 0);
}

STOOK_NOINLINE void *stook_heap_miss(struct stook_heap *heap, size_t size, uint64_t how)
{
        return miss(heap, 1, size, how);
}

/* NULL: a miss, or a size above the table. */
STOOK_INLINE void *hot(struct stook_heap *heap, size_t size)
{
        if (STOOK_UNLIKELY(size > STOOK_CLASS_TABLE_MAX))
                return NULL;
        return stook_section_pop(__atomic_load_n(&heap->line[stook_class_for(size)],
                                                 __ATOMIC_RELAXED));                    /* M1 */
}

STOOK_API void *stook_heap_alloc(struct stook_heap *heap, size_t size)
{
        void *object = hot(heap, size);

        return STOOK_LIKELY(object != NULL) ? object
                                            : stook_heap_miss(heap, size, STOOK_HOW_ERRNO);
}

STOOK_API void *stook_heap_calloc(struct stook_heap *heap, size_t n, size_t size)
{
        size_t bytes;
        void *object;

        if (STOOK_UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
                return (errno = ENOMEM, NULL);
        object = hot(heap, bytes);
        if (STOOK_LIKELY(object != NULL))
                return memset(object, 0, bytes);
        return stook_heap_miss(heap, bytes, STOOK_HOW_ERRNO | STOOK_HOW_ZERO);
}

STOOK_API void *stook_heap_aligned_alloc(struct stook_heap *heap, size_t align, size_t size)
{
        size_t rounded;
        void *object;

        if (STOOK_UNLIKELY(!align || (align & (align - 1))))
                return (errno = EINVAL, NULL);
        if (align <= 16)
                return stook_heap_alloc(heap, size);
        if (align > stook_os_page_bytes() || size > STOOK_HEAP_CLASS_MAX)
                return miss(heap, align, size, STOOK_HOW_ERRNO);
        rounded = size ? stook_malloc_round_up(size, align) : align;
        object = hot(heap, rounded);
        if (STOOK_LIKELY(object != NULL))
                return object;
        return stook_heap_miss(heap, rounded, stook_how_with_size(STOOK_HOW_ERRNO, size));
}

/* ---- frees, and what an object is ---- */

struct stook_heap *stook_object_heap(const void *object)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        unsigned index = stook_entry_cache(entry);
        struct stook_span *span;

        if (index)
                return stook_cache_heaps[index];
        span = entry ? stook_span_large_at((uintptr_t)object) : NULL;
        return span ? span->use.heap : NULL;
}

void *stook_heap_beside(const void *object, size_t size, bool span)
{
        struct stook_heap *heap = stook_object_heap(object);

        if (STOOK_UNLIKELY(heap != NULL))
                return get(heap, size, 0);
        return span ? stook_large_alloc(1, size, 0) : stook_malloc_slow(size, 0);
}

static STOOK_COLD void report_other(const struct stook_heap *or_null, const void *object)
{
        bool ours;

        if (stook_malloc_usable(object, &ours) == STOOK_NO_OBJECT)
                stook_cache_free_misuse(NULL, object);
        else
                stook_report_about(&(struct stook_report_about){
                        .fault = STOOK_FAULT_WRONG_CACHE, .object = object,
                        .heap_name = or_null ? or_null->name : NULL,
                        .detail = "an object that is not of this heap" });
}

static void release(void *object)
{
        if (!stook_malloc_free_object(object, 0))
                stook_cache_free_misuse(NULL, object);
}

/* Full sheaves, large objects, and what is misuse. */
static STOOK_NOINLINE void free_miss(struct stook_heap *heap, void *object)
{
        if (!object)
                return;
        if (stook_object_heap(object) == heap)
                release(object);
        else
                report_other(heap, object);
}

/* As stook_free_hot(), of an object of the heap. */
STOOK_INLINE bool free_hot(struct stook_heap *heap, void *object)
{
        uintptr_t addr = (uintptr_t)object, off = addr - stook_range.base;
        uint64_t entry;
        unsigned index;

        if (STOOK_UNLIKELY(off >= STOOK_RANGE_BYTES))
                return false;
        entry = __atomic_load_n(&stook_range.entries[off >> STOOK_MAP_SHIFT], __ATOMIC_RELAXED);
        index = stook_entry_cache(entry);
        if (STOOK_UNLIKELY(stook_cache_heaps[index] != heap ||
                           !stook_object_starts(index, stook_entry_offset(entry, addr))))
                return false;
        return stook_slot_push(index << STOOK_LINE_SHIFT, object);
}

STOOK_API void stook_heap_free(struct stook_heap *heap, void *object)
{
        if (STOOK_UNLIKELY(!free_hot(heap, object)))
                free_miss(heap, object);
}

STOOK_API void *stook_heap_realloc(struct stook_heap *heap, void *object, size_t size)
{
        void *other;
        int error;

        if (!object)
                return stook_heap_alloc(heap, size);
        if (STOOK_UNLIKELY(stook_object_heap(object) != heap)) {
                report_other(heap, object);
                return (errno = EINVAL, NULL);
        }
        other = stook_malloc_resize(object, size, &error);
        if (STOOK_UNLIKELY(!other) && error == ENOMEM && may_help(heap, size))
                other = stook_malloc_resize(object, size, &error);
        if (STOOK_UNLIKELY(!other)) {
                __atomic_fetch_add(&heap->refusals, 1, __ATOMIC_RELAXED);
                errno = error == ENOMEM ? ENOMEM : EINVAL;
        }
        return other;
}

STOOK_API struct stook_heap *stook_heap_of(const void *object)
{
        return stook_object_heap(object);
}
