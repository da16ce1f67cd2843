/*
 * Purpose: many objects at once: sheaves are emptied and filled by copies, what they do not have or take
 * goes straight to the slabs, which group it.
 * Place: API; calls slot, then slab; and malloc's large objects, if the caller names no cache.
 * Failure: an allocation gets all or nothing.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "cache/cache_account.h"
#include "life/life.h"
#include "malloc/large.h"
#include "pages/pagemap.h"
#include "slot/slot_node.h"

/* Objects of mixed caches are sorted a window at a time, so that many caches cost no more than this squared. */
#define WINDOW 256

/* @n objects that are known to be of @cache, and charged to nobody. */
static void put_known(struct stook_cache *cache, size_t n, void **objects)
{
        size_t pushed;

        if (STOOK_UNLIKELY(stook_slots_by_node))
                n = stook_slot_free_remote_bulk(&cache->front, n, objects);
        pushed = stook_slot_free_bulk(&cache->front, n, objects);
        if (pushed == n)
                return;
        stook_fork_check();
        stook_count(&cache->counters, STOOK_STAT_free_slowpath, n - pushed);
        stook_slab_drain(&cache->slabs, n - pushed, objects + pushed);
}

static void free_known(struct stook_cache *cache, size_t n, void **objects)
{
        if (stook_cache_is_accounted(cache))
                stook_account_uncharge(cache, n, objects);
        put_known(cache, n, objects);
}

STOOK_API int stook_cache_alloc_bulk(struct stook_cache *cache, unsigned flags, size_t n, void **objects)
{
        size_t got, filled;

        if (!cache || !objects || !n || (flags & ~STOOK_ZERO) || ((flags & STOOK_ZERO) && cache->slabs.ctor))
                return -EINVAL;
        if (n > PTRDIFF_MAX / sizeof(*objects))         /* nobody has room for the pointers */
                return -ENOMEM;
        got = stook_slot_alloc_bulk(&cache->front, n, objects);
        if (got < n) {
                stook_fork_check();
                filled = stook_slab_fill(&cache->slabs, stook_slot_node(), n - got, objects + got, STOOK_FILL_ASCENDING);
                if (got + filled < n) {
                        /* The slabs' part was not counted yet: it never was the user's. */
                        stook_slab_drain(&cache->slabs, filled, objects + got);
                        put_known(cache, got, objects);
                        return -ENOMEM;
                }
                stook_count(&cache->counters, STOOK_STAT_alloc_slowpath, filled);
        }
        if (stook_cache_is_accounted(cache) &&
            !stook_account_charge(cache, n, objects, stook_group_current(), 0)) {
                put_known(cache, n, objects);
                return -ENOMEM;
        }
        if (flags & STOOK_ZERO)
                for (size_t i = 0; i < n; i++)
                        memset(objects[i], 0, stook_cache_object_size(cache));
        return 0;
}

/* Moves what is no object of @cache behind the others and reports it. Returns how many are. */
static STOOK_COLD size_t sort_out(struct stook_cache *cache, size_t n, void **objects)
{
        size_t good = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t entry = stook_pagemap_get((uintptr_t)objects[i]);
                uint32_t offset = stook_entry_offset(entry, (uintptr_t)objects[i]);

                if (stook_entry_cache(entry) == cache->index && offset * cache->magic < cache->magic &&
                    offset <= cache->last_offset)
                        objects[good++] = objects[i];
                else
                        stook_cache_free_misuse(cache, objects[i]);
        }
        return good;
}

/*
 * Is every one of them an object of @cache? Nothing is decided for each: what is wrong with any is gathered. Where
 * slots are a power of two and fill their slab, the low bits of an address and the entry of its page say it all.
 */
static bool are_objects(const struct stook_cache *cache, size_t n, void *const *objects)
{
        uint64_t magic = cache->magic, mine = (uint64_t)cache->index << STOOK_ENTRY_CACHE_SHIFT, highest = 0;
        uint64_t size = cache->slabs.slot_size, last = cache->last_offset, differs = 0, low = 0, behind = 0;
        bool by_bits = !(size & (size - 1)) && size <= STOOK_MAP_PAGE && last + size == cache->slabs.slab_bytes;

        if (by_bits) {
                for (size_t i = 0; i < n; i++) {
                        low |= (uintptr_t)objects[i];
                        differs |= stook_pagemap_get((uintptr_t)objects[i]) ^ mine;
                }
                return !(low & (size - 1)) && !stook_entry_cache(differs);
        }
        for (size_t i = 0; i < n; i++) {
                uint64_t entry = stook_pagemap_get((uintptr_t)objects[i]);
                uint64_t offset = stook_entry_offset(entry, (uintptr_t)objects[i]), product = offset * magic;

                differs |= entry ^ mine;
                behind |= last - offset;        /* its highest bit: below 0 */
                highest = product > highest ? product : highest;
        }
        return !stook_entry_cache(differs) && !(behind >> 63) && highest < magic;
}

static void free_one_cache(struct stook_cache *cache, size_t n, void **objects)
{
        if (STOOK_UNLIKELY(!are_objects(cache, n, objects)))
                n = sort_out(cache, n, objects);
        free_known(cache, n, objects);
}

/* An object of no cache: a large one of malloc's, which a size alone does not tell (calloc, aligned_alloc). */
static void free_large(void *object)
{
        struct stook_span *span = stook_span_large_at((uintptr_t)object);

        if (!span || !stook_large_free(span))
                stook_cache_free_misuse(NULL, object);
}

/* The first object's cache takes all of its kind in the window. Returns how many have gone. */
static size_t free_first_kind(size_t n, void **objects)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)objects[0]));
        size_t same = 1;

        if (!index) {
                free_large(objects[0]);
                return 1;
        }
        for (size_t i = 1; i < n; i++)
                if (stook_entry_cache(stook_pagemap_get((uintptr_t)objects[i])) == index) {
                        void *object = objects[i];

                        objects[i] = objects[same];
                        objects[same++] = object;
                }
        free_one_cache(stook_cache_at(index), same, objects);
        return same;
}

STOOK_API void stook_cache_free_bulk(struct stook_cache *or_null, size_t n, void **objects)
{
        if (or_null) {
                free_one_cache(or_null, n, objects);
                return;
        }
        while (n) {
                size_t gone = free_first_kind(n < WINDOW ? n : WINDOW, objects);

                objects += gone;
                n -= gone;
        }
}
