/*
 * Purpose: what a cache has on one node.
 * Place: API; reads slab, barn and slot.
 * Concurrency: relaxed reads; exact when no thread is inside a call on the cache.
 */
#include <errno.h>

#include "cache/cache.h"
#include "os/os.h"
#include "report/report.h"
#include "home/home.h"

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
