/*
 * Purpose: a free that waits for readers. The object goes into the rcu sheaf of the current slot,
 * in one critical section. The free that fills the sheaf takes it off the slot and submits it.
 *
 * Objects that find no sheaf wait on a chain of their cache, linked by the hidden word that
 * STOOK_CACHE_RCU gives them. One batch of the chain at a time waits for a grace period. What comes
 * later is the next batch.
 *
 * Place: called by cache, which has proved what the object is; calls slot, barn for sheaves, and
 * slab. The chain is called by rcu_barrier.c, too.
 * Invariants:
 *  I1 a thread that takes a batch off the chain is in transit from before until it has asked for a
 *     callback.
 * Concurrency: M1: fence between the push to `waiting` and the try of the turn, and between the end
 *  of the turn and the look at `waiting`: one of the two threads sees the other.
 *  M2: a chain is made with the first cache of an index that has hidden words, and stays; its
 *  release pairs with the acquire of a barrier, which may look at an index that is being made.
 * Failure: -EAGAIN, and the object stays the caller's. Never for objects with a hidden word.
 */
#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "pages/meta.h"
#include "rcu/rcu_inside.h"
#include "slab/slab.h"
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
/* Objects on their way from a chain to their slabs; 256 bytes of stack. */
#define CHAIN_BATCH 32

/* ---- chains ---- */

bool stook_rcu_chain_new(struct stook_rcu_cache *cache)
{
        struct stook_rcu_chain *chain = cache->chain;

        if (chain)
                return true;
        chain = stook_meta_bump(sizeof(*chain), 0);
        if (!chain)
                return false;
        chain->cache = cache;
        __atomic_store_n(&cache->chain, chain, __ATOMIC_RELEASE);       /* M2 */
        return true;
}

static struct stook_rcu_chain *chain_of(struct stook_rcu_cache *cache)
{
        return __atomic_load_n(&cache->chain, __ATOMIC_ACQUIRE);        /* M2 */
}

static struct stook_link *hidden_word(const struct stook_rcu_cache *cache, void *object)
{
        return (struct stook_link *)((char *)object + cache->hidden_offset);
}

/*
 * A batch goes into its slabs, CHAIN_BATCH objects at a time. Before those are freed, the objects
 * behind them are noted at @left. So a child of a fork that does not have this thread finds the
 * rest.
 */
static void free_batch(struct stook_rcu_cache *cache, struct stook_link *at,
                       struct stook_link **left)
{
        while (at) {
                void  *objects[CHAIN_BATCH];
                size_t n = 0;

                for (; at && n < CHAIN_BATCH; at = at->next)
                        objects[n++] = (char *)at - cache->hidden_offset;
                __atomic_store_n(left, at, __ATOMIC_RELAXED);
                stook_rcu_unbook(n * cache->front->barns->slabs->stride);
                if (STOOK_UNLIKELY(cache->watched)) {
                        stook_rcu_duties.free_mixed(n, objects);
                        continue;
                }
                if (cache->accounted)
                        stook_rcu_duties.uncharge(cache, n, objects);
                stook_count(cache->front->barns->slabs->counters, STOOK_STAT_free_slowpath, n);
                stook_slab_drain(cache->front->barns->slabs, n, objects);
        }
}

static struct stook_rcu_cache *cache_of(struct stook_rcu_turn *turn)
{
        return stook_container_of(turn, struct stook_rcu_chain, turn)->cache;
}

static void batch_done(struct stook_rcu_head *head)
{
        struct stook_rcu_asked *asked = stook_container_of(head, struct stook_rcu_asked, head);
        struct stook_rcu_cache *cache = cache_of(asked->turn);
        uint64_t ticket = stook_transit_begin();
        unsigned place = stook_rcu_callback_begin(__builtin_frame_address(0));
        struct stook_link *lost;

        if (stook_rcu_turn_begin(asked, ticket)) {
                free_batch(cache, asked->batch, &asked->batch);
                if (stook_rcu_turn_end(asked, ticket))
                        stook_rcu_chain_kick(cache, ticket);
        } else {
                /*
                 * The turn was lost. This call or put_again has the batch, whichever comes first.
                 */
                lost = __atomic_exchange_n(&asked->batch, NULL, __ATOMIC_ACQ_REL);
                free_batch(cache, lost, &lost);
        }
        stook_rcu_callback_end(place);
        stook_transit_end(ticket);
}

/*
 * The batch of a thread that this child of a fork does not have goes back on the chain, unless the
 * thread had not taken it off yet.
 */
static void put_again(struct stook_rcu_chain *chain, struct stook_rcu_asked *gone)
{
        struct stook_link *first = __atomic_exchange_n(&gone->batch, NULL, __ATOMIC_ACQ_REL);
        struct stook_link *at, *last = first;

        for (at = __atomic_load_n(&chain->waiting.first, __ATOMIC_ACQUIRE); at; at = at->next)
                if (at == first)
                        return;
        while (last && last->next)
                last = last->next;
        if (first)
                stook_pending_stack_push_chain(&chain->waiting, first, last);
}

