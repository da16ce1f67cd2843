/*
 * bench/none/none_fast.c - allocation and free of the older kind: the fast paths
 *
 * Purpose: an allocation pops the CPU's list. A free finds the object's slab and, if that is the
 * one this CPU allocates from, pushes on the CPU's list. Everything else is none_miss.c. As in the
 * kernel, a free makes sure that the object's slab belongs to the cache, and that it is not on top
 * of the list already.
 * Place: called by the benchmark, out of line like stook_cache_alloc and stook_cache_free.
 */
#include "none_slot.h"
#include "pages/pagemap.h"

static void *pop(const struct none_cache *cache)
{
        return none_section_pop(cache);
}

static void *pop_cas(const struct none_cache *cache)
{
        return none_section_pop_cas(cache);
}

void *none_rseq_alloc(struct none_cache *cache)
{
        void *object = none_section_pop(cache);

        return STOOK_LIKELY(object != NULL) ? object : none_alloc_miss(cache, pop);
}

void *none_cas_alloc(struct none_cache *cache)
{
        void *object = none_section_pop_cas(cache);

        return STOOK_LIKELY(object != NULL) ? object : none_alloc_miss(cache, pop_cas);
}

/* The entry of the object's page: names cache and slab. */
STOOK_INLINE uint64_t entry_of(const struct none_cache *cache, const void *object)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);

        if (STOOK_UNLIKELY(stook_entry_cache(entry) != cache->index))
                none_misuse(object);
        return entry;
}

STOOK_INLINE void end_free(struct none_cache *cache, enum none_push answer, struct stook_span *span,
                           uint64_t place, void *object)
{
        if (STOOK_LIKELY(answer == NONE_PUSHED))
                return;
        if (answer == NONE_PUSH_DOUBLE)
                none_misuse(object);
        none_free_miss(cache, span, place, object);
}

void none_rseq_free(struct none_cache *cache, void *object)
{
        uint64_t entry = entry_of(cache, object);
        struct stook_span *span = stook_entry_span(entry);
        uint64_t place = stook_entry_offset(entry, (uintptr_t)object) >> NONE_PLACE_SHIFT;

        end_free(cache, none_section_push(cache, span, place, object), span, place, object);
}

void none_cas_free(struct none_cache *cache, void *object)
{
        uint64_t entry = entry_of(cache, object);
        struct stook_span *span = stook_entry_span(entry);
        uint64_t place = stook_entry_offset(entry, (uintptr_t)object) >> NONE_PLACE_SHIFT;

        end_free(cache, none_section_push_cas(cache, span, place, object), span, place, object);
}
