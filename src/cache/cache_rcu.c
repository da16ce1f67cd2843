/*
 * Purpose: frees that wait for readers.
 * Place: API; calls barn for sheaves.
 * Failure: -EAGAIN and the caller keeps the object; never for caches made with STOOK_RCU.
 */
#include <errno.h>

#include "cache/cache_rcu.h"
#include "life/life.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "slot/slot_rcu.h"

/* Objects of a sheaf that takes those of all caches without sheaves. */
#define MIXED_CAPACITY 60

static struct stook_sheaf *mixed_open;

static struct stook_sheaf *new_open(struct stook_cache *or_null)
{
        struct stook_sheaf *sheaf;

        if (!or_null)
                return stook_sheaf_new_mixed(stook_sheaf_round_capacity(MIXED_CAPACITY));
        sheaf = stook_barn_get_empty(&or_null->barns, 0);
        if (!sheaf)
                sheaf = stook_sheaf_new(or_null->index, stook_barns_capacity(&or_null->barns), 0, &or_null->counters);
        if (sheaf)
                stook_sheaf_begin_rcu(sheaf, &or_null->counters);
        return sheaf;
}

static struct stook_sheaf **open_of(struct stook_cache *or_null)
{
        return or_null ? &or_null->rcu_open : &mixed_open;
}

void stook_rcu_submit_open(struct stook_cache *or_null)
{
        struct stook_sheaf *sheaf = __atomic_exchange_n(open_of(or_null), NULL, __ATOMIC_ACQ_REL);

        if (sheaf)
                stook_rcu_submit(sheaf, false);
}

/* In transit. False: no sheaf. */
static bool put(struct stook_cache *or_null, void *object, bool nolock)
{
        struct stook_sheaf **open = open_of(or_null), *sheaf = __atomic_exchange_n(open, NULL, __ATOMIC_ACQ_REL);

        if (!sheaf)
                sheaf = new_open(or_null);
        if (!sheaf)
                return false;
        sheaf->objects[stook_sheaf_size(sheaf)] = object;
        __atomic_store_n(&sheaf->word, sheaf->word + 1, __ATOMIC_RELAXED);
        if (!stook_sheaf_full(sheaf))
                sheaf = __atomic_exchange_n(open, sheaf, __ATOMIC_ACQ_REL);
        if (sheaf)
                stook_rcu_submit(sheaf, nolock);
        return true;
}

static int free_rcu(struct stook_cache *or_null, void *object, bool nolock)
{
        /* Objects of a cache without sheaves go with those of others, unless it has an RCU of its own. */
        bool mixed = !or_null || (!stook_barns_capacity(&or_null->barns) && !or_null->rcu), kept = false;
        int ticket;

        if (!stook_rcu_of(or_null))
                return -ENOTSUP;
        if (!nolock)
                stook_fork_check();
        if (or_null)
                __atomic_store_n(&or_null->rcu_used, 1, __ATOMIC_RELAXED);
        ticket = stook_transit_enter();
        if (ticket >= 0) {
                if (mixed || stook_barns_capacity(&or_null->barns))
                        kept = put(mixed ? NULL : or_null, object, nolock);
                if (!nolock)
                        stook_rcu_submit_waiting();
        }
        if ((mixed || !kept) && or_null)
                stook_count(&or_null->counters, STOOK_STAT_free_rcu_sheaf_fail, 1);
        if (!kept && or_null && (or_null->flags & STOOK_RCU)) {
                stook_rcu_chain_put(or_null, object, nolock || ticket < 0);
                kept = true;
        }
        if (ticket >= 0)
                stook_transit_leave(ticket);
        return kept ? 0 : -EAGAIN;
}

/* Is it an object of @cache? As in stook_cache_free. */
static bool belongs(struct stook_cache *cache, const void *object, uint64_t entry)
{
        uint32_t offset = stook_entry_offset(entry, (uintptr_t)object);

        return stook_entry_cache(entry) == cache->index && offset * cache->magic < cache->magic &&
               offset <= cache->last_offset;
}

static int free_of_cache(struct stook_cache *cache, void *object, bool nolock)
{
        if (STOOK_UNLIKELY(!object))
                return 0;
        if (STOOK_UNLIKELY(!belongs(cache, object, stook_pagemap_get((uintptr_t)object)))) {
                stook_cache_free_misuse(cache, object);
                return -EINVAL;
        }
        return free_rcu(cache, object, nolock);
}

STOOK_API int stook_cache_free_rcu(struct stook_cache *cache, void *object)
{
        return free_of_cache(cache, object, false);
}

STOOK_API int stook_cache_free_rcu_nolock(struct stook_cache *cache, void *object)
{
        return free_of_cache(cache, object, true);
}

STOOK_API int stook_free_rcu(void *object)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        unsigned index = stook_entry_cache(entry);

        if (!object)
                return 0;
        if (index)
                return free_of_cache(stook_cache_at(index), object, false);
        if (!entry || !stook_span_large_at((uintptr_t)object)) {
                stook_cache_free_misuse(NULL, object);
                return -EINVAL;
        }
        return free_rcu(NULL, object, false);
}
