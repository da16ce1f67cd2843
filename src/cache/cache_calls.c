/*
 * Purpose: the calls that allocate and free the objects of a cache.
 *
 * One object: the fast path is the section that callers inline, too, with a guess of the top
 * object. A free proves by the pagemap that the object is one of this cache (object_id.h), then
 * pushes it on the slot's sheaf. Whatever misses, or asks for more, is one slow call
 * (cache_slow.h), which never fails while there is memory.
 * Many at once: sheaves are emptied and filled by copies. What they do not have or take goes
 * straight to the slabs, which group it.
 * Place: API; calls slot, the slow calls, pages for the lookup; and malloc, by a table, for large
 *  objects of bulk frees that name no cache.
 * What the proof does not find: an object that was never handed out, or is free in its slab
 * already, is noticed when its sheaf is drained; a second free of a sheaf's top object at once.
 * Failure: an allocation is NULL with errno ENOMEM (EINVAL for arguments), or all or none of many,
 *  nothing changed. A free never fails. Misuse is reported (report/); where reports do not abort,
 *  the call does nothing.
 */
#include <errno.h>
#include <stdint.h>

#include "cache/cache_watch.h"
#include "cache/object_id.h"
#include "os/os.h"
#include "pages/span.h"
#include "report/report.h"
#include "slot/slot_hot.h"
#include "slot/slot_trip.h"

/* ---- one object is allocated ---- */

/* Aligned, as is free: how the function lies in lines of code decides a tenth of a pair. */
STOOK_API_HOT void *stook_cache_alloc(struct stook_cache *cache)
{
        void *object;

        if (STOOK_UNLIKELY(stook_front_is_closed(&cache->front)))
                return stook_account_duties.alloc_closed(cache);
        object = stook_section_pop_guessed_v1(cache->front.line);
        if (STOOK_LIKELY(object))
                return object;
        return stook_alloc_slow(cache, STOOK_HOW_ERRNO);
}

/* What a call with flags asks for, of any node. */
STOOK_INLINE void *pop_or_slow(struct stook_cache *cache, uint64_t how)
{
        void *object = stook_front_pop(&cache->front);

        if (STOOK_UNLIKELY(!object))
                return stook_alloc_slow(cache, how);
        return how & STOOK_HOW_ZERO ? memset(object, 0, stook_slow_bytes(cache)) : object;
}

static void *refuse(void)
{
        errno = EINVAL;
        return NULL;
}

STOOK_API void *stook_cache_zalloc(struct stook_cache *cache)
{
        if (STOOK_UNLIKELY(!cache || cache->ctor))
                return refuse();
        return pop_or_slow(cache, STOOK_HOW_ERRNO | STOOK_HOW_ZERO);
}

STOOK_API void *stook_cache_alloc_nolock(struct stook_cache *cache)
{
        return pop_or_slow(cache, STOOK_HOW_ERRNO | STOOK_HOW_NOLOCK);
}

/* @node -1: the one in use, if @flags ask for it; else any. */
static uint64_t how_of(unsigned flags, int node)
{
        uint64_t how = STOOK_HOW_ERRNO | flags;

        return node >= 0 || (flags & STOOK_ALLOC_THISNODE) ? stook_how_with_node(how, node) : how;
}

STOOK_API void *stook_cache_alloc_flags(struct stook_cache *cache, unsigned flags)
{
        if (STOOK_UNLIKELY(!stook_flags_good(cache, flags)))
                return refuse();
        return flags & STOOK_ALLOC_THISNODE ? stook_alloc_slow(cache, how_of(flags, -1))
                                      : pop_or_slow(cache, STOOK_HOW_ERRNO | flags);
}

STOOK_API void *stook_cache_alloc_node(struct stook_cache *cache, unsigned flags, int node)
{
        if (!stook_flags_good(cache, flags) ||
            node < -1 || (node >= 0 && !stook_os_node_exists((unsigned)node)))
                return refuse();
        return stook_alloc_slow(cache, how_of(flags, node));
}

/* ---- one object is freed ---- */

