/*
 * bench/none/none_bulk.c - many objects, the way it was before free lists were left unbuilt
 *
 * Purpose: a new slab's objects are linked to a list, all of them, upwards or in the cache's random
 * order (none_slab.c). A bulk allocation walks that list and copies what it meets. A bulk free
 * links what belongs to one slab to a chain and pushes that at once, as the kernel does.
 * Place: table 1.2.
 */
#include "none_slot.h"
#include "pages/pagemap.h"

/* All of its objects are out as far as its word knows, and no CPU has it. */
static bool next_slab(struct none_cache *cache)
{
        struct none_slab *slab = none_slab_birth(&cache->slabs, &cache->bulk_first);

        if (!slab) {
                cache->bulk_first = NONE_PLACE_NONE;
                return false;
        }
        none_slab_thaw_full(slab);
        cache->bulk = slab;
        return true;
}

/* Up to @n objects of the list that begins at @place. Return: how many. */
static size_t empty_list(struct none_cache *cache, uint64_t place, size_t n, void **objects)
{
        uint64_t link_offset = cache->link_offset, key = cache->bulk->key;
        char *base = none_slab_base(cache->bulk);
        size_t got = 0;

        while (got < n && place != NONE_PLACE_NONE) {
                void *object = base + (place << NONE_PLACE_SHIFT);

                objects[got++] = object;
                place = none_link_read(object, link_offset, key);
        }
        cache->bulk_first = place;
        return got;
}

bool none_bulk_alloc(struct none_cache *cache, size_t n, void **objects)
{
        size_t got = 0;

        while (got < n) {
                uint64_t place = cache->bulk_first;

                if (place == NONE_PLACE_NONE) {
                        if (!next_slab(cache))
                                return false;
                        continue;
                }
                got += empty_list(cache, place, n - got, objects + got);
        }
        return true;
}

static struct none_slab *slab_of_object(const struct none_cache *cache, void *object)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);

        if (STOOK_UNLIKELY(stook_entry_cache(entry) != cache->index))
                none_misuse(object);
        return none_slab_of(stook_entry_span(entry));
}

static void give_chain(struct none_slab *slab, void *first, void *last, uint32_t count)
{
        switch (none_slab_free(slab, none_place_of(slab, first), last, count)) {
        case NONE_FREED:
                break;
        case NONE_FREED_FROZEN:
                none_slab_to_node(slab);
                break;
        case NONE_FREE_TOO_MANY:
                none_misuse(first);
        }
}

/* Chains of neighbours in the array that lie in one slab: the first of them is the chain's last. */
static void give(struct none_cache *cache, size_t n, void **objects)
{
        for (size_t i = 0; i < n;) {
                struct none_slab *slab = slab_of_object(cache, objects[i]);
                void *last = objects[i], *first = last;
                uint32_t count = 1;

                while (++i < n && slab_of_object(cache, objects[i]) == slab) {
                        none_link_write(objects[i], cache->link_offset, slab->key,
                                        none_place_of(slab, first));
                        first = objects[i];
                        count++;
                }
                give_chain(slab, first, last, count);
        }
}

void none_bulk_free(struct none_cache *cache, size_t n, void **objects)
{
        none_bulk_end(cache);
        give(cache, n, objects);
        none_slabs_shrink(&cache->slabs);
}

void none_bulk_end(struct none_cache *cache)
{
        while (cache->bulk_first != NONE_PLACE_NONE) {
                void *object = none_object_at(cache->bulk, cache->bulk_first);

                cache->bulk_first = none_next_of(cache->bulk, cache->bulk_first);
                give(cache, 1, &object);
        }
}
