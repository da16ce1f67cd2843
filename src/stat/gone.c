/*
 * Purpose: see gone.h. The entries are memory that stays untouched until a cache is destroyed.
 * Concurrency: M1: the release of `count` pairs with the acquire of stook_gone_count.
 */
#include <stdbool.h>
#include <string.h>
#include "stat/gone.h"

void (*stook_stats_page_hook)(void);    /* counter.h */

#define OTHERS "(others)"

static struct stook_gone gone[STOOK_GONE_MAX] STOOK_MOSTLY_UNUSED;
static uint32_t count;                  /* M1 */

static bool is(const struct stook_gone *entry, const struct stook_gone *one)
{
        return entry->object_size == one->object_size && !strcmp(entry->name, one->name);
}

/* The entry of such caches, which may be a new one. */
static struct stook_gone *entry_of(const struct stook_gone *one)
{
        struct stook_gone *entry;

        for (unsigned i = 0; i < count; i++)
                if (is(&gone[i], one))
                        return &gone[i];
        if (count == STOOK_GONE_MAX)
                return &gone[STOOK_GONE_MAX - 1];
        entry = &gone[count];
        if (count == STOOK_GONE_MAX - 1) {
                memcpy(entry->name, OTHERS, sizeof(OTHERS));
        } else {
                memcpy(entry->name, one->name, sizeof(entry->name));
                entry->object_size = one->object_size;
                entry->stride = one->stride;
                entry->objects_per_slab = one->objects_per_slab;
                entry->slab_bytes = one->slab_bytes;
        }
        __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
        return entry;
}

static void add(uint64_t *sum, uint64_t n)
{
        __atomic_store_n(sum, *sum + n, __ATOMIC_RELAXED);
}

static void raise(uint64_t *peak, uint64_t n)
{
        if (n > *peak)
                __atomic_store_n(peak, n, __ATOMIC_RELAXED);
}

void stook_gone_add(const struct stook_gone *one)
{
        struct stook_gone *entry = entry_of(one);

        add(&entry->caches, 1);
        raise(&entry->slabs_peak, one->slabs_peak);
        raise(&entry->objects_peak, one->objects_peak);
        for (unsigned i = 0; i < STOOK_STAT_COUNT; i++)
                add(&entry->counted[i], one->counted[i]);
}

unsigned stook_gone_count(void)
{
        return __atomic_load_n(&count, __ATOMIC_ACQUIRE);
}

uint64_t stook_gone_get(unsigned at, struct stook_cache_stats *stats)
{
        const struct stook_gone *entry = &gone[at];

        memset(stats, 0, sizeof(*stats));
        stats->stats_size = sizeof(*stats);
#define COPY(which) \
        stats->which = __atomic_load_n(&entry->counted[STOOK_STAT_##which], __ATOMIC_RELAXED);
        STOOK_COUNTERS(COPY)
#undef COPY
        memcpy(stats->name, entry->name, sizeof(stats->name));
        stats->object_size = entry->object_size;
        stats->stride = entry->stride;
        stats->objects_per_slab = entry->objects_per_slab;
        stats->slab_bytes = entry->slab_bytes;
        stats->slabs_peak = __atomic_load_n(&entry->slabs_peak, __ATOMIC_RELAXED);
        stats->objects_peak = __atomic_load_n(&entry->objects_peak, __ATOMIC_RELAXED);
        return __atomic_load_n(&entry->caches, __ATOMIC_RELAXED);
}
