/*
 * Purpose: which RCU implementation frees go to: that of the process, or a cache's own; and which
 * caches have had frees by RCU.
 * Place: called by the files of this layer, and by cache when it makes and destroys caches.
 * Invariants:
 *  I1 the process's implementation does not change once a free was given to it.
 *  I2 a cache's entry in the table is set before the cache is used, and then is the same for ever:
 *     the cache of an index lives at one address.
 * Concurrency: M1: the release that marks a cache as used pairs with the acquire of a look at the
 *  mark: the thread that sees the mark sees the cache and its entry. M2: the release that gives a
 *  cache its table of functions pairs with the acquire of a barrier for everything, which may look
 *  at a cache that is just being made: the barrier sees what is in the table.
 */
#include <errno.h>

#include "rcu/rcu_inside.h"
#include "report/report.h"

static uintptr_t chosen;                /* atomic: const struct stook_rcu * | PINNED; I1 */
#define PINNED ((uintptr_t)1)

static struct stook_rcu_cache *caches[STOOK_CACHES_MAX] STOOK_MOSTLY_UNUSED;      /* atomic: I2 */
static uint32_t bound;                  /* atomic: entries from here on are NULL */

bool stook_rcu_is_usable(const struct stook_rcu *rcu)
{
        return rcu && stook_report_size_is(rcu->ops_size, sizeof(*rcu), "ops_size") &&
               rcu->call && rcu->barrier;
}

STOOK_API int stook_rcu_use(const struct stook_rcu *rcu)
{
        uintptr_t old = __atomic_load_n(&chosen, __ATOMIC_RELAXED);

        if (!stook_rcu_is_usable(rcu))
                return -EINVAL;
        stook_rcu_find_default_limit();
        do {
                if ((old & ~PINNED) == (uintptr_t)rcu)
                        return 0;
                if (old & PINNED)
                        return -EBUSY;
        } while (!__atomic_compare_exchange_n(&chosen, &old, (uintptr_t)rcu, true, __ATOMIC_RELEASE,
                                              __ATOMIC_RELAXED));
        return 0;
}

const struct stook_rcu *stook_rcu_peek(struct stook_rcu_cache *or_null)
{
        const struct stook_rcu *own = NULL;

        if (or_null)
                own = __atomic_load_n(&or_null->own, __ATOMIC_ACQUIRE);         /* M2 */
        if (own)
                return own;
        return (const struct stook_rcu *)(__atomic_load_n(&chosen, __ATOMIC_ACQUIRE) & ~PINNED);
}

const struct stook_rcu *stook_rcu_pin(struct stook_rcu_cache *or_null)
{
        const struct stook_rcu *own = NULL;
        uintptr_t now;

        if (or_null)
                own = __atomic_load_n(&or_null->own, __ATOMIC_RELAXED);
        if (own)
                return own;
        now = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
        while (now && !(now & PINNED))
                if (__atomic_compare_exchange_n(&chosen, &now, now | PINNED, true, __ATOMIC_ACQUIRE,
                                                __ATOMIC_ACQUIRE))
                        break;
        return (const struct stook_rcu *)(now & ~PINNED);
}

const struct stook_rcu *stook_rcu_pinned(void)
{
        uintptr_t now = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);

        return now & PINNED ? (const struct stook_rcu *)(now & ~PINNED) : NULL;
}

/* ---- caches ---- */

bool stook_rcu_cache_init(struct stook_rcu_cache *cache, struct stook_front *front,
                          const struct stook_rcu *own, uint32_t hidden_offset, bool accounted)
{
        if (hidden_offset && !stook_rcu_chain_new(cache))
                return false;
        cache->front = front;
        cache->offset = front->offset;
        cache->hidden_offset = hidden_offset;
        cache->accounted = accounted;
        __atomic_store_n(&cache->own, own, __ATOMIC_RELEASE);            /* M2 */
        return true;
}

void stook_rcu_cache_end(struct stook_rcu_cache *cache)
{
        __atomic_store_n(&cache->used, false, __ATOMIC_RELAXED);
}

/* All threads that come here at once store the same. */
static void note_used(struct stook_rcu_cache *cache)
{
        uint32_t index = cache->front->barns->cache_index;
        uint32_t seen = __atomic_load_n(&bound, __ATOMIC_RELAXED);

        __atomic_store_n(&caches[index], cache, __ATOMIC_RELAXED);
        while (seen <= index && !__atomic_compare_exchange_n(&bound, &seen, index + 1, true,
                                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                ;
        __atomic_store_n(&cache->used, true, __ATOMIC_RELEASE);             /* M1 */
}

STOOK_NOINLINE bool stook_rcu_cache_use(struct stook_rcu_cache *cache)
{
        if (!stook_rcu_pin(cache))
                return false;
        note_used(cache);
        return true;
}

struct stook_rcu_cache *stook_rcu_cache_at(unsigned index)
{
        return __atomic_load_n(&caches[index], __ATOMIC_RELAXED);
}

unsigned stook_rcu_caches_bound(void)
{
        return __atomic_load_n(&bound, __ATOMIC_RELAXED);
}
