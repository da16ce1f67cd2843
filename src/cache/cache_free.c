/*
 * Purpose: free one object: prove by the pagemap that it is one of this cache, then push it on the slot's sheaf.
 * Place: API; calls slot, and pages for the lookup.
 * The proof costs one load of the pagemap entry and one multiplication: the entry names the cache, and the
 * offset in the slab must be a multiple of the slot size. An object that was never handed out, or is free
 * already in some slab, is found when its sheaf is drained; a second free of a sheaf's top at once.
 * Failure: misuse is reported (report/); where reports do not abort, the call does nothing.
 */
#include <errno.h>

#include "cache/cache_account.h"
#include "life/life.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "report/report.h"
#include "slot/slot_fast.h"
#include "slot/slot_node.h"

/* Where a pointer lies, for reports. */
static void report(enum stook_fault fault, const struct stook_cache *called, const void *object, const char *detail)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        unsigned index = stook_entry_cache(entry);
        const char *name = called ? called->name : index ? stook_cache_at(index)->name : NULL;
        const struct stook_span *span = index ? stook_entry_span(entry) : NULL;

        stook_report_fault(fault, object, name, span ? (const void *)span->start : NULL,
                           span ? (uintptr_t)object - span->start : 0, detail);
}

STOOK_COLD void stook_cache_free_misuse(struct stook_cache *or_null, const void *object)
{
        uintptr_t addr = (uintptr_t)object;
        uint64_t entry = stook_pagemap_get(addr);
        unsigned index = stook_entry_cache(entry);
        struct stook_cache *cache = index ? stook_cache_at(index) : NULL;
        char detail[96];
        bool interior;

        if (!cache) {
                if (stook_span_large_at(addr))
                        report(STOOK_FAULT_WRONG_CACHE, or_null, object, "a large object of malloc");
                else
                        report(stook_pagemap_ours(addr) ? STOOK_FAULT_NOT_LIVE : STOOK_FAULT_FOREIGN, or_null,
                               object, NULL);
                return;
        }
        stook_slabs_index(&cache->slabs, stook_entry_offset(entry, addr), &interior);
        if (interior) {
                report(STOOK_FAULT_INTERIOR, or_null, object, NULL);
        } else if (!stook_slab_object_valid(&cache->slabs, object)) {
                report(STOOK_FAULT_NOT_LIVE, or_null, object, "never handed out");
        } else if (or_null && cache != or_null) {
                stook_report_format(detail, sizeof(detail), "it belongs to cache %s", cache->name);
                report(STOOK_FAULT_WRONG_CACHE, or_null, object, detail);
        } else {
                report(STOOK_FAULT_DOUBLE_FREE, or_null, object, NULL);
        }
}

void stook_cache_free_double(struct stook_front *front, void *object)
{
        report(STOOK_FAULT_DOUBLE_FREE, stook_container_of(front, struct stook_cache, front), object, NULL);
}

static STOOK_NOINLINE void free_miss(struct stook_cache *cache, void *object)
{
        /* The index is at another place than where inlined sections look; on several nodes a push has to look at the node. */
        if (STOOK_UNLIKELY(!stook_sections.area) && !stook_slots_by_node && stook_front_push(&cache->front, object))
                return;
        if (stook_cache_is_accounted(cache)) {
                stook_account_free(cache, object);
                return;
        }
        stook_fork_check();
        stook_slot_free_miss(&cache->front, object, stook_cache_free_double);
}

/* True: @object may be pushed. The same test as in stook_cache_free, without its short cuts. */
bool stook_cache_owns(const struct stook_cache *cache, const void *object)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        uint32_t offset = stook_entry_offset(entry, (uintptr_t)object);

        return stook_entry_cache(entry) == cache->index && offset * cache->magic < cache->magic &&
               offset <= cache->last_offset;
}

/* NULL, pointers outside the one huge range, misuse. */
static STOOK_NOINLINE void free_odd(struct stook_cache *cache, void *object)
{
        if (!object)
                return;
        if (stook_cache_owns(cache, object))
                free_miss(cache, object);
        else
                stook_cache_free_misuse(cache, object);
}

STOOK_API STOOK_ALIGNED(STOOK_CACHELINE) void stook_cache_free(struct stook_cache *cache, void *object)
{
        uintptr_t addr = (uintptr_t)object, off = addr - stook_range.base;
        uint64_t entry, magic;
        uint32_t offset;

        if (STOOK_UNLIKELY(off >= STOOK_RANGE_BYTES))
                return free_odd(cache, object);
        entry = __atomic_load_n(&stook_range.entries[off >> STOOK_MAP_SHIFT], __ATOMIC_RELAXED);
        offset = stook_entry_offset(entry, addr);
        magic = cache->magic;
        if (STOOK_UNLIKELY(stook_entry_cache(entry) != cache->index || offset * magic >= magic ||
                           offset > cache->last_offset))
                return free_odd(cache, object);
        if (STOOK_UNLIKELY(stook_section_push_v1(cache->front.line, object) != STOOK_PUSH_DONE))
                free_miss(cache, object);
}

/* ---- what an object is ---- */

STOOK_API struct stook_cache *stook_object_cache(const void *object)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)object));
        struct stook_cache *cache = stook_cache_at(index);

        if (!index || !stook_cache_owns(cache, object) || !stook_slab_object_valid(&cache->slabs, object))
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
