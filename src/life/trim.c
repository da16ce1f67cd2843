/*
 * Purpose: give memory back now: what caches keep, and what the page layer keeps free.
 * Place: API, and maintenance under memory pressure; calls cache and pages.
 */
#include "cache/cache.h"
#include "life/life.h"
#include "life/maintain.h"
#include "pages/span.h"
#include <stook/control.h>

size_t stook_trim_now(size_t keep_bytes)
{
        struct stook_cache *cache = NULL;

        stook_registry_lock();
        while ((cache = stook_registry_next(cache)))
                stook_cache_empty(cache);
        stook_registry_unlock();
        stook_rcu_hand_in();
        return stook_pages_purge(keep_bytes);
}

STOOK_API size_t stook_trim(size_t keep_bytes)
{
        if (!stook_start())
                return 0;
        stook_fork_check();
        stook_maintenance_revive();
        return stook_trim_now(keep_bytes);
}
