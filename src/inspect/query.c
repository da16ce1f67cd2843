/*
 * Purpose: what a program asks about single things: the name of a cache, the group that a thread is
 * in, all groups, and whether an object is worth moving.
 * Place: API; reads cache, group and slab, and changes nothing.
 * Concurrency: relaxed reads, any thread, any instruction.
 */
#include <errno.h>

#include "cache/cache.h"
#include "cache/object_id.h"
#include "group/group.h"
#include "inspect/inspect.h"
#include "pages/pagemap.h"
#include "report/report.h"
#include "slab/slab_state.h"
#include "stat/counter.h"

STOOK_API const char *stook_cache_get_name(const struct stook_cache *cache)
{
        return cache ? stook_cache_name(cache) : NULL;
}

STOOK_API struct stook_group *stook_group_current(void)
{
        uint16_t id = stook_self->group;

        return id && id != STOOK_GROUP_NONE ? stook_group_at(id) : NULL;
}

STOOK_API int stook_group_for_each(int (*each)(struct stook_group *group, void *data), void *data)
{
        unsigned bound = __atomic_load_n(&stook_groups_bound, __ATOMIC_ACQUIRE);
        int answer = 0;

        if (!each)
                return -EINVAL;
        for (unsigned id = 1; id < bound && !answer; id++) {
                struct stook_group *group = stook_group_at((uint16_t)id);

                if (__atomic_load_n(&group->state, __ATOMIC_RELAXED) != STOOK_GROUP_FREE)
                        answer = each(group, data);
        }
        return answer;
}

/* Objects of a cache that are out of its slabs: with users, and in sheaves. */
static uint64_t objects_out(const struct stook_cache *cache)
{
#define COUNT(name) uint64_t name = stook_counted(&cache->counters, STOOK_STAT_##name);
        COUNT(alloc_slowpath)
        COUNT(free_slowpath)
        COUNT(sheaf_refill)
        COUNT(sheaf_flush)
#undef COUNT
        uint64_t out = alloc_slowpath + sheaf_refill - free_slowpath - sheaf_flush;

        return (int64_t)out < 0 ? 0 : out;
}

STOOK_API int stook_object_get_occupancy(const void *object, struct stook_occupancy *occupancy)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        unsigned index = stook_entry_cache(entry);
        const struct stook_cache *cache = stook_cache_at(index);
        struct stook_slab *slab;

        if (!occupancy || !stook_report_size_is(occupancy->occupancy_size, sizeof(*occupancy),
                                                "occupancy_size") ||
            !index || !stook_object_starts(index, stook_entry_offset(entry, (uintptr_t)object)))
                return -EINVAL;
        slab = stook_slab_of(stook_entry_span(entry));
        occupancy->slab_objects = slab->objects;
        occupancy->slab_out = slab->objects - slab->kept_first - stook_slab_free_objects(slab);
        occupancy->cache_slabs = stook_slabs_count(&cache->slabs);
        occupancy->cache_out = objects_out(cache);
        return occupancy->slab_out * occupancy->cache_slabs < occupancy->cache_out;
}
