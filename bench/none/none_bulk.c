/*
 * bench/none/none_bulk.c - many objects, the way it was before free lists were left unbuilt
 *
 * Purpose: a new slab's objects are linked to a list, all of them, upwards or in the cache's random order; a bulk
 * allocation walks that list and copies what it meets.
 * Place: table 1.2, and none_miss.c for its new slabs.
 */
#include "none_slot.h"
#include "cache/cache.h"
#include "slab/slab_order.h"

uint64_t none_build_list(const struct none_cache *cache, const struct stook_slab *slab)
{
        const struct stook_slabs *slabs = slab->slabs;
        char *object = slab->base + (size_t)stook_slab_nth(slab, 0) * slabs->slot_size, *next;
        uint64_t first = (uint64_t)(object - slab->base) >> STOOK_PLACE_SHIFT;

        for (uint32_t i = 1; i < slab->objects; i++, object = next) {
                next = slab->base + (size_t)stook_slab_nth(slab, i) * slabs->slot_size;
                stook_link_write(object, (uint32_t)cache->link_offset, slab->key,
                                 (uint32_t)((uint64_t)(next - slab->base) >> STOOK_PLACE_SHIFT));
        }
        stook_link_write(object, (uint32_t)cache->link_offset, slab->key, STOOK_PLACE_NONE);
        return first;
}

/* All of its objects are out as far as the slab layer knows. */
static bool next_slab(struct none_cache *cache)
{
        struct stook_slab *slab = stook_slab_birth(&cache->cache->slabs, 0);

        if (!slab)
                return false;
        cache->bulk = slab;
        cache->bulk_first = none_build_list(cache, slab);
        __atomic_store_n(&slab->word, stook_word(STOOK_PLACE_NONE, slab->objects, slab->objects, 0), __ATOMIC_RELEASE);
        return true;
}

bool none_bulk_alloc(struct none_cache *cache, size_t n, void **objects)
{
        size_t got = 0;

        while (got < n) {
                uint64_t place = cache->bulk_first;

                if (place == STOOK_PLACE_NONE) {
                        if (!next_slab(cache))
                                return false;
                        continue;
                }
                while (got < n && place != STOOK_PLACE_NONE) {
                        objects[got++] = none_object_at(cache->bulk, place);
                        place = none_next_of(cache, cache->bulk, place);
                }
                cache->bulk_first = place;
        }
        return true;
}

void none_bulk_free(struct none_cache *cache, size_t n, void **objects)
{
        none_bulk_end(cache);
        /* The library takes a link that decodes for a sign of a second free. Not under the clock. */
        for (size_t i = 0; i < n; i++)
                stook_link_clear(objects[i], (uint32_t)cache->link_offset);
        stook_cache_free_bulk(cache->cache, n, objects);
        stook_cache_shrink(cache->cache);
}

void none_bulk_end(struct none_cache *cache)
{
        while (cache->bulk_first != STOOK_PLACE_NONE) {
                void *object = none_object_at(cache->bulk, cache->bulk_first);

                cache->bulk_first = none_next_of(cache, cache->bulk, cache->bulk_first);
                stook_link_clear(object, (uint32_t)cache->link_offset);
                stook_cache_free(cache->cache, object);
        }
}