void stook_rcu_chain_kick(struct stook_rcu_cache *cache, uint64_t ticket)
{
        struct stook_rcu_chain *chain = chain_of(cache);

        for (;;) {
                struct stook_rcu_asked *asked, *gone;

                __atomic_thread_fence(__ATOMIC_SEQ_CST);        /* M1 */
                if (!stook_rcu_chain_holds(cache) || stook_self_is_inside(STOOK_INSIDE_RCU_CALL))
                        return;
                asked = stook_rcu_turn_take(&chain->turn, ticket, &gone);
                if (!asked)
                        return;
                if (gone)
                        put_again(chain, gone);
                if (stook_pending_stack_move_all(&chain->waiting, &asked->batch)) {
                        stook_rcu_turn_ask(asked, ticket, stook_rcu_pin(cache), batch_done);
                        return;
                }
                stook_rcu_turn_end(asked, ticket);
        }
}

bool stook_rcu_chain_holds(struct stook_rcu_cache *cache)
{
        struct stook_rcu_chain *chain = chain_of(cache);

        return chain && (!stook_pending_stack_empty_racy(&chain->waiting) ||
                         !stook_rcu_turn_is_free(&chain->turn));
}

/* @object, which has a hidden word, goes on its cache's chain. */
static void put_on_chain(struct stook_rcu_cache *cache, void *object, bool nolock)
{
        uint64_t ticket = stook_transit_begin();

        stook_rcu_book(cache->front->barns->slabs->stride);
        stook_pending_stack_push(&chain_of(cache)->waiting, hidden_word(cache, object));
        if (!nolock)
                stook_rcu_chain_kick(cache, ticket);
        stook_transit_end(ticket);
}

/* ---- sheaves ---- */

static struct stook_sheaf *new_sheaf(struct stook_rcu_cache *or_null)
{
        struct stook_barns *barns = or_null ? or_null->front->barns : NULL;
        unsigned node = stook_slot_node();
        struct stook_sheaf *sheaf;

        if (!barns)
                return stook_sheaf_new_mixed(stook_sheaf_round_capacity(MIXED_CAPACITY));
        sheaf = stook_barn_get_empty(barns, node, STOOK_FROM_ANY);
        if (sheaf)
                stook_sheaf_begin_rcu(sheaf, barns->slabs->counters);
        return sheaf;
}

static void drop(struct stook_rcu_cache *or_null, struct stook_sheaf *sheaf)
{
        if (or_null) {
                stook_sheaf_end_rcu(sheaf, or_null->front->barns->slabs->counters);
                stook_barn_put(or_null->front->barns, stook_sheaf_node(sheaf), sheaf);
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
        if (!stook_rcu_open(offset_of(or_null), sheaf))
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

/* The sheaf is full, or has all of @n. Returns how many it has. It is submitted. */
static unsigned submit_filled(struct stook_sheaf *sheaf, size_t n, void *const *objects,
                              bool nolock)
{
        unsigned capacity = stook_sheaf_capacity(sheaf);
        unsigned filled = n < capacity ? (unsigned)n : capacity;
        uint64_t ticket = stook_transit_begin();

        memcpy(sheaf->objects, objects, filled * sizeof(*objects));
        __atomic_store_n(&sheaf->word, sheaf->word + filled, __ATOMIC_RELAXED);
        stook_rcu_submit_or_defer(sheaf, nolock);
        stook_transit_end(ticket);
        return filled;
}

/* In a sheaf of its own. False: there is no sheaf, or too much waits already. */
static bool put_alone(struct stook_rcu_cache *or_null, void *object, bool nolock)
{
        struct stook_sheaf *sheaf;

        if (!stook_rcu_has_room(or_null, nolock))
                return false;
        sheaf = or_null ? new_sheaf(or_null) : stook_sheaf_new_mixed(ALONE_CAPACITY);
        if (!sheaf)
                return false;
        submit_filled(sheaf, 1, &object, nolock);
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
        stook_count(cache->front->barns->slabs->counters, STOOK_STAT_free_rcu_sheaf_fail, 1);
        if (!uses_rcu_sheaf(cache) && !cache->own && put(NULL, object, nolock))
                return 0;
        if (!cache->hidden_offset)
                return -EAGAIN;
        put_on_chain(cache, object, nolock);
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

size_t stook_rcu_free_sheaves(struct stook_rcu_cache *cache, size_t n, void *const *objects)
{
        size_t done = 0;

        if (!stook_rcu_cache_is_used(cache) && !stook_rcu_cache_use(cache))
                return 0;
        stook_rcu_check();
        while (uses_rcu_sheaf(cache) && n - done >= stook_rcu_capacity(cache) &&
               stook_rcu_has_room(cache, false)) {
                struct stook_sheaf *sheaf = new_sheaf(cache);

                if (!sheaf)
                        break;
                done += submit_filled(sheaf, n - done, objects + done, false);
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
