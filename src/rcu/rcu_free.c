/*
 * Purpose: a free that waits for readers. The object goes into the rcu sheaf of the current slot,
 * in one critical section. The free that fills the sheaf takes it off the slot and submits it.
 * Place: called by cache, which has proved what the object is; calls slot, and barn for sheaves.
 * Failure: -EAGAIN, and the object stays the caller's. Never for objects with a hidden word.
 */
#include <errno.h>
#include <string.h>

#include "barn/barn.h"
#include "base/lock.h"
#include "rcu/rcu_open.h"
#include "rcu/rcu_submit.h"
#include "rcu/rcu_transit.h"
#include "slot/slot_hot.h"

/* Objects of a mixed sheaf. */
#define MIXED_CAPACITY 64
/*
 * An object of so many bytes shares no sheaf: it would wait until the sheaf is full, and what lies
 * in open sheaves is not in the backlog.
 */
#define ALONE_BYTES ((size_t)1 << 20)
#define ALONE_CAPACITY 4                /* of the smallest sheaf there is */
#define TRIES 16                        /* aborts, and races with other threads for the sheaf */

static struct stook_sheaf *new_sheaf(struct stook_rcu_cache *or_null)
{
        struct stook_barns *barns = or_null ? or_null->front->below : NULL;
        unsigned node = stook_slot_node();
        struct stook_sheaf *sheaf;

        if (!barns)
                return stook_sheaf_new_mixed(stook_sheaf_round_capacity(MIXED_CAPACITY));
        sheaf = stook_barn_get_empty(barns, node, STOOK_FROM_ANY);
        if (sheaf)
                stook_sheaf_begin_rcu(sheaf, barns->below->counters);
        return sheaf;
}

static void drop(struct stook_rcu_cache *or_null, struct stook_sheaf *sheaf)
{
        if (or_null) {
                stook_sheaf_end_rcu(sheaf, or_null->front->below->below->counters);
                stook_barn_put(or_null->front->below, stook_sheaf_node(sheaf), sheaf);
        } else {
                stook_sheaf_end_mixed(sheaf);
        }
}

static uint32_t offset_of(const struct stook_rcu_cache *or_null)
{
        return or_null ? or_null->offset : STOOK_RCU_MIXED_LINE << STOOK_LINE_SHIFT;
}

/*
 * False: the cache has no sheaves, or sheaves of one object. The first push into such a sheaf would
 * also fill it, so each object would be submitted by itself.
 */
static bool uses_rcu_sheaf(const struct stook_rcu_cache *or_null)
{
        return !or_null || stook_rcu_capacity(or_null) > 1;
}

/* A sheaf is open on this slot, or was a moment ago. False: there is none to be had. */
static bool open_sheaf(struct stook_rcu_cache *or_null, bool nolock)
{
        struct stook_sheaf *sheaf;

        if (!uses_rcu_sheaf(or_null))
                return false;
        if (stook_rcu_is_open(offset_of(or_null)))
                return true;
        sheaf = new_sheaf(or_null);
        if (!sheaf)
                return false;
        if (!stook_rcu_open(offset_of(or_null), sheaf, stook_rcu_tick()))
                drop(or_null, sheaf);
        else if (!nolock)
                stook_rcu_watch(or_null);
        return true;
}

/*
 * The object goes into the last place of the sheaf, and the sheaf is submitted. False: it did not.
 */
static bool fill(struct stook_rcu_cache *or_null, void *object, bool nolock)
{
        uint64_t ticket = stook_transit_begin();
        struct stook_sheaf *full;

        full = stook_slot_ops()->rcu_fill(offset_of(or_null), object);
        if (full)
                stook_rcu_submit_or_defer(full, nolock);
        if (!nolock)
                stook_rcu_submit_deferred_in_transit();
        stook_transit_end(ticket);
        return full;
}

/* In a sheaf of its own. False: there is no sheaf, or too much waits already. */
static bool put_alone(struct stook_rcu_cache *or_null, void *object, bool nolock)
{
        struct stook_sheaf *sheaf;
        uint64_t ticket;

        if (!stook_rcu_has_room(or_null, nolock))
                return false;
        sheaf = or_null ? new_sheaf(or_null) : stook_sheaf_new_mixed(ALONE_CAPACITY);
        if (!sheaf)
                return false;
        sheaf->objects[0] = object;
        __atomic_store_n(&sheaf->word, sheaf->word + 1, __ATOMIC_RELAXED);
        ticket = stook_transit_begin();
        stook_rcu_submit_or_defer(sheaf, nolock);
        stook_transit_end(ticket);
        return true;
}

