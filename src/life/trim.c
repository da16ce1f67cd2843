/*
 * Purpose: give memory back now: what caches keep, and what the page layer keeps free.
 * Place: API, and maintenance under memory pressure; calls cache and pages.
 */
#include "cache/cache_limit.h"
#include "gate/gate.h"
#include "life/maintain.h"
#include "pages/purge.h"
#include <stook/control.h>

size_t stook_trim_now(size_t keep_bytes)
{
        struct stook_cache *cache = NULL;

        if (!stook_registry_lock(STOOK_REFUSED("stook_trim")))
                return 0;
        while ((cache = stook_registry_next(cache))) {
                stook_reclaim_from(cache, SIZE_MAX);
                stook_cache_empty(cache);
        }
        stook_registry_unlock();
        stook_rcu_submit_deferred();
        return stook_pages_purge(keep_bytes);
}

STOOK_API size_t stook_trim(size_t keep_bytes)
{
        if (!stook_gate_open())
                return 0;
        stook_gate_check();
        stook_maintenance_revive();
        return stook_trim_now(keep_bytes);
}
