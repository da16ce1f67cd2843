/*
 * Purpose: objects of any size, allocated, freed and recognised: which class, or a span.
 * Place: where the hot path (malloc_hot.h) leaves off. Calls slot (misses), cache (misuse), large.c.
 * Concurrency: any thread, any instruction.
 * Failure: NULL, errno untouched; misuse is reported, after which, if reports do not abort, nothing was done.
 */
#include <string.h>
#include "cache/cache_account.h"
#include "life/life.h"
#include "malloc/large.h"
#include "malloc/malloc.h"
#include "malloc/malloc_hot.h"

static void *class_object(unsigned class)
{
        void *object = stook_slot_pop((class + 1) << STOOK_LINE_SHIFT);
        struct stook_cache *cache;

        if (STOOK_LIKELY(object != NULL))
                return object;
        if (STOOK_UNLIKELY(!stook_start()))
                return NULL;
        stook_fork_check();
        cache = stook_class_cache(class);
        if (STOOK_UNLIKELY(!cache))
                return stook_large_alloc(1, stook_class_bytes[class], false);
        return stook_slot_alloc_miss(&cache->front);
}

/* What this thread's allocations are charged to; 0: nobody. */
static uint16_t charged_to(void)
{
        return STOOK_UNLIKELY(__atomic_load_n(&stook_groups_exist, __ATOMIC_RELAXED)) ? stook_group_current() : 0;
}

void *stook_malloc_object(size_t size)
{
        uint16_t group = charged_to();

        if (STOOK_UNLIKELY(group != 0))
                return stook_malloc_charged(size, group);
        if (STOOK_LIKELY(size <= STOOK_CLASS_MAX))
                return class_object(stook_class_for(size));
        return stook_large_alloc(1, size, false);
}

/*
 * Classes above have no sheaves, so that a span of its own costs no more than a slot in a slab; and of a span it is
 * known whether it reads as zeros already: then it is not touched, and costs no memory until it is used.
 */
#define ZEROED_CLASS_MAX ((size_t)32 << 10)

void *stook_malloc_zeroed(size_t size)
{
        if (STOOK_UNLIKELY(size > ZEROED_CLASS_MAX))
                return stook_large_alloc(1, size, true);

        void *object = stook_malloc_object(size);

        return STOOK_LIKELY(object != NULL) ? memset(object, 0, size) : NULL;
}

/* Is @addr, of whose page @entry is, the start of an object? */
static bool starts_object(uint64_t entry, uintptr_t addr)
{
        return stook_object_starts(stook_entry_cache(entry), stook_entry_offset(entry, addr));
}

static void release_to_cache(struct stook_cache *cache, void *object)
{
        if (stook_cache_is_accounted(cache)) {
                stook_account_free(cache, object);
                return;
        }
        stook_fork_check();
        stook_slot_free_miss(&cache->front, object, stook_cache_free_double);
}

bool stook_malloc_release(void *object)
{
        uintptr_t addr = (uintptr_t)object;

        if (!object)
                return true;

        uint64_t entry = stook_pagemap_get(addr);

        if (STOOK_LIKELY(stook_entry_cache(entry) != 0)) {
                if (STOOK_LIKELY(starts_object(entry, addr)))
                        release_to_cache(stook_cache_at(stook_entry_cache(entry)), object);
                else
                        stook_cache_free_misuse(NULL, object);
                return true;
        }

        struct stook_span *span = entry ? stook_span_large_at(addr) : NULL;

        if (span && stook_large_free(span))
                return true;
        if (!stook_pagemap_ours(addr))
                return false;
        stook_cache_free_misuse(NULL, object);
        return true;
}

size_t stook_malloc_usable(const void *object, bool *ours)
{
        uintptr_t addr = (uintptr_t)object;
        uint64_t  entry = stook_pagemap_get(addr);

        *ours = true;
        if (stook_entry_cache(entry))
                return starts_object(entry, addr) ? stook_cache_at(stook_entry_cache(entry))->object_size : 0;

        struct stook_span *span = entry ? stook_span_large_at(addr) : NULL;

        if (span)
                return span->bytes;
        *ours = stook_pagemap_ours(addr);
        return 0;
}
