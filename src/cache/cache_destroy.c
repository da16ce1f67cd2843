/*
 * Purpose: empty a cache: for good (destroy), or as far as it goes (shrink).
 * Place: API; calls slot, barn and slab from above, in the order in which objects go down.
 * Invariants:
 *  I1 a cache is given up only when no object is out of its slabs and no sheaf of it is left, lent ones
 *     included; until then it is whole and usable.
 * Concurrency: registry mutex; alloc and free of the cache may go on during a shrink.
 */
#include <errno.h>
#include <limits.h>

#include "cache/cache.h"
#include "pages/span.h"
#include "report/report.h"

/* Objects named one by one in the report of a destroy. */
#define LEFT_NAMED 16

bool stook_cache_empty(struct stook_cache *cache)
{
        bool drained = stook_slot_drain(&cache->front);

        stook_barn_empty_all(&cache->barns);
        stook_slabs_shrink(&cache->slabs);
        return drained;
}

/* Sheaves whose objects are told from those that users have; where more are lent, none is named. */
#define LENT_KNOWN 32

struct left {
        const struct stook_cache *cache;
        const struct stook_sheaf *lent[LENT_KNOWN];
        size_t sheaves, named;
};

static void note_lent(struct stook_sheaf *sheaf, void *data)
{
        struct left *left = data;

        if (!stook_sheaf_is_lent(sheaf))
                return;
        if (left->sheaves < LENT_KNOWN)
                left->lent[left->sheaves] = sheaf;
        left->sheaves++;
}

static bool is_in_lent(const struct left *left, const void *object)
{
        for (size_t i = 0; i < left->sheaves; i++)
                for (unsigned k = 0; k < stook_sheaf_size(left->lent[i]); k++)
                        if (left->lent[i]->objects[k] == object)
                                return true;
        return false;
}

static void name_left(void *object, void *slab, void *data)
{
        struct left *left = data;

        if (left->named == LEFT_NAMED || is_in_lent(left, object))
                return;
        left->named++;
        stook_report_found(STOOK_FAULT_OBJECTS_LEFT, object, left->cache->name, slab,
                           (uintptr_t)object - (uintptr_t)slab, NULL);
}

struct lent {
        size_t sheaves, objects;
};

static void count_lent(struct stook_sheaf *sheaf, void *data)
{
        struct lent *lent = data;

        if (stook_sheaf_is_lent(sheaf)) {
                lent->sheaves++;
                lent->objects += stook_sheaf_size(sheaf);
        }
}

/* Of a cache that was emptied. Most times there is no sheaf left that could be lent. */
static struct lent lent_sheaves(const struct stook_cache *cache)
{
        struct lent lent = { 0 };

        if (stook_counted(&cache->counters, STOOK_STAT_sheaf_alloc) !=
            stook_counted(&cache->counters, STOOK_STAT_sheaf_free))
                stook_sheaf_for_each(cache->index, count_lent, &lent);
        return lent;
}

static void report_lent(const struct stook_cache *cache, struct lent lent)
{
        char detail[112];

        stook_report_format(detail, sizeof(detail), "%u prefilled sheaves not returned at destroy, %u objects in them",
                            (uint64_t)lent.sheaves, (uint64_t)lent.objects);
        stook_report_found(STOOK_FAULT_OBJECTS_LEFT, NULL, cache->name, NULL, 0, detail);
}

static STOOK_NOINLINE void report_left(struct stook_cache *cache, size_t objects)
{
        struct left left = { .cache = cache };
        char detail[64];

        stook_sheaf_for_each(cache->index, note_lent, &left);
        if (left.sheaves <= LENT_KNOWN)
                stook_slabs_for_each_out(&cache->slabs, name_left, &left);
        stook_report_format(detail, sizeof(detail), "%u still allocated at destroy", (uint64_t)objects);
        stook_report_found(STOOK_FAULT_OBJECTS_LEFT, NULL, cache->name, NULL, 0, detail);
}

STOOK_API int stook_cache_destroy(struct stook_cache *cache)
{
        uint32_t config, reserved;
        struct lent lent = { 0 };
        size_t objects;
        bool drained;

        if (!cache)
                return 0;
        if (stook_registry_is_class(cache))
                return -EINVAL;
        stook_cache_rcu_barrier(cache);
        stook_registry_lock();
        if (cache->references > 1) {
                cache->references--;
                stook_registry_unlock();
                return 0;
        }
        __atomic_store_n(&cache->state, STOOK_CACHE_DYING, __ATOMIC_RELAXED);
        reserved = __atomic_exchange_n(&cache->slabs.reserved, 0, __ATOMIC_RELAXED);
        config = cache->front.config;
        __atomic_store_n(&cache->front.config, config | 1, __ATOMIC_SEQ_CST);
        drained = stook_barns_close(&cache->barns) && stook_cache_empty(cache);
        objects = drained ? stook_slabs_objects_out(&cache->slabs) : 0;
        if (drained)
                lent = lent_sheaves(cache);
        if (drained && !objects && !lent.sheaves) {
                stook_registry_withdraw(cache);         /* its barns stay closed until the index is used again */
                if (cache->second_index)
                        stook_registry_give(stook_cache_at(cache->second_index));
                stook_registry_give(cache);
                stook_registry_unlock();
                stook_rcu_hand_in();
                return 0;
        }
        stook_barns_open(&cache->barns);
        __atomic_store_n(&cache->slabs.reserved, reserved, __ATOMIC_RELAXED);
        __atomic_store_n(&cache->front.config, stook_barns_capacity(&cache->barns) ? config + 2 : config, __ATOMIC_RELEASE);
        __atomic_store_n(&cache->state, STOOK_CACHE_LIVE, __ATOMIC_RELEASE);
        if (!drained)
                stook_report_found(STOOK_FAULT_OBJECTS_LEFT, NULL, cache->name, NULL, 0,
                                   "slots not emptied at destroy: membarrier refused, or a thread stopped in there");
        if (lent.sheaves)
                report_lent(cache, lent);
        if (objects > lent.objects)
                report_left(cache, objects - lent.objects);
        stook_registry_unlock();
        return -EBUSY;
}

STOOK_API int stook_cache_shrink(struct stook_cache *cache)
{
        size_t slabs;

        if (!cache)
                return -EINVAL;
        stook_registry_lock();
        stook_cache_empty(cache);
        slabs = stook_slabs_count(&cache->slabs);
        stook_registry_unlock();
        stook_rcu_hand_in();
        return slabs < INT_MAX ? (int)slabs : INT_MAX;
}
