/*
 * Purpose: all objects of a cache that callers own: a walk over them, and a destroy that frees
 * them.
 * Place: API, and inspect for the caches of malloc and of heaps (walk.h); calls slot, barn and slab
 *  from above, as a destroy does.
 *
 * During the walk the cache has no sheaves: its configuration says so, and slots and barns are
 * emptied. So an object that is out of its slab is a caller's, and a free sets its bit at once. A
 * cache with lent sheaves is refused. In a watched cache, objects in the quarantine and isolated
 * objects are out of their slabs as well. The watch tells that they are not live.
 *
 * Invariants:
 *  I1 no slab is released during a walk, because `reserved` keeps all. The walk looks at each slab
 *     once, so frees and allocations in the callback change nothing that it has looked at.
 *  I2 barns are closed during a walk, so the idle reaper takes no sheaf out of them.
 * Concurrency: registry mutex. The program sees to it that no other thread uses the cache. Another
 *  thread may fork meanwhile, and waits a second for the mutex. If the walk goes on, the cache has
 *  no sheaves in the child, and keeps its slabs.
 */
#include <errno.h>
#include <stook/cache.h>

#include "cache/cache_slow.h"
#include "cache/cache_watch.h"
#include "gate/gate.h"
#include "walk/walk.h"

#define BATCH 32                        /* objects that are freed together */

struct walk {
        struct stook_cache *cache;
        int  (*each)(void *object, void *data);
        void (*last_look)(void *object, void *data);
        void  *data;
        bool   frees;
        int    answer;                  /* of `each`; not 0: the walk ends */
        size_t gathered;
        void **batch;                   /* [BATCH] */
};

static void free_gathered(struct walk *walk)
{
        if (walk->gathered)
                stook_free_bulk_slow(walk->cache, walk->gathered, walk->batch, 0);
        walk->gathered = 0;
}

static void free_one(struct walk *walk, void *object)
{
        if (walk->last_look) {
                walk->last_look(object, walk->data);
                stook_free_slow(walk->cache, object, 0);
                return;
        }
        walk->batch[walk->gathered++] = object;
        if (walk->gathered == BATCH)
                free_gathered(walk);
}

/* The callback may have freed the object since its part was looked at. */
static bool is_live(const struct walk *walk, const void *object)
{
        struct stook_cache *cache = walk->cache;

        return stook_slab_object_out(&cache->slabs, object) &&
               (!cache->watch || stook_watch_duties.usable(cache, object) != STOOK_NO_OBJECT);
}

static void visit(void *object, void *slab, void *data)
{
        struct walk *walk = data;

        (void)slab;
        if (walk->answer || !is_live(walk, object))
                return;
        if (walk->frees)
                free_one(walk, object);
        else
                walk->answer = walk->each(object, walk->data);
}

/* Not inline: its stack is free again when the slots are evacuated. */
static STOOK_NOINLINE void visit_all(struct walk *walk)
{
        struct stook_slabs *slabs = &walk->cache->slabs;
        uint32_t reserved = __atomic_exchange_n(&slabs->reserved, UINT32_MAX, __ATOMIC_RELAXED);
        void *batch[BATCH];

        walk->batch = batch;
        stook_slabs_for_each_out(slabs, visit, walk);                           /* I1 */
        free_gathered(walk);
        __atomic_store_n(&slabs->reserved, reserved, __ATOMIC_RELAXED);
}

/* Registry mutex held. */
static int without_sheaves(struct walk *walk)
{
        struct stook_cache *cache = walk->cache;
        uint32_t generation = stook_cache_forbid_installs(cache);
        int error = -EBUSY;

        if (stook_barns_close(&cache->barns)) {                                 /* I2 */
                if (stook_cache_empty(cache) && !stook_cache_has_lent(cache)) {
                        error = 0;
                        visit_all(walk);
                }
                stook_barns_open(&cache->barns);
        }
        stook_cache_allow_installs(cache, generation);
        return error;
}

/* @walk is of a cache that is not NULL. */
static int go(struct walk *walk, const char *refusal)
{
        struct stook_cache *cache = walk->cache;
        int error;

        stook_gate_check();
        if (!stook_registry_may_wait(refusal))
                return -EDEADLK;
        stook_rcu_barrier_of(&cache->rcu);
        error = stook_cache_lock(cache, refusal);
        if (error)
                return error;
        error = walk->frees && cache->references > 1 ? -EBUSY : without_sheaves(walk);
        stook_registry_unlock();
        return error ? error : walk->answer;
}

int stook_walk_objects(struct stook_cache *cache, int (*each)(void *object, void *data),
                       void *data, const char *refusal)
{
        return go(&(struct walk){ .cache = cache, .each = each, .data = data }, refusal);
}

STOOK_API int stook_cache_for_each_object(struct stook_cache *cache,
                                          int (*each)(void *object, void *data), void *data)
{
        if (!cache || !each || stook_registry_is_class(cache))
                return -EINVAL;
        return stook_walk_objects(cache, each, data, STOOK_REFUSED("stook_cache_for_each_object"));
}

STOOK_API int stook_cache_destroy_all(struct stook_cache *cache,
                                      void (*last_look)(void *object, void *data), void *data)
{
        struct walk walk = { .cache = cache, .last_look = last_look, .data = data, .frees = true };
        int error;

        if (!cache)
                return 0;
        if (stook_registry_is_class(cache))
                return -EINVAL;
        error = go(&walk, STOOK_REFUSED("stook_cache_destroy_all"));
        return error ? error : stook_cache_destroy(cache);
}
