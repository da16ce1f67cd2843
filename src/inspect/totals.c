/*
 * Purpose: the sums over the whole heap: what the pages know, and what one walk over the sheaves
 * and caches adds.
 * Place: API; reads all layers. Objects with users are counted as snapshot.c counts those of a
 * cache: what counters hold, plus what the words of the sheaves say. Sums are linear in both, so
 * nothing is kept for a cache: each sheaf adds its share with its cache's object size as weight.
 * Concurrency: relaxed reads without a lock, so it may run in a handler on top of anything; exact
 * when no thread is inside a call.
 */
#include <errno.h>
#include <string.h>

#include "cache/cache.h"
#include "gate/gate.h"
#include "group/group.h"
#include "harden/harden.h"
#include "inspect/inspect.h"
#include "malloc/malloc.h"
#include "pages/span.h"
#include "report/report.h"
#include "stat/counter.h"
#include "stat/gone.h"
#include <stook/rcu.h>

static void add_pages(struct stook_totals *t)
{
        struct stook_pages_stats pages;

        stook_pages_stats(&pages);
        t->active_bytes = pages.taken_bytes;
        t->active_peak_bytes = pages.taken_peak_bytes;
        t->free_dirty_bytes = pages.free_dirty_bytes;
        t->free_clean_bytes = pages.free_clean_bytes;
        t->free_spans = pages.free_spans;
        t->metadata_bytes = pages.metadata_bytes;
        t->resident_bytes = pages.taken_bytes + pages.free_dirty_bytes + pages.metadata_bytes;
        t->reserved_bytes = pages.reserved_bytes;
        t->rcu_bytes = stook_rcu_backlog();
        t->large_objects = __atomic_load_n(&stook_large_count, __ATOMIC_RELAXED);
        t->guarded_objects = __atomic_load_n(&stook_guarded_count, __ATOMIC_RELAXED);
        t->purges = pages.purges;
        t->purged_bytes = pages.purged_bytes;
        t->refaulted_bytes = pages.refaulted_bytes;
}

static void add_sheaf(struct stook_sheaf *sheaf, unsigned cache_index, void *data)
{
        const struct stook_cache *cache = stook_cache_at(cache_index);
        struct stook_sheaf_sums one = { 0 };
        struct stook_totals *t = data;
        uint64_t live;

        stook_sheaf_sum_in(sheaf, &one);
        live = one.pops - one.pushes - one.rcu;
        t->alloc_fastpath += one.pops;
        t->free_fastpath += one.pushes;
        t->free_rcu_sheaf += one.rcu;
        t->objects_live += live;
        t->allocated_bytes += live * cache->object_size;
        t->objects_cached += one.objects;
        t->cached_bytes += one.objects * cache->slabs.stride;
        t->sheaves++;
}

static void add_cache(struct stook_totals *t, const struct stook_cache *cache)
{
        uint64_t live, slabs = stook_slabs_count(&cache->slabs);
#define COUNT(name) uint64_t name = stook_counted(&cache->counters, STOOK_STAT_##name);
        STOOK_COUNTERS(COUNT)
#undef COUNT
#define ADD(name) t->name += name;
        STOOK_COUNTERS(ADD)
#undef ADD
        live = alloc_fastpath + alloc_slowpath - free_fastpath - free_slowpath - free_rcu_sheaf;
        t->objects_live += live;
        t->allocated_bytes += live * cache->object_size;
        t->slabs += slabs;
        t->space_bytes += slabs * cache->slabs.slab_bytes;
        t->caches++;
}

static void add_caches(struct stook_totals *t)
{
        unsigned bound = stook_caches_bound();

        for (unsigned i = 1; i < bound; i++) {
                const struct stook_cache *cache = stook_cache_at(i);
                uint32_t state = __atomic_load_n(&cache->state, __ATOMIC_ACQUIRE);

                if (state == STOOK_CACHE_LIVE || state == STOOK_CACHE_DYING)
                        add_cache(t, cache);
        }
        bound = stook_gone_count();
        for (unsigned i = 0; i < bound; i++) {
                struct stook_cache_stats stats;

                stook_gone_get(i, &stats);
#define ADD(name) t->name += stats.name;
                STOOK_COUNTERS(ADD)
#undef ADD
        }
}

static void add_groups(struct stook_totals *t)
{
        unsigned bound = __atomic_load_n(&stook_groups_bound, __ATOMIC_ACQUIRE);

        for (unsigned id = 1; id < bound; id++)
                t->groups += __atomic_load_n(&stook_group_at((uint16_t)id)->state,
                                             __ATOMIC_RELAXED) != STOOK_GROUP_FREE;
}

/* Other threads' calls that are under way may have taken off what they will add. */
static void at_least_zero(uint64_t *sum)
{
        if ((int64_t)*sum < 0)
                *sum = 0;
}

static int fill(struct stook_totals *totals, bool all)
{
        if (!totals ||
            !stook_report_size_is(totals->totals_size, sizeof(*totals), "totals_size"))
                return -EINVAL;
        if (!stook_gate_start())
                return -ENOMEM;
        memset(totals, 0, sizeof(*totals));
        totals->totals_size = sizeof(*totals);
        if (all) {
                stook_sheaf_walk(add_sheaf, totals);
                add_caches(totals);
                add_groups(totals);
                at_least_zero(&totals->objects_live);
                at_least_zero(&totals->allocated_bytes);
        }
        add_pages(totals);
        if (all) {
                totals->large_bytes = totals->active_bytes - totals->space_bytes;
                at_least_zero(&totals->large_bytes);
                totals->objects_live += totals->large_objects;
                totals->allocated_bytes += totals->large_bytes;
                if (totals->allocated_bytes > totals->active_bytes)
                        totals->allocated_bytes = totals->active_bytes;
        }
        return 0;
}

STOOK_API int stook_get_totals(struct stook_totals *totals)
{
        return fill(totals, true);
}

STOOK_API int stook_get_totals_approximate(struct stook_totals *totals)
{
        return fill(totals, false);
}
