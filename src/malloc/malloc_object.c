/*
 * Purpose: objects of any size, allocated, freed and recognised: which class, or a span.
 * Place: where the hot path (malloc_hot.h) leaves off. Every call of malloc that misses comes here
 *  and says how (cache/cache_slow.h). Calls cache (its slow calls, misuse), large.c.
 * Concurrency: any thread, any instruction.
 * Failure: NULL; misuse is reported, after which, if reports do not abort, nothing was done.
 */
#include "cache/cache_slow.h"
#include "cache/cache_watch.h"
#include "cache/object_id.h"
#include "group/group.h"
#include "malloc/large.h"
#include "malloc/large_debug.h"
#include "malloc/malloc.h"
#include "slot/slot_hot.h"

/* NULL: no memory, or another thread holds the registry: making a cache does not wait for it. */
static STOOK_NOINLINE struct stook_cache *make_class(unsigned class, uint64_t how)
{
        struct stook_cache *cache;

        stook_slow_begin(how);
        cache = stook_class_first(class);
        stook_slow_end(how);
        return cache;
}

void *stook_malloc_class_object(unsigned class, uint64_t how)
{
        struct stook_cache *cache;

        if (STOOK_UNLIKELY(!stook_slow_is_up(how)))
                return stook_slow_answer(how, NULL, 0);
        cache = stook_class_at(class);
        if (STOOK_UNLIKELY(!cache))
                cache = make_class(class, how);
        return STOOK_LIKELY(cache != NULL) ? stook_alloc_plain(cache, how)
                                           : stook_large_alloc(1, stook_class_bytes[class], how);
}

/* What this thread's allocations are charged to; 0: no group. */
static uint16_t charged_to(void)
{
        return STOOK_UNLIKELY(__atomic_load_n(&stook_groups_exist, __ATOMIC_RELAXED))
                ? stook_group_current() : 0;
}

/*
 * Zeroed objects above this are spans. A span knows whether it reads as zeros already: then it is
 * not touched, and costs no memory until it is used. Classes above begin without sheaves, so as a
 * rule a span of its own costs no more than an object of a slab.
 */
#define ZEROED_CLASS_MAX ((size_t)32 << 10)

/* All calls are at the end, and nothing is saved: for the depth of the stack. */
void *stook_malloc_slow(size_t size, uint64_t how)
{
        uint16_t group;

        if (STOOK_UNLIKELY(size > (how & STOOK_HOW_ZERO ? ZEROED_CLASS_MAX : STOOK_CLASS_MAX)))
                return stook_large_alloc(1, size, how);
        group = charged_to();
        if (STOOK_UNLIKELY(stook_malloc_is_watched))
                return stook_malloc_watched(size, group, how);
        if (STOOK_UNLIKELY(group != 0))
                return stook_malloc_charged(size, group, how);
        return stook_malloc_class_object(stook_class_for(size), how);
}

void *stook_malloc_object(size_t size)
{
        return stook_malloc_slow(size, 0);
}

bool stook_malloc_free_object(void *object, uint64_t how)
{
        uintptr_t addr = (uintptr_t)object;
        uint64_t entry;
        unsigned index;

        if (!object)
                return true;
        entry = stook_pagemap_get(addr);
        index = stook_entry_cache(entry);
        if (STOOK_LIKELY(index && stook_object_starts(index, stook_entry_offset(entry, addr)))) {
                stook_free_slow(stook_cache_at(index), object, how);
                return true;
        }
        if (!index && entry && stook_large_free(object, how))
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
        unsigned  index = stook_entry_cache(entry);

        *ours = true;
        if (index && !stook_object_starts(index, stook_entry_offset(entry, addr)))
                return STOOK_NO_OBJECT;
        if (index)
                return STOOK_UNLIKELY(stook_cache_at(index)->watch)
                        ? stook_watch_usable(stook_cache_at(index), object)
                        : stook_cache_at(index)->object_size;

        struct stook_span *span = entry ? stook_span_large_at(addr) : NULL;

        if (span)
                return stook_large_usable(span);
        *ours = stook_pagemap_ours(addr);
        return STOOK_NO_OBJECT;
}