/* False: there is no sheaf for it, or too much waits already. */
static bool put(struct stook_rcu_cache *or_null, void *object, bool nolock)
{
        for (unsigned tries = 0; tries < TRIES; tries++) {
                void *answer = stook_slot_ops()->rcu_push(offset_of(or_null), object);

                if (answer == object)
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
        /* Sections are aborted each time, or the holder of a locked slot does not come back. */
        return put_alone(or_null, object, nolock);
}

/*
 * Where the sheaf of the cache does not take it. A cache with its own implementation cannot use the
 * mixed sheaf, which is submitted to the process's.
 */
static int put_elsewhere(struct stook_rcu_cache *cache, void *object, bool nolock)
{
        uint64_t ticket;

        stook_count(cache->front->below->below->counters, STOOK_STAT_free_rcu_sheaf_fail, 1);
        if (!uses_rcu_sheaf(cache) && !cache->own && put(NULL, object, nolock))
                return 0;
        if (!cache->hidden_offset)
                return -EAGAIN;
        ticket = stook_transit_begin();
        stook_rcu_chain_put(cache, object, nolock, ticket);
        stook_transit_end(ticket);
        return 0;
}

static STOOK_NOINLINE int free_slow(struct stook_rcu_cache *cache, void *object, bool nolock)
{
        if (!stook_rcu_cache_is_used(cache) && !stook_rcu_cache_use(cache))
                return -ENOTSUP;
        if (!nolock)
                stook_rcu_check();
        return put(cache, object, nolock) ? 0 : put_elsewhere(cache, object, nolock);
}

STOOK_INLINE int free_here(struct stook_rcu_cache *cache, void *object, bool nolock)
{
        if (STOOK_LIKELY(stook_rcu_cache_is_used(cache)) &&
            STOOK_LIKELY(stook_slot_rcu_push(cache->offset, object)))
                return 0;
        return free_slow(cache, object, nolock);
}

/* With waits forbidden from the start: a thread's first call enrols it, which takes a lock. */
static STOOK_NOINLINE int free_nolock(struct stook_rcu_cache *cache, void *object)
{
        int answer;

        stook_lock_raise(0);
        answer = free_here(cache, object, true);
        stook_lock_lower();
        return answer;
}

int stook_rcu_free(struct stook_rcu_cache *cache, void *object, bool nolock)
{
        return STOOK_UNLIKELY(nolock) ? free_nolock(cache, object)
                                      : free_here(cache, object, false);
}

/* The sheaf is full, or has all of @n. Returns how many it has. */
static unsigned fill_sheaf(struct stook_sheaf *sheaf, size_t n, void *const *objects)
{
        unsigned capacity = stook_sheaf_capacity(sheaf);
        unsigned filled = n < capacity ? (unsigned)n : capacity;

        memcpy(sheaf->objects, objects, filled * sizeof(*objects));
        __atomic_store_n(&sheaf->word, sheaf->word + filled, __ATOMIC_RELAXED);
        return filled;
}

size_t stook_rcu_free_sheaves(struct stook_rcu_cache *cache, size_t n, void *const *objects)
{
        size_t done = 0;

        if (!stook_rcu_cache_is_used(cache) && !stook_rcu_cache_use(cache))
                return 0;
        stook_rcu_check();
        while (uses_rcu_sheaf(cache) && n - done >= stook_rcu_capacity(cache) &&
               stook_rcu_has_room(cache, false)) {
                struct stook_sheaf *sheaf = new_sheaf(cache);
                uint64_t ticket;

                if (!sheaf)
                        break;
                ticket = stook_transit_begin();
                done += fill_sheaf(sheaf, n - done, objects + done);
                stook_rcu_submit_or_defer(sheaf, false);
                stook_transit_end(ticket);
        }
        return done;
}

int stook_rcu_free_large(void *object, size_t bytes, bool nolock)
{
        bool done;

        if (!stook_rcu_pin(NULL))
                return -ENOTSUP;
        if (nolock)
                stook_lock_raise(0);
        else
                stook_rcu_check();
        done = bytes < ALONE_BYTES ? put(NULL, object, nolock) : put_alone(NULL, object, nolock);
        if (nolock)
                stook_lock_lower();
        return done ? 0 : -EAGAIN;
}
