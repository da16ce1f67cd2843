/*
 * Purpose: the calls that free one object: prove by the pagemap that it is one of this cache
 * (object_id.h), then push it on the slot's sheaf. What misses is one slow call (cache_slow.h).
 * Place: API; calls slot, and pages for the lookup.
 * What the proof does not find: an object that was never handed out, or is free in its slab
 * already, is noticed when its sheaf is drained; a second free of a sheaf's top object at once.
 * Failure: misuse is reported (report/); where reports do not abort, the call does nothing.
 */
#include <errno.h>

#include "cache/cache_watch.h"
#include "cache/object_id.h"
#include "pages/span.h"
#include "report/report.h"
#include "slot/slot_hot.h"

static void describe(const struct stook_cache *cache, const void *object,
                     struct stook_report_about *about)
{
        if (cache->watch)
                stook_watch_duties.describe(cache, object, about);
}

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
                describe(stook_cache_at(stook_entry_cache(entry)), object, &about);
        }
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
                                       : ours  ? NULL
                                               : "no memory of this library");
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
 * What the short cuts of stook_cache_free do not answer: NULL, pointers outside of the one huge
 * range, misuse.
 */
static STOOK_NOINLINE void free_odd(struct stook_cache *cache, void *object)
{
        if (!object)
                return;
        if (stook_cache_owns(cache, object))
                stook_free_slow(cache, object, 0);
        else
                stook_cache_free_misuse(cache, object);
}

STOOK_API_HOT void stook_cache_free(struct stook_cache *cache, void *object)
{
        uintptr_t off = (uintptr_t)object - stook_range.base;
        uint64_t entry;

        if (STOOK_UNLIKELY(off >= STOOK_RANGE_BYTES))
                return free_odd(cache, object);
        entry = __atomic_load_n(&stook_range.entries[off >> STOOK_MAP_SHIFT], __ATOMIC_RELAXED);
        if (STOOK_UNLIKELY(!stook_object_is_of(cache, entry, object)))
                return free_odd(cache, object);
        if (STOOK_UNLIKELY(stook_front_is_closed(&cache->front)))
                stook_account_duties.free_closed(cache, object);
        else if (STOOK_UNLIKELY(stook_section_push_guessed_v1(cache->front.line, object) !=
                                STOOK_PUSH_DONE))
                stook_free_slow(cache, object, 0);
}

STOOK_API void stook_cache_free_nolock(struct stook_cache *cache, void *object)
{
        if (!object)
                return;
        if (STOOK_UNLIKELY(!stook_cache_owns(cache, object)))
                stook_cache_free_misuse(cache, object);
        else if (STOOK_UNLIKELY(!stook_front_push(&cache->front, object)))
                stook_free_slow(cache, object, STOOK_HOW_NOLOCK);
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
