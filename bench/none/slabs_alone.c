/*
 * bench/none/slabs_alone.c - see slabs_alone.h
 */
#include "slabs_alone.h"

#include <errno.h>

#include "cache/cache.h"
#include "cache/object_id.h"
#include "gate/gate.h"
#include "slab/slab.h"
#include "slot/slot.h"
#include "stat/counter.h"

void *slabs_alone_alloc(struct stook_cache *cache)
{
        void *object;

        stook_gate_check();
        if (!stook_slab_fill(&cache->slabs, stook_slot_node(), 1, &object, 0)) {
                errno = ENOMEM;
                return NULL;
        }
        stook_count(&cache->counters, STOOK_STAT_alloc_slowpath, 1);
        return object;
}

void slabs_alone_free(struct stook_cache *cache, void *object)
{
        if (!stook_cache_owns(cache, object))
                return;
        stook_gate_check();
        stook_count(&cache->counters, STOOK_STAT_free_slowpath, 1);
        stook_slab_drain(&cache->slabs, 1, &object);
}
