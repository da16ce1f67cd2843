/*
 * Purpose: from a sheaf of objects that readers may still see to a sheaf of free objects: the implementation of RCU
 * in use, submission, and what happens after the grace period.
 *
 * A sheaf's header has the two words that the implementation wants (stook_rcu_head): `link` and `moved_node`, which
 * nobody needs while it waits. Afterwards a full sheaf goes to its barn as it is, to be allocated from; another one
 * is flushed. Objects that found no sheaf wait in a chain of their cache, through the hidden word that STOOK_RCU gives
 * them; one batch of it at a time waits for a grace period.
 *
 * Place: called by cache_rcu.c and cache_rcu_barrier.c, in transit; calls barn, slab, and the implementation.
 * Invariants:
 *  I1 the implementation is never called by a nolock call, nor by a handler on top of a call of it.
 *  I2 a sheaf counts as rcu (its objects as freed by free_rcu) from before its first object until after the grace
 *     period: barn/sheaf.h.
 *  I3 whoever takes the submit stack or a chain is in transit from before until it was submitted.
 * Concurrency: M1: fence between raising the transit count and taking the submit stack; pairs with the fence of a
 *  barrier between its own take and its look at the counts. M2: the chain's `busy` and `waiting`: fence between the
 *  push and the try of `busy`, and between the store of 0 and the look at `waiting`: one of the two sees the other.
 */
#include <errno.h>

#include "base/thread.h"
#include "cache/cache_account.h"
#include "cache/cache_rcu.h"
#include "life/life.h"

static uintptr_t chosen;                /* atomic: const struct stook_rcu * | IN_USE */
#define IN_USE ((uintptr_t)1)

static struct stook_pending_stack waiting;      /* sheaves that nolock calls filled */

/* ---- which one ---- */

bool stook_rcu_is_usable(const struct stook_rcu *rcu)
{
        return rcu && rcu->ops_size == sizeof(*rcu) && rcu->call && rcu->barrier;
}

