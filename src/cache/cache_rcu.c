/*
 * Purpose: frees that wait for readers: into the slot's rcu sheaf in one critical section; the free that fills it
 * takes it off and submits it.
 * Objects of caches without sheaves, large objects of malloc's and those of other nodes share sheaves, on line 0.
 * Place: API; calls slot, and barn for sheaves.
 * Failure: -EAGAIN and the caller keeps the object; never for caches made with STOOK_RCU.
 */
#include <errno.h>

#include "cache/cache_rcu.h"
#include "life/life.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "slot/slot_node.h"
#include "slot/slot_rcu.h"

/* Objects of a sheaf that takes those of many caches. */
#define MIXED_CAPACITY 60
/* Larger objects wait for nobody to share a sheaf with: what lies in open sheaves is not in the backlog. */
#define ALONE_BYTES ((size_t)1 << 20)
#define ALONE_CAPACITY 4                /* of the smallest sheaf there is */
#define TRIES 16                        /* aborts, and sheaves that others opened or filled first */

static struct stook_sheaf *new_sheaf(struct stook_cache *or_null)
{
        unsigned node = stook_slot_node();
        struct stook_sheaf *sheaf;

        if (!or_null)
                return stook_sheaf_new_mixed(stook_sheaf_round_capacity(MIXED_CAPACITY));
        sheaf = stook_barn_get_empty(&or_null->barns, node);
        if (!sheaf)
                sheaf = stook_sheaf_new(or_null->index, stook_rcu_capacity(or_null), node, &or_null->counters);
        if (sheaf)
                stook_sheaf_begin_rcu(sheaf, &or_null->counters);
        return sheaf;
}

static void drop(struct stook_cache *or_null, struct stook_sheaf *sheaf)
{
        if (or_null) {
                stook_sheaf_end_rcu(sheaf, &or_null->counters);
                stook_barn_dispose(&or_null->barns, stook_sheaf_node(sheaf), sheaf);
        } else {
                stook_sheaf_end_mixed(sheaf);
        }
}

static uint32_t offset_of(const struct stook_cache *or_null)
{
        return or_null ? or_null->front.offset : 0;
}

/* A sheaf is open on this slot, or was a moment ago. False: none to be had. */
static bool open_sheaf(struct stook_cache *or_null, bool nolock)
{
        struct stook_sheaf *sheaf;

        if (stook_slot_rcu_is_open(offset_of(or_null)))
                return true;
        sheaf = new_sheaf(or_null);
        if (!sheaf)
                return false;
        if (!stook_slot_rcu_open(offset_of(or_null), sheaf, stook_rcu_round()))
                drop(or_null, sheaf);
        else if (!nolock)
                stook_rcu_watch(or_null);
        return true;
}

/* The object goes into the last place of the sheaf, and that to the implementation. False: it did not. */
static bool fill(struct stook_cache *or_null, void *object, bool nolock)
{
        int ticket = stook_transit_enter();
        struct stook_sheaf *full;

        if (ticket < 0)
                return false;
        full = stook_slot_ops()->rcu_fill(offset_of(or_null), object);
        if (full)
                stook_rcu_submit(full, nolock);
        if (!nolock)
                stook_rcu_submit_waiting();
        stook_transit_leave(ticket);
        return full;
}

/* False: no sheaf for it, or too much waits already. */
static bool put(struct stook_cache *or_null, void *object, bool nolock)
{
        for (unsigned tries = 0; tries < TRIES; tries++) {
                void *answer = stook_slot_ops()->rcu_push(offset_of(or_null), object);

                if (STOOK_LIKELY(answer == object))
                        return true;
                if (answer == STOOK_RCU_LAST) {
                        if (!stook_rcu_has_room(or_null, nolock))
                                return false;
                        if (fill(or_null, object, nolock))
                                return true;
                } else if (!open_sheaf(or_null, nolock)) {
                        return false;
                }
        }
        return false;
}

