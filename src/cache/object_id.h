/*
 * Purpose: the one test that says "an object of this cache starts here". An address passes if its
 * pagemap entry names the cache, and its offset in the slab is a multiple of the stride that is not
 * behind the last object. That is one multiplication and one comparison. The test does not tell
 * whether the object is in use: its slab, or a drain, does.
 * The bound on the offset is the cache's: the last object of a slab of usual size. A slab that was
 * made where memory is scarce is shorter. Behind its last object one address may pass, a multiple
 * of the stride in the slab's last page. The drain of the sheaf that it went into reports it. To
 * refuse it here, each slab would need a bound of its own, for which an entry has no bits left.
 * Place: frees of cache, malloc and rcu, single and in bulk.
 */
#ifndef STOOK_OBJECT_ID_H
#define STOOK_OBJECT_ID_H

#include "cache/cache.h"
#include "pages/pagemap.h"

/*
 * @magic, @starts: of the slabs' stride and number of objects (slab/slab.h). Both are 0 of an index
 * that no cache has: then no offset passes.
 */
STOOK_INLINE bool stook_offset_starts(uint64_t magic, uint64_t starts, uint32_t offset)
{
        return STOOK_LIKELY(offset * magic < starts);
}

/* By index: of a live cache; with index 0, which is no cache, every offset passes (cache.h). */
STOOK_INLINE bool stook_object_starts(unsigned index, uint32_t offset)
{
        const struct stook_shape *shape = &stook_shapes[index];

        return stook_offset_starts(shape->magic, shape->starts, offset);
}

/* @entry: the pagemap entry of @object's page. */
STOOK_INLINE bool stook_object_is_of(const struct stook_cache *cache, uint64_t entry,
                                     const void *object)
{
        uint32_t offset = stook_entry_offset(entry, (uintptr_t)object);

        return STOOK_LIKELY(stook_entry_cache(entry) == cache->index) &&
               STOOK_LIKELY(stook_offset_starts(cache->magic, cache->starts, offset));
}

/* The same for any pointer, NULL and foreign ones included. */
STOOK_INLINE bool stook_cache_owns(const struct stook_cache *cache, const void *object)
{
        return stook_object_is_of(cache, stook_pagemap_get((uintptr_t)object), object);
}

/*
 * The same for all of @n objects. Nothing is decided for each object: the loop gathers what is
 * wrong with any of them. If the stride is a power of two and the objects fill their slab, the low
 * bits of an address and the entry of its page decide it.
 */
STOOK_INLINE bool stook_cache_owns_all(const struct stook_cache *cache, size_t n,
                                       void *const *objects)
{
        uint64_t magic = cache->magic, mine = (uint64_t)cache->index << STOOK_ENTRY_CACHE_SHIFT;
        uint64_t size = cache->slabs.stride, differs = 0, low = 0, highest = 0;
        bool by_bits = !(size & (size - 1)) && size <= STOOK_MAP_PAGE &&
                       cache->slabs.objects * size == cache->slabs.slab_bytes;

        if (by_bits) {
                for (size_t i = 0; i < n; i++) {
                        low |= (uintptr_t)objects[i];
                        differs |= stook_pagemap_get((uintptr_t)objects[i]) ^ mine;
                }
                return !(low & (size - 1)) && !stook_entry_cache(differs);
        }
        for (size_t i = 0; i < n; i++) {
                uint64_t entry = stook_pagemap_get((uintptr_t)objects[i]);
                uint64_t offset = stook_entry_offset(entry, (uintptr_t)objects[i]);
                uint64_t product = offset * magic;

                differs |= entry ^ mine;
                highest = product > highest ? product : highest;
        }
        return !stook_entry_cache(differs) && highest < cache->starts;
}

#endif
