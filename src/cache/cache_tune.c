/*
 * Purpose: change a live cache: what its sheaves hold, what its barns keep, how many objects it has
 * in store.
 * Place: API; calls barn, slot and slab.
 *
 * The new configuration is stored first: capacity and limits, then the generation (slot.h, config).
 * Then slots are evacuated and barns emptied. A thread that got its sheaf under the old generation
 * can no longer install it, and puts it into the barn. The put drains and deletes a sheaf that is
 * smaller than the new capacity. A larger full one may come into a slot again. So sheaves of an
 * older capacity may exist for a while. They are as good as others, but the barn does not keep them
 * when they are empty (barn/barn.c).
 *
 * Invariants:
 *  I1 a thread that sees the new generation sees the new capacity. M1: release of config, acquire
 *     in slot_pair.h.
 * Concurrency: registry mutex; alloc and free of the cache go on.
 */
#include <errno.h>
#include <stdint.h>

#include "cache/cache_watch.h"
#include "evacuate/evacuate.h"
#include "gate/gate.h"
#include "os/os.h"
#include "report/report.h"

static bool is_valid(unsigned value, unsigned most)
{
        return value <= most || value == STOOK_NONE;
}

static unsigned or_as_it_is(unsigned wanted, unsigned now)
{
        return wanted == STOOK_NONE ? 0 : wanted ? wanted : now;
}

static bool are_valid(const struct stook_tuning *tuning)
{
        return stook_report_size_is(tuning->tuning_size, sizeof(*tuning), "tuning_size") &&
               is_valid(tuning->sheaf_capacity, STOOK_SHEAF_CAPACITY_MAX) &&
               is_valid(tuning->barn_full, STOOK_BARN_LIMIT_MAX) &&
               is_valid(tuning->barn_empty, STOOK_BARN_LIMIT_MAX);
}

static bool may_have_sheaves(const struct stook_cache *cache)
{
        return !(cache->flags & STOOK_CACHE_NO_SHEAVES) && !stook_cache_options.tiny &&
               !(cache->watch & STOOK_WATCH_DEBUG);
}

/* Of a living cache. Registry mutex held. */
static int tune(struct stook_cache *cache, const struct stook_tuning *tuning)
{
        struct stook_barns *barns = &cache->barns;
        unsigned capacity, full, empty;
        bool evacuated;

        if (tuning->sheaf_capacity && tuning->sheaf_capacity != STOOK_NONE &&
            !may_have_sheaves(cache))
                return -ENOTSUP;
        capacity = or_as_it_is(tuning->sheaf_capacity, stook_barns_capacity(barns));
        full = or_as_it_is(tuning->barn_full, barns->full_wanted);
        empty = or_as_it_is(tuning->barn_empty, barns->empty_limit);
        stook_barns_set(barns, capacity, full, empty);
        __atomic_store_n(&cache->front.config, stook_cache_next_generation(cache, capacity),
                         __ATOMIC_SEQ_CST);
        evacuated = stook_rcu_cache_evacuate(&cache->rcu);
        evacuated &= stook_evacuate_cache(&cache->front);
        stook_barn_empty_all(barns);
        return evacuated ? 0 : -EBUSY;
}

STOOK_API int stook_cache_tune(struct stook_cache *cache, const struct stook_tuning *tuning)
{
        int error;

        if (!cache || !tuning || !are_valid(tuning))
                return -EINVAL;
        error = stook_cache_lock(cache, STOOK_REFUSED("stook_cache_tune"));
        if (error)
                return error;
        error = tune(cache, tuning);
        stook_registry_unlock();
        return error;
}

int stook_cache_tune_at(unsigned index, uint64_t born, const struct stook_tuning *tuning)
{
        struct stook_cache *cache;
        int error = -ENOENT;

        if (!index || index >= stook_caches_bound())
                return -ENOENT;
        cache = stook_cache_at(index);
        stook_gate_check();
        stook_registry_wait();
        if (cache->state == STOOK_CACHE_LIVE && cache->born == born)
                error = are_valid(tuning) ? tune(cache, tuning) : -EINVAL;
        stook_registry_unlock();
        return error;
}

STOOK_API int stook_cache_reserve(struct stook_cache *cache, size_t n)
{
        int error;

        if (!cache || n > PTRDIFF_MAX / cache->slabs.stride)
                return -EINVAL;
        error = stook_cache_lock(cache, STOOK_REFUSED("stook_cache_reserve"));
        if (error)
                return error;
        for (unsigned node = 0; node < stook_os_node_count(); node++) {
                int answer = 0;

                if (stook_os_node_has_memory(node))
                        answer = stook_slabs_reserve(&cache->slabs, node, n);
                error = error ? error : answer;
        }
        stook_registry_unlock();
        return error;
}