STOOK_API int stook_rcu_use(const struct stook_rcu *rcu)
{
        uintptr_t old = __atomic_load_n(&chosen, __ATOMIC_RELAXED);

        if (!stook_rcu_is_usable(rcu))
                return -EINVAL;
        stook_rcu_find_default_limit();
        do {
                if ((old & ~IN_USE) == (uintptr_t)rcu)
                        return 0;
                if (old & IN_USE)
                        return -EBUSY;
        } while (!__atomic_compare_exchange_n(&chosen, &old, (uintptr_t)rcu, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
        return 0;
}

const struct stook_rcu *stook_rcu_look(struct stook_cache *or_null)
{
        if (or_null && or_null->rcu)
                return or_null->rcu;
        return (const struct stook_rcu *)(__atomic_load_n(&chosen, __ATOMIC_ACQUIRE) & ~IN_USE);
}

const struct stook_rcu *stook_rcu_of(struct stook_cache *or_null)
{
        uintptr_t now;

        if (or_null && or_null->rcu)
                return or_null->rcu;
        now = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
        while (now && !(now & IN_USE))
                if (__atomic_compare_exchange_n(&chosen, &now, now | IN_USE, true, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
                        break;
        return (const struct stook_rcu *)(now & ~IN_USE);
}

const struct stook_rcu *stook_rcu_in_use(void)
{
        uintptr_t now = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);

        return now & IN_USE ? (const struct stook_rcu *)(now & ~IN_USE) : NULL;
}

bool stook_rcu_is_inside(void)
{
        return stook_self->barred & STOOK_SELF_RCU_CALL;
}

bool stook_rcu_may_wait(const struct stook_rcu *rcu, int least)
{
        if (stook_self->barred & (STOOK_SELF_RCU_CALL | STOOK_SELF_RCU_CALLBACK))
                return false;
        return (rcu->may_wait ? rcu->may_wait() : 1) >= least;
}

void stook_rcu_call(const struct stook_rcu *rcu, struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *))
{
        int kept = errno;

        stook_self->barred |= STOOK_SELF_RCU_CALL;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        rcu->call(head, done);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stook_self->barred &= (uint8_t)~STOOK_SELF_RCU_CALL;
        errno = kept;
}

/* ---- sheaves ---- */

#define HEAD_OFFSET offsetof(struct stook_sheaf, link)
_Static_assert(offsetof(struct stook_sheaf, objects) - HEAD_OFFSET == sizeof(struct stook_rcu_head), "link and moved_node");

static struct stook_rcu_head *head_of(struct stook_sheaf *sheaf)
{
        return (struct stook_rcu_head *)((char *)sheaf + HEAD_OFFSET);
}

/* Objects of many caches, large ones too: each finds its own way. */
static void free_mixed(struct stook_sheaf *sheaf)
{
        unsigned size = stook_sheaf_size(sheaf);

        stook_cache_free_bulk(NULL, size, sheaf->objects);
        stook_sheaf_end_mixed(sheaf);
}

static void recycle(struct stook_sheaf *sheaf)
{
        struct stook_cache *cache = stook_cache_at(sheaf->cache_index);

        if (stook_cache_is_accounted(cache))
                stook_account_uncharge(cache, stook_sheaf_size(sheaf), sheaf->objects);
        stook_sheaf_end_rcu(sheaf, &cache->counters);
        stook_barn_dispose(&cache->barns, stook_sheaf_node(sheaf), sheaf);
}

static void done(struct stook_rcu_head *head)
{
        struct stook_sheaf *sheaf = (struct stook_sheaf *)((char *)head - HEAD_OFFSET);

        stook_self->barred |= STOOK_SELF_RCU_CALLBACK;
        stook_fork_check();
        stook_rcu_unbook(stook_rcu_bytes_of(sheaf));
        if (sheaf->cache_index)
                recycle(sheaf);
        else
                free_mixed(sheaf);
        stook_self->barred &= (uint8_t)~STOOK_SELF_RCU_CALLBACK;
}

static void submit_now(struct stook_sheaf *sheaf)
{
        struct stook_cache *cache = sheaf->cache_index ? stook_cache_at(sheaf->cache_index) : NULL;

        stook_rcu_call(stook_rcu_of(cache), head_of(sheaf), done);
}

void stook_rcu_submit(struct stook_sheaf *sheaf, bool nolock)
{
        stook_rcu_book(stook_rcu_bytes_of(sheaf));
        if (nolock || stook_rcu_is_inside())
                stook_pending_stack_push(&waiting, &sheaf->link);
        else
                submit_now(sheaf);
}

void stook_rcu_submit_drained(struct stook_sheaf *sheaf)
{
        if (stook_sheaf_size(sheaf)) {
                stook_rcu_submit(sheaf, false);
        } else if (sheaf->cache_index) {
                recycle(sheaf);
        } else {
                free_mixed(sheaf);
        }
}

void stook_rcu_submit_waiting(void)
{
        struct stook_link *at;

        if (stook_rcu_is_inside())
                return;
        stook_rcu_submit_spans();
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M1 */
        at = stook_pending_stack_take_all(&waiting);
        while (at) {
                struct stook_sheaf *sheaf = stook_container_of(at, struct stook_sheaf, link);

                at = at->next;
                submit_now(sheaf);
        }
}

/* ---- chains ---- */

/* Objects on their way from a chain to their slabs; 256 bytes of stack. */
#define CHAIN_BATCH 32

static struct stook_link *hidden_word(const struct stook_cache *cache, void *object)
{
        return (struct stook_link *)((char *)object + cache->slabs.link_offset);
}

static void chain_done(struct stook_rcu_head *head)
{
        struct stook_rcu_chain *chain = stook_container_of(head, struct stook_rcu_chain, head);
        struct stook_cache *cache = stook_container_of(chain, struct stook_cache, rcu_chain);
        struct stook_link *at = chain->batch;
        size_t freed = 0;

        stook_self->barred |= STOOK_SELF_RCU_CALLBACK;
        stook_fork_check();
        while (at) {
                void  *objects[CHAIN_BATCH];
                size_t n = 0;

                for (; at && n < CHAIN_BATCH; at = at->next)
                        objects[n++] = (char *)at - cache->slabs.link_offset;
                if (stook_cache_is_accounted(cache))
                        stook_account_uncharge(cache, n, objects);
                stook_count(&cache->counters, STOOK_STAT_free_slowpath, n);
                stook_slab_drain(&cache->slabs, n, objects);
                freed += n;
        }
        stook_rcu_unbook(freed * cache->slabs.slot_size);
        __atomic_store_n(&chain->busy, 0, __ATOMIC_RELEASE);
        stook_rcu_chain_kick(cache);
        stook_self->barred &= (uint8_t)~STOOK_SELF_RCU_CALLBACK;
}

void stook_rcu_chain_kick(struct stook_cache *cache)
{
        struct stook_rcu_chain *chain = &cache->rcu_chain;

        for (;;) {
                __atomic_thread_fence(__ATOMIC_SEQ_CST);        /* M2 */
                if (stook_pending_stack_empty_racy(&chain->waiting) || stook_rcu_is_inside() ||
                    __atomic_exchange_n(&chain->busy, 1, __ATOMIC_ACQUIRE))
                        return;
                chain->batch = stook_pending_stack_take_all(&chain->waiting);
                if (chain->batch) {
                        stook_rcu_call(stook_rcu_of(cache), &chain->head, chain_done);
                        return;
                }
                __atomic_store_n(&chain->busy, 0, __ATOMIC_RELEASE);
        }
}

void stook_rcu_chain_put(struct stook_cache *cache, void *object, bool nolock)
{
        stook_rcu_book(cache->slabs.slot_size);
        stook_pending_stack_push(&cache->rcu_chain.waiting, hidden_word(cache, object));
        if (!nolock)
                stook_rcu_chain_kick(cache);
}
