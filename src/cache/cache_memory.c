/*
 * Purpose: see cache_memory.h.
 */
#include "cache/cache_memory.h"

#include "os/os.h"
#include "home/home.h"

/*
 * A handler on top of a call of the library may not wait: it would run the program's function where
 * that may be running already.
 */
static bool may_ask(const struct stook_cache *cache, uint64_t how)
{
        return cache->slabs.run_asks && !(how & (STOOK_HOW_NOWAIT | STOOK_HOW_NOLOCK)) &&
               !stook_lock_may_not_wait();
}

/* Return: how many. */
static size_t fill(struct stook_cache *cache, size_t n, void **objects, unsigned node, uint64_t how)
{
        return stook_slab_fill(&cache->slabs, node, n, objects,
                               STOOK_FILL_ASCENDING | STOOK_FILL_MAY_ASK |
                               (how & STOOK_HOW_THISNODE ? STOOK_FILL_THISNODE : 0));
}

size_t stook_alloc_with_memory(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        int named = how & STOOK_HOW_NODE ? stook_how_node(how) : -1;
        size_t got;

        if (!may_ask(cache, how))
                return 0;
        got = fill(cache, n, objects, named < 0 ? stook_home_to_use() : (unsigned)named,
                   how);
        if (got == n) {
                stook_count(&cache->counters, STOOK_STAT_alloc_slowpath, n);
                return n;
        }
        stook_slab_drain(&cache->slabs, got, objects);  /* as in cache_slow.c */
        return 0;
}

void stook_fill_with_memory(struct stook_cache *cache, struct stook_sheaf *sheaf, size_t n,
                            unsigned node, uint64_t how)
{
        size_t has = stook_sheaf_size(sheaf), got;

        if (has >= n || !may_ask(cache, how))
                return;
        got = fill(cache, n - has, sheaf->objects + has, node, how);
        stook_sheaf_set_size(sheaf, (unsigned)(has + got));
        stook_count(&cache->counters, STOOK_STAT_sheaf_refill, got);
}
