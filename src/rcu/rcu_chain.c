/*
 * Purpose: objects that find no sheaf. They wait on a chain of their cache, linked by the hidden
 * word that STOOK_RCU gives them. One batch of the chain at a time waits for a grace period. What
 * comes later is the next batch.
 * Place: called by rcu_free.c and rcu_barrier.c, in transit; calls slab.
 * Invariants:
 *  I1 a thread that takes a batch off the chain is in transit from before until it has asked for a
 *     callback.
 * Concurrency: M1: fence between the push to `waiting` and the try of the turn, and between the end
 *  of the turn and the look at `waiting`: one of the two threads sees the other.
 *  M2: a chain is made with the first cache of an index that has hidden words, and stays; its
 *  release pairs with the acquire of a barrier, which may look at an index that is being made.
 */
#include "pages/meta.h"
#include "rcu/rcu_submit.h"
#include "rcu/rcu_transit.h"
#include "slab/slab.h"

/* Objects on their way from a chain to their slabs; 256 bytes of stack. */
#define CHAIN_BATCH 32

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
                stook_rcu_unbook(n * cache->front->below->below->stride);
                if (STOOK_UNLIKELY(cache->watched)) {
                        stook_rcu_duties.free_mixed(n, objects);
                        continue;
                }
                if (cache->accounted)
                        stook_rcu_duties.uncharge(cache, n, objects);
                stook_count(cache->front->below->below->counters, STOOK_STAT_free_slowpath, n);
                stook_slab_drain(cache->front->below->below, n, objects);
        }
}

static struct stook_rcu_cache *cache_of(struct stook_rcu_turn *turn)
{
        return stook_container_of(turn, struct stook_rcu_chain, turn)->cache;
}

static void done(struct stook_rcu_head *head)
{
        struct stook_rcu_asked *asked = stook_rcu_turn_asked(head);
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
                if (!stook_rcu_chain_holds(cache) || stook_rcu_is_in_call())
                        return;
                asked = stook_rcu_turn_take(&chain->turn, ticket, &gone);
                if (!asked)
                        return;
                if (gone)
                        put_again(chain, gone);
                if (stook_pending_stack_move_all(&chain->waiting, &asked->batch)) {
                        stook_rcu_turn_ask(asked, ticket, stook_rcu_pin(cache), done);
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

void stook_rcu_chain_put(struct stook_rcu_cache *cache, void *object, bool nolock, uint64_t ticket)
{
        stook_rcu_book(cache->front->below->below->stride);
        stook_pending_stack_push(&chain_of(cache)->waiting, hidden_word(cache, object));
        if (!nolock)
                stook_rcu_chain_kick(cache, ticket);
}
