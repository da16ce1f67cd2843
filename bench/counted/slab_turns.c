/*
 * bench/counted/slab_turns.c - see slab_turns.h
 */
#include "counted/slab_turns.h"

#include "base/thread.h"
#include "cache/cache.h"
#include "slab/slab.h"

struct slab_turns_counted slab_turns_counted;

void *slab_turns_begin(struct stook_cache *cache)
{
        static const struct stook_lock_sleep sleep = { slab_turns_sleep, slab_turns_wake };

        stook_lock_set_sleep(&sleep);
        return &cache->slabs;
}

size_t slab_turns_fill(void *slabs, size_t n, void **objects)
{
        return stook_slab_fill(slabs, 0, n, objects, STOOK_FILL_FOR_SHEAF);
}

void slab_turns_give(void *slabs, size_t n, void *const *objects)
{
        stook_slab_drain(slabs, n, objects);
}

bool slab_turns_holds(const void *slabs)
{
        return stook_lock_is_mine(&((const struct stook_slabs *)slabs)->node[0].lock);
}
