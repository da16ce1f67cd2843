/*
 * Purpose: a cache's counters and sizes, summed from where they are kept; and what it has on one
 * node.
 * Place: API; reads all layers. alloc_fastpath and free_fastpath are the counts that sheaf memory
 * took along when it left the cache, plus what the words of the cache's sheaves say. Live objects
 * follow from the counts; nothing else knows them without a walk over all slabs.
 * Concurrency: relaxed reads; exact when no thread is inside a call on the cache.
 */
#include <errno.h>
#include <string.h>

#include "cache/cache.h"
#include "home/home.h"
#include "inspect/inspect.h"
#include "os/os.h"
#include "report/report.h"
#include "stat/counter.h"

struct all {
        struct stook_sheaf_sums *sums;
        unsigned count;
};

static void add(struct stook_sheaf *sheaf, unsigned cache_index, void *data)
{
        struct all *all = data;

        if (cache_index < all->count)
                stook_sheaf_sum_in(sheaf, all->sums + cache_index);
}

void stook_snapshot_sums(struct stook_sheaf_sums *sums, unsigned count)
{
        memset(sums, 0, count * sizeof(*sums));
        stook_sheaf_walk(add, &(struct all){ .sums = sums, .count = count });
}

void stook_snapshot_cache(const struct stook_cache *cache, const struct stook_sheaf_sums *sums,
                          struct stook_cache_stats *stats)
{
        uint64_t allocated, freed;

#define COPY(name) stats->name = stook_counted(&cache->counters, STOOK_STAT_##name);
        STOOK_COUNTERS(COPY)
#undef COPY
        stats->alloc_fastpath += sums->pops;
        stats->free_fastpath += sums->pushes;
        stats->free_rcu_sheaf += sums->rcu;
        memset(stats->reserved, 0, sizeof(stats->reserved));
        memset(stats->name, 0, sizeof(stats->name));
        strcpy(stats->name, stook_cache_name(cache));
        stats->object_size = stook_cache_object_size(cache);
        stats->stride = cache->slabs.stride;
        stats->objects_per_slab = cache->slabs.objects;
        stats->slab_bytes = cache->slabs.slab_bytes;
        stats->sheaf_capacity = stook_barns_capacity(&cache->barns);
        stats->slabs = stook_slabs_count(&cache->slabs);
        allocated = stats->alloc_fastpath + stats->alloc_slowpath;
        freed = stats->free_fastpath + stats->free_slowpath + stats->free_rcu_sheaf;
        /* another thread may be between its two counts */
        stats->objects_live = allocated > freed ? allocated - freed : 0;
        stats->objects_cached = sums->objects;
        stats->sheaves = sums->sheaves;
        stook_slabs_note_peaks((struct stook_slabs *)&cache->slabs);
        stats->slabs_peak = __atomic_load_n(&cache->slabs.slabs_peak, __ATOMIC_RELAXED);
        stats->objects_peak = __atomic_load_n(&cache->slabs.objects_peak, __ATOMIC_RELAXED);
}

STOOK_API int stook_cache_get_stats(const struct stook_cache *cache,
                                    struct stook_cache_stats *stats)
{
        struct stook_sheaf_sums sums;

        if (!cache || !stats ||
            !stook_report_size_is(stats->stats_size, sizeof(*stats), "stats_size"))
                return -EINVAL;
        stook_sheaf_sum(cache->index, &sums);
        stook_snapshot_cache(cache, &sums, stats);
        return 0;
}

STOOK_API int stook_cache_get_node_stats(const struct stook_cache *cache, unsigned node,
                                         struct stook_cache_node_stats *stats)
{
        const struct stook_slabs_node *slabs;
        struct stook_remote_counts home;
        struct stook_barn *barn;

        if (!cache || !stats ||
            !stook_report_size_is(stats->stats_size, sizeof(*stats), "stats_size") ||
            node >= stook_os_node_count())
                return -EINVAL;
        slabs = &cache->slabs.node[node];
        barn = &cache->barns.node[node];
        home = stook_home_counts(&cache->front, node);
        stats->slabs = __atomic_load_n(&slabs->slabs, __ATOMIC_RELAXED);
        stats->slabs_partial = stook_slabs_partial(&cache->slabs, node);
        stats->barn_full = stook_tagged_stack_count_racy(&barn->full);
        stats->barn_empty = stook_tagged_stack_count_racy(&barn->empty);
        stats->objects_sent_home = home.objects;
        stats->sheaves_sent_home = home.sheaves;
        return 0;
}
