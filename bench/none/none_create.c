/*
 * bench/none/none_create.c - a cache of the older kind comes and goes
 *
 * Purpose: a library cache without sheaves gives it an index in the pagemap and the geometry of its
 * slabs, but makes no slab itself (none_slab.h). The slots lie as far apart as the library's.
 * Place: called by the benchmark.
 */
#include <sys/mman.h>

#include "none_slot.h"
#include "cache/cache.h"
#include "os/os.h"
#include "pages/meta.h"

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

/* A permutation of 0..@n-1, as src/slab/slab_birth.c makes one. NULL: no memory. */
static uint16_t *make_sequence(uint32_t n)
{
        uint16_t *sequence = stook_meta_bump(n * sizeof(*sequence), 0);

        for (uint32_t i = 0; sequence && i < n; i++) {
                uint32_t at = (uint32_t)((stook_os_random() >> 32) * (i + 1) >> 32);

                sequence[i] = sequence[at];
                sequence[at] = (uint16_t)i;
        }
        return sequence;
}

/* As the library's slabs, or of @slab_bytes. The link lies in the middle, as in the kernel. */
static bool make_slabs(struct none_slabs *slabs, const struct stook_cache *cache, size_t slab_bytes,
                       bool random_order)
{
        const struct stook_slabs *like = &cache->slabs;

        slabs->index = cache->index;
        slabs->stride = like->stride;
        slabs->link_offset = like->object_size / 2 & ~(uint32_t)7;
        slabs->slab_bytes = slab_bytes ? (uint32_t)slab_bytes : like->slab_bytes;
        slabs->objects = slab_bytes ? (uint32_t)(slab_bytes / like->stride) : like->objects;
        slabs->min_partial = like->min_partial;
        stook_list_init(&slabs->list);
        if (!slabs->objects || slabs->slab_bytes > NONE_SLAB_BYTES_MAX)
                return false;
        slabs->sequence = random_order ? make_sequence(slabs->objects) : NULL;
        return !random_order || slabs->sequence;
}

struct none_cache *none_create(size_t object_bytes, size_t slab_bytes, bool random_order)
{
        static struct none_cache made[16];
        static unsigned used;
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_NO_SHEAVES };
        struct none_cache *cache;
        void *slots;

        if (used == sizeof(made) / sizeof(made[0]))
                return NULL;
        cache = &made[used];
        cache->cache = stook_cache_create("none", object_bytes, &args);
        if (!cache->cache)
                return NULL;
        if (!stook_slot_enrol() ||
            !make_slabs(&cache->slabs, cache->cache, slab_bytes, random_order)) {
                stook_cache_destroy(cache->cache);
                return NULL;
        }
        cache->bytes = (size_t)stook_os_possible_cpus() << STOOK_SLOT_SHIFT;
        slots = mmap(NULL, cache->bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (slots == MAP_FAILED) {
                stook_cache_destroy(cache->cache);
                return NULL;
        }
        /* Not at the start of a page: other things are there already. */
        cache->slots = (uintptr_t)slots + 7 * sizeof(struct none_slot);
        cache->index = cache->cache->index;
        cache->link_offset = cache->slabs.link_offset;
        cache->bulk_first = NONE_PLACE_NONE;
        cache->object_bytes = object_bytes;
        cache->partials_max = partials_max(object_bytes, cache->slabs.objects);
        for (unsigned i = 0; i < stook_os_possible_cpus(); i++)
                slot_at(cache, i)->first = NONE_PLACE_NONE;
        used++;
        return cache;
}

bool none_destroy(struct none_cache *cache)
{
        bool sound;

        none_bulk_end(cache);
        for (unsigned i = 0; i < stook_os_possible_cpus(); i++)
                none_slot_empty(cache, slot_at(cache, i));
        sound = none_slabs_validate(&cache->slabs) == 0;
        if (sound) {
                none_slabs_shrink(&cache->slabs);
                sound = cache->slabs.slabs == 0;
        }
        munmap((void *)(cache->slots - 7 * sizeof(struct none_slot)), cache->bytes);
        return sound && stook_cache_destroy(cache->cache) == 0;
}
