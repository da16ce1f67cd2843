/*
 * bench/none/none_create.c - a cache of the older kind comes and goes
 *
 * Purpose: its slabs are those of a library cache without sheaves, which gives it an index in the pagemap, a partial
 * list and the checks at the end; its slots lie apart as the library's do.
 * Place: called by the benchmark.
 */
#include <sys/mman.h>

#include "none_slot.h"
#include "cache/cache.h"
#include "os/os.h"

static struct none_slot *slot_at(const struct none_cache *cache, unsigned i)
{
        return (struct none_slot *)(cache->slots + ((uintptr_t)i << STOOK_SLOT_SHIFT));
}

/* The kernel's rule (set_cpu_partial): objects by size, taken to be half of each slab. */
static unsigned partials_max(size_t size, uint32_t objects)
{
        unsigned wanted = size >= 4096 ? 6 : size >= 1024 ? 24 : size >= 256 ? 52 : 120;

        return (2 * wanted + objects - 1) / objects;
}

/* Before the first slab: slabs of another size than the library's choice. */
static void set_slab_bytes(struct stook_cache *cache, size_t bytes)
{
        cache->slabs.slab_bytes = (uint32_t)bytes;
        cache->slabs.objects = (uint32_t)(bytes / cache->slabs.slot_size);
        cache->last_offset = (cache->slabs.objects - 1) * cache->slabs.slot_size;
}

struct none_cache *none_create(size_t object_bytes, size_t slab_bytes, bool random_order)
{
        static struct none_cache made[16];
        static unsigned used;
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_NO_SHEAVES | (random_order ? STOOK_RANDOM_ORDER : 0) };
        struct none_cache *cache;
        void *slots;

        if (used == sizeof(made) / sizeof(made[0]))
                return NULL;
        cache = &made[used];
        cache->cache = stook_cache_create("none", object_bytes, &args);
        if (!cache->cache)
                return NULL;
        if (!stook_slot_enrol()) {
                stook_cache_destroy(cache->cache);
                return NULL;
        }
        if (slab_bytes)
                set_slab_bytes(cache->cache, slab_bytes);
        cache->bytes = (size_t)stook_os_possible_cpus() << STOOK_SLOT_SHIFT;
        slots = mmap(NULL, cache->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (slots == MAP_FAILED) {
                stook_cache_destroy(cache->cache);
                return NULL;
        }
        /* Not at the start of a page: other things are there already. */
        cache->slots = (uintptr_t)slots + 7 * sizeof(struct none_slot);
        cache->index = cache->cache->index;
        cache->link_offset = cache->cache->slabs.link_offset;
        cache->bulk_first = STOOK_PLACE_NONE;
        cache->object_bytes = object_bytes;
        cache->partials_max = partials_max(object_bytes, cache->cache->slabs.objects);
        for (unsigned i = 0; i < stook_os_possible_cpus(); i++)
                slot_at(cache, i)->first = STOOK_PLACE_NONE;
        used++;
        return cache;
}

bool none_destroy(struct none_cache *cache)
{
        bool sound;

        none_bulk_end(cache);
        for (unsigned i = 0; i < stook_os_possible_cpus(); i++)
                none_slot_empty(cache, slot_at(cache, i));
        sound = stook_slabs_validate(&cache->cache->slabs) == 0 && stook_slabs_objects_out(&cache->cache->slabs) == 0;
        munmap((void *)(cache->slots - 7 * sizeof(struct none_slot)), cache->bytes);
        return sound && stook_cache_destroy(cache->cache) == 0;
}
