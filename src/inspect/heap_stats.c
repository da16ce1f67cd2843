/*
 * Purpose: the figures of a heap: what it counts itself, and what its caches have.
 * Place: API; calls snapshot.c.
 * Concurrency: registry mutex, so that the heap's caches stay; otherwise racy reads, exact when
 *  quiescent.
 */
#include <errno.h>
#include <string.h>

#include "heap/heaps.h"
#include "inspect/inspect.h"
#include "report/report.h"

static void add_cache(const struct stook_cache *cache, struct stook_heap_stats *stats)
{
        struct stook_cache_stats one;
        struct stook_sheaf_sums sums;

        stook_sheaf_sum(cache->index, &sums);
        stook_snapshot_cache(cache, &sums, &one);
        stats->objects_live += one.objects_live;
        stats->objects_cached += one.objects_cached;
        stats->slabs += one.slabs;
        stats->caches++;
}

void stook_snapshot_heap(const struct stook_heap *heap, struct stook_heap_stats *stats)
{
        uint64_t limit = __atomic_load_n(&heap->limit, __ATOMIC_RELAXED);

        *stats = (struct stook_heap_stats){
                .stats_size = sizeof(*stats),
                .limit_bytes = limit == UINT64_MAX ? 0 : limit,
                .bytes = __atomic_load_n(&heap->bytes, __ATOMIC_RELAXED),
                .peak_bytes = __atomic_load_n(&heap->peak, __ATOMIC_RELAXED),
                .large_bytes = __atomic_load_n(&heap->large_bytes, __ATOMIC_RELAXED),
                .refusals = __atomic_load_n(&heap->refusals, __ATOMIC_RELAXED),
                .spilled = __atomic_load_n(&heap->spilled, __ATOMIC_RELAXED),
        };
        strcpy(stats->name, heap->name);
        for (unsigned class = 0; class < STOOK_CLASSES; class++) {
                const struct stook_cache *cache = stook_heap_class(heap, class);

                if (cache)
                        add_cache(cache, stats);
        }
}

STOOK_API int stook_heap_get_stats(struct stook_heap *heap, struct stook_heap_stats *stats)
{
        bool live;

        if (!heap || !stats ||
            !stook_report_size_is(stats->stats_size, sizeof(*stats), "stats_size"))
                return -EINVAL;
        if (!stook_registry_lock(STOOK_REFUSED("stook_heap_get_stats")))
                return -EDEADLK;
        live = stook_heap_is_live(heap);
        if (live)
                stook_snapshot_heap(heap, stats);
        stook_registry_unlock();
        return live ? 0 : -EINVAL;
}
