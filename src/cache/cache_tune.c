/*
 * Purpose: change a live cache: what its sheaves hold, what its barns keep, how many objects it has in store.
 * Place: API; calls barn, slot and slab.
 *
 * The new configuration is stored first: capacity and limits, then the generation (slot.h, config). Then slots and
 * barns are emptied. A thread that got its sheaf under the old generation finds that it cannot install it any more,
 * and takes it to the barn; from there it may come into a slot again. So sheaves of an older capacity may be about
 * for a while: they are as good as others, but are not kept when they are empty (barn/barn_growth.c).
 *
 * Invariants:
 *  I1 whoever sees the new generation sees the new capacity. M1: release of config, acquire in slot_miss.c.
 * Concurrency: registry mutex; alloc and free of the cache go on.
 */
#include <errno.h>
#include <stdint.h>

#include "cache/cache.h"
#include "life/life.h"
#include "os/os.h"

static bool is_valid(int value, int most)
{
        return value >= -1 && value <= most;
}

static unsigned or_as_it_is(int wanted, unsigned now)
{
        return wanted < 0 ? now : (unsigned)wanted;
}

STOOK_API int stook_cache_tune(struct stook_cache *cache, const struct stook_tuning *tuning)
{
        struct stook_barns *barns;
        unsigned capacity, full, empty;
        uint32_t config;
        bool drained;

        if (!cache || !tuning || tuning->tuning_size != sizeof(*tuning) ||
            !is_valid(tuning->sheaf_capacity, STOOK_SHEAF_CAPACITY_MAX) ||
            !is_valid(tuning->barn_full, STOOK_BARN_LIMIT_MAX) || !is_valid(tuning->barn_empty, STOOK_BARN_LIMIT_MAX))
                return -EINVAL;
        if (tuning->sheaf_capacity > 0 && ((cache->flags & STOOK_NO_SHEAVES) || stook_cache_options.tiny))
                return -ENOTSUP;
        barns = &cache->barns;
        stook_fork_check();
        stook_registry_lock();
        capacity = or_as_it_is(tuning->sheaf_capacity, stook_barns_capacity(barns));
        full = or_as_it_is(tuning->barn_full, barns->full_wanted);
        empty = or_as_it_is(tuning->barn_empty, barns->empty_limit);
        stook_barns_set(barns, capacity, full, empty);
        config = cache->front.config;
        __atomic_store_n(&cache->front.config, ((config + 2) & ~1u) | !capacity, __ATOMIC_SEQ_CST);
        drained = stook_slot_drain(&cache->front);
        stook_barn_empty_all(barns);
        stook_registry_unlock();
        return drained ? 0 : -EBUSY;
}

STOOK_API int stook_cache_reserve(struct stook_cache *cache, size_t n)
{
        int error = 0;

        if (!cache || n > PTRDIFF_MAX / cache->slabs.slot_size)
                return -EINVAL;
        stook_fork_check();
        stook_registry_lock();
        for (unsigned node = 0; node < stook_os_node_count(); node++) {
                int answer = stook_os_node_has_memory(node) ? stook_slabs_reserve(&cache->slabs, node, n) : 0;

                error = error ? error : answer;
        }
        stook_registry_unlock();
        return error;
}