/* @entry: the pagemap's of @object. The report names the cache @or_null, if there is one. */
static void report(enum stook_fault fault, const struct stook_cache *or_null, uint64_t entry,
                   const void *object, const char *detail)
{
        const struct stook_span *span = stook_entry_cache(entry) ? stook_entry_span(entry) : NULL;
        struct stook_report_about about = {
                .fault = fault, .object = object, .detail = detail,
                .cache_name = or_null ? stook_cache_name(or_null) : NULL,
        };

        if (span) {
                about.slab = (const void *)span->start;
                about.offset = (uintptr_t)object - span->start;
        }
        stook_watch_duties.describe(span ? stook_cache_at(stook_entry_cache(entry)) : NULL, object,
                                    &about);
        if (!span)
                stook_sample_duties.describe(object, &about);
        stook_report_about(&about);
}

STOOK_COLD void stook_cache_free_misuse(struct stook_cache *or_null, const void *object)
{
        uintptr_t addr = (uintptr_t)object;
        uint64_t entry = stook_pagemap_get(addr);
        unsigned index = stook_entry_cache(entry);
        struct stook_cache *cache = index ? stook_cache_at(index) : NULL;
        struct stook_cache *named = or_null ? or_null : cache;
        bool interior, ours;
        char detail[96];
        uint32_t offset, at;

        if (!cache) {
                ours = stook_pagemap_ours(addr);
                if (stook_span_large_at(addr))
                        report(STOOK_FAULT_WRONG_CACHE, named, entry, object,
                               "a large object of malloc");
                else
                        report(ours ? STOOK_FAULT_NOT_LIVE : STOOK_FAULT_FOREIGN, named, entry,
                               object, !object ? "NULL in a bulk free"
                                       : ours ? NULL : "no memory of this library");
                return;
        }
        offset = stook_entry_offset(entry, addr);
        at = stook_slabs_index(&cache->slabs, offset, &interior);
        if (interior) {
                offset -= at * (uint32_t)cache->slabs.stride;
                stook_report_format(detail, sizeof(detail),
                                    "%u bytes from the start of the object at %p",
                                    (uint64_t)offset, (const char *)object - offset);
                report(STOOK_FAULT_INTERIOR, named, entry, object,
                       at < cache->slabs.objects ? detail : "it is behind the slab's last object");
        } else if (!stook_slab_object_out(&cache->slabs, object)) {
                report(STOOK_FAULT_NOT_LIVE, named, entry, object,
                       "it is free in its slab already, or was never handed out");
        } else if (or_null && cache != or_null) {
                stook_report_format(detail, sizeof(detail), "it belongs to cache %s",
                                    stook_cache_name(cache));
                report(STOOK_FAULT_WRONG_CACHE, named, entry, object, detail);
        } else {
                report(STOOK_FAULT_DOUBLE_FREE, named, entry, object,
                       cache->watch ? stook_watch_duties.where(cache, object) : NULL);
        }
}

void stook_cache_free_double(struct stook_front *front, void *object)
{
        report(STOOK_FAULT_DOUBLE_FREE, stook_container_of(front, struct stook_cache, front),
               stook_pagemap_get((uintptr_t)object), object, NULL);
}

/*
 * What the short cuts below do not answer: NULL, pointers outside of the one huge range, misuse.
 */
static STOOK_NOINLINE void free_odd(struct stook_cache *cache, void *object, uint64_t how)
{
        if (stook_cache_owns(cache, object))
                stook_free_slow(cache, object, how);
        else if (object)
                stook_cache_free_misuse(cache, object);
}

/* @how: 0, or STOOK_HOW_NOLOCK, for which a closed front is no short cut. */
STOOK_INLINE void push_or_slow(struct stook_cache *cache, void *object, uint64_t how)
{
        uintptr_t off = (uintptr_t)object - stook_range.base;
        uint64_t entry;

        if (STOOK_UNLIKELY(off >= STOOK_RANGE_BYTES))
                return free_odd(cache, object, how);
        entry = __atomic_load_n(&stook_range.entries[off >> STOOK_MAP_SHIFT], __ATOMIC_RELAXED);
        if (STOOK_UNLIKELY(!stook_object_is_of(cache, entry, object)))
                return free_odd(cache, object, how);
        if (!how && STOOK_UNLIKELY(stook_front_is_closed(&cache->front)))
                stook_account_duties.free_closed(cache, object);
        else if (STOOK_UNLIKELY(stook_section_push_guessed_v1(cache->front.line, object) !=
                                STOOK_PUSH_DONE))
                stook_free_slow(cache, object, how);
}

