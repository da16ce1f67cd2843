/*
 * Purpose: give memory back: what caches keep, and what the page layer keeps free.
 * Place: API; calls cache and pages.
 */
#include "cache/cache.h"
#include "life/life.h"
#include "pages/span.h"
#include <stook/control.h>

/* Steps of ageing in a round. Each is bounded by the page layer; a round is about what a busy program does in a second. */
#define ROUND_STEPS 64

STOOK_API size_t stook_trim(size_t keep_bytes)
{
        struct stook_cache *cache = NULL;

        if (!stook_start())
                return 0;
        stook_fork_check();
        stook_registry_lock();
        while ((cache = stook_registry_next(cache)))
                stook_cache_empty(cache);
        stook_registry_unlock();
        return stook_pages_purge(keep_bytes);
}

STOOK_API int stook_maintain(void)
{
        if (!stook_start())
                return 0;
        stook_fork_check();
        for (unsigned i = 0; i < ROUND_STEPS; i++) {
                stook_slot_rest();
                stook_pages_step();
        }
        stook_rcu_step();
        return 0;
}