/* In a sheaf of its own. */
static bool put_alone(void *object, bool nolock)
{
        struct stook_sheaf *sheaf;
        int ticket;

        if (!stook_rcu_has_room(NULL, nolock))
                return false;
        sheaf = stook_sheaf_new_mixed(ALONE_CAPACITY);
        if (!sheaf)
                return false;
        sheaf->objects[0] = object;
        __atomic_store_n(&sheaf->word, 1, __ATOMIC_RELAXED);
        ticket = stook_transit_enter();
        if (ticket < 0) {
                stook_sheaf_end_mixed(sheaf);
                return false;
        }
        stook_rcu_submit(sheaf, nolock);
        stook_transit_leave(ticket);
        return true;
}

/* Where the sheaf of @cache does not take it. */
static STOOK_NOINLINE int put_elsewhere(struct stook_cache *cache, void *object, bool nolock, bool mixed)
{
        int ticket;

        stook_count(&cache->counters, STOOK_STAT_free_rcu_sheaf_fail, 1);
        if (mixed && put(NULL, object, nolock))
                return 0;
        if (!(cache->flags & STOOK_RCU))
                return -EAGAIN;
        ticket = stook_transit_enter();
        stook_rcu_chain_put(cache, object, nolock || ticket < 0);
        if (ticket >= 0)
                stook_transit_leave(ticket);
        return 0;
}

/* Lies @object on another node than this thread? Its sheaf goes to this node's barn. */
static bool is_remote(const void *object)
{
        return STOOK_UNLIKELY(stook_slots_by_node) &&
               stook_entry_span(stook_pagemap_get((uintptr_t)object))->node != stook_slot_node();
}

static int free_rcu(struct stook_cache *cache, void *object, bool nolock)
{
        bool mixed;

        if (STOOK_UNLIKELY(!__atomic_load_n(&cache->rcu_used, __ATOMIC_RELAXED))) {
                if (!stook_rcu_of(cache))
                        return -ENOTSUP;
                __atomic_store_n(&cache->rcu_used, 1, __ATOMIC_RELAXED);
        }
        if (!nolock)
                stook_fork_check();
        /* Who has an implementation of his own cannot share; sheaves of one place have none that is not the last. */
        mixed = stook_rcu_capacity(cache) < 2 || (is_remote(object) && !cache->rcu);
        if (STOOK_LIKELY(!mixed) && put(cache, object, nolock))
                return 0;
        return put_elsewhere(cache, object, nolock, mixed && !cache->rcu);
}

/* Is it an object of @cache? As in stook_cache_free. */
static bool belongs(struct stook_cache *cache, const void *object, uint64_t entry)
{
        uint32_t offset = stook_entry_offset(entry, (uintptr_t)object);

        return stook_entry_cache(entry) == cache->index && offset * cache->magic < cache->magic &&
               offset <= cache->last_offset;
}

static STOOK_NOINLINE int misuse(struct stook_cache *cache, void *object)
{
        if (!object)
                return 0;
        stook_cache_free_misuse(cache, object);
        return -EINVAL;
}

static int free_of_cache(struct stook_cache *cache, void *object, bool nolock)
{
        if (STOOK_UNLIKELY(!cache))
                return -EINVAL;
        if (STOOK_UNLIKELY(!belongs(cache, object, stook_pagemap_get((uintptr_t)object))))
                return misuse(cache, object);
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

static int free_of_any(void *object, bool nolock)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        unsigned index = stook_entry_cache(entry);
        struct stook_span *span;

        if (STOOK_LIKELY(index != 0))
                return free_of_cache(stook_cache_at(index), object, nolock);
        span = entry ? stook_span_large_at((uintptr_t)object) : NULL;
        if (!span)
                return misuse(NULL, object);
        if (!stook_rcu_of(NULL))
                return -ENOTSUP;
        if (!nolock)
                stook_fork_check();
        return (span->bytes < ALONE_BYTES ? put(NULL, object, nolock) : put_alone(object, nolock)) ? 0 : -EAGAIN;
}

STOOK_API int stook_free_rcu(void *object)
{
        return free_of_any(object, false);
}

STOOK_API int stook_free_rcu_nolock(void *object)
{
        return free_of_any(object, true);
}
