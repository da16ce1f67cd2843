/*
 * Purpose: check the whole heap while the program's threads work.
 * Place: API; reads all layers.
 *
 * How: fork. The child has the heap as it was at one moment, and no other thread: the checks of one
 * cache that is still (validate.c), those of large objects and those of the pages hold there. fork
 * takes every lock first (life/fork.c), so nothing that a lock guards is half done in the child.
 * Objects that other threads had in their hands count as in use. The parent's threads go on
 * meanwhile.
 * The answer comes through a pipe, because another thread of the program may wait for all children.
 * Failure: no child, or it ended before it answered: nothing was found out.
 */
#include <errno.h>

#include "cache/cache.h"
#include "gate/gate.h"
#include "malloc/large_debug.h"
#include "inspect/validate.h"
#include "pages/span.h"
#include "process/process.h"
#include "report/report.h"
#include <stook/debug.h>

static void fault_of_pages(const char *what, const struct stook_span *span)
{
        stook_report_found(STOOK_FAULT_CORRUPT, span ? (const void *)span->start : NULL, NULL, NULL,
                           0, what);
}

/* In the child. Faults, or -errno. */
static int validate_all(void)
{
        int faults = 0;

        for (unsigned i = 1; i < stook_caches_bound(); i++) {
                struct stook_cache *cache = stook_cache_at(i);
                int found;

                if (__atomic_load_n(&cache->state, __ATOMIC_ACQUIRE) != STOOK_CACHE_LIVE)
                        continue;
                found = stook_cache_validate(cache);
                if (found < 0)
                        return found;
                faults += found;
        }
        return faults + stook_large_debug_validate() + stook_pages_validate(fault_of_pages);
}

STOOK_API int stook_validate_all(void)
{
        int before = errno, answer = 0, error;

        if (!stook_gate_open())
                return -ENOMEM;
        stook_gate_check();
        if (!stook_registry_may_wait(STOOK_REFUSED("stook_validate_all")))
                return -EDEADLK;
        error = stook_process_ask_child(validate_all, &answer);
        errno = before;
        return error ? error : answer;
}