STOOK_API_HOT void stook_cache_free(struct stook_cache *cache, void *object)
{
        push_or_slow(cache, object, 0);
}

STOOK_API void stook_cache_free_nolock(struct stook_cache *cache, void *object)
{
        push_or_slow(cache, object, STOOK_HOW_NOLOCK);
}

/* ---- many ---- */

/*
 * Objects of mixed caches are sorted a window at a time, so that many caches cost no more than the
 * square of this.
 */
#define WINDOW 256

STOOK_API int stook_cache_alloc_bulk(struct stook_cache *cache, unsigned flags, size_t n,
                                     void **objects)
{
        if (!stook_flags_good(cache, flags) || (!objects && n))
                return -EINVAL;
        if (!n)
                return 0;
        if (n > PTRDIFF_MAX / sizeof(*objects))         /* no array has so many pointers */
                return -ENOMEM;
        return stook_alloc_bulk_slow(cache, n, objects, flags) ? 0 : -ENOMEM;
}

/* Moves what is no object of @cache behind the others and reports it. Returns how many are. */
static STOOK_COLD size_t sort_out(struct stook_cache *cache, size_t n, void **objects)
{
        size_t good = 0;

        for (size_t i = 0; i < n; i++)
                if (stook_cache_owns(cache, objects[i]))
                        objects[good++] = objects[i];
                else
                        stook_cache_free_misuse(cache, objects[i]);
        return good;
}

/* Not inlined: its values need not be saved while objects go down. */
static STOOK_NOINLINE bool owns_all(const struct stook_cache *cache, size_t n, void *const *objects)
{
        return stook_cache_owns_all(cache, n, objects);
}

static void free_one_cache(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        if (STOOK_UNLIKELY(!owns_all(cache, n, objects)))
                n = sort_out(cache, n, objects);
        stook_free_bulk_slow(cache, n, objects, how);
}

/* An object of no cache: a large one of malloc's, whose size alone does not tell it. */
static void free_large(void *object, uint64_t how)
{
        if (!stook_large_duties.free(object, how))
                stook_cache_free_misuse(NULL, object);
}

/* The first object's cache takes all of its kind in the window. Returns how many have gone. */
static size_t free_first_kind(size_t n, void **objects, uint64_t how)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)objects[0]));
        size_t same = 1;

        if (!index) {
                free_large(objects[0], how);
                return 1;
        }
        for (size_t i = 1; i < n; i++)
                if (stook_entry_cache(stook_pagemap_get((uintptr_t)objects[i])) == index) {
                        void *object = objects[i];

                        objects[i] = objects[same];
                        objects[same++] = object;
                }
        free_one_cache(stook_cache_at(index), same, objects, how);
        return same;
}

static STOOK_NOINLINE void free_all_kinds(size_t n, void **objects, uint64_t how)
{
        while (n) {
                size_t gone = free_first_kind(n < WINDOW ? n : WINDOW, objects, how);

                objects += gone;
                n -= gone;
        }
}

STOOK_INLINE void free_bulk(struct stook_cache *or_null, size_t n, void **objects, uint64_t how)
{
        if (or_null)
                free_one_cache(or_null, n, objects, how);
        else
                free_all_kinds(n, objects, how);
}

STOOK_API void stook_cache_free_bulk(struct stook_cache *or_null, size_t n, void **objects)
{
        free_bulk(or_null, n, objects, 0);
}

STOOK_API void stook_cache_free_bulk_nolock(struct stook_cache *or_null, size_t n, void **objects)
{
        stook_lock_raise(0);                    /* uncharges look for locks, too */
        free_bulk(or_null, n, objects, STOOK_HOW_NOLOCK);
        stook_lock_lower();
}

/* ---- what an object is ---- */

STOOK_API struct stook_cache *stook_object_cache(const void *object)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)object));
        struct stook_cache *cache = stook_cache_at(index);

        if (!index || !stook_cache_owns(cache, object) ||
            !stook_slab_object_out(&cache->slabs, object))
                return NULL;
        return cache;
}

STOOK_API int stook_object_node(const void *object)
{
        const struct stook_span *span;

        if (stook_object_cache(object))
                span = stook_entry_span(stook_pagemap_get((uintptr_t)object));
        else
                span = stook_span_large_at((uintptr_t)object);
        return span ? span->node : -EINVAL;
}
