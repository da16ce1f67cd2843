/*
 * Purpose: slabs with free objects: a list, its lock, and the way without the lock.
 * Place: called by the other files of this folder, and by special; calls slab_birth.c for releases.
 *
 * Pending: a claim whose owner cannot have the lock is entered into the slab's word `pending`. The
 * thread that enters the first one pushes the slab on its list's pending stack. The holder of the
 * lock takes the whole stack, and from each slab, by one exchange, all claims entered so far.
 *
 * Invariants:
 *  P1 A slab is on the pending stack once, from after its word became nonzero until the word is
 *     taken. A part whose claim is entered there has CLAIM set; the thread that takes the word owns
 *     the claim. A thread that took the stack may push slabs of it again whose words it did not
 *     take: until then no other thread pushes them, for their words are not zero.
 *  P2 A thread that drops the lock looks at pending after that. A thread that pushes on pending
 *     tries the lock after that. One of the two sees the other, so nothing stays there while no
 *     thread is about to look.
 *  P3 No lock is held over a call into pages.
 *  P4 A thread that owns a claim, or has a released slab in its hands, holds the lock or has
 *     forbidden waits (base/lock.h). So in a child of fork that is repaired, every claim belongs to
 *     a thread that is gone.
 * Concurrency: M1: acquire-release of the bits entered into a slab's word `pending`, and of the
 *  exchange that takes them (P1). M2: drop of the lock, fence, look at pending / push on pending,
 *  fence, try of the lock (P2).
 */
#include "base/thread.h"
#include "os/os.h"
#include "slab/slab_inside.h"

/* Tries for a node's lock, with a pause after each: then its holder is stopped or dead. */
#define TRIES    100
#define PAUSE_NS 1000000

/* ---- the lock ---- */

bool stook_slab_hold(struct stook_slab_hold *hold, struct stook_slabs *slabs,
                     struct stook_slabs_node *node, bool try)
{
        hold->slabs = slabs;
        hold->node = node;
        hold->dead = NULL;
        hold->added = hold->removed = 0;
        if (STOOK_LIKELY(try ? stook_lock_try(&node->lock) : stook_lock_take(&node->lock)))
                return true;
        if (STOOK_LIKELY(!stook_lock_inherit(&node->lock)))
                return false;
        stook_slab_relist(hold);
        return true;
}

bool stook_slab_hold_long(struct stook_slab_hold *hold, struct stook_slabs *slabs,
                          struct stook_slabs_node *node)
{
        for (int tries = 1; !stook_slab_hold(hold, slabs, node, false); tries++) {
                if (tries == TRIES || stook_lock_may_not_wait())
                        return false;
                /* The first wait in vain marks the lock as stuck. So the next ones only try. */
                stook_os_pause(PAUSE_NS);
        }
        stook_slab_settle_pending(hold);
        return true;
}

static void count_moves(const struct stook_slab_hold *hold)
{
        if (hold->added)
                stook_count(hold->slabs->counters, STOOK_STAT_free_add_partial, hold->added);
        if (hold->removed)
                stook_count(hold->slabs->counters, STOOK_STAT_free_remove_partial, hold->removed);
}

void stook_slab_unhold(struct stook_slab_hold *hold)
{
        stook_lock_forbid_waits();                              /* P4 */
        for (;;) {
                stook_lock_drop(&hold->node->lock);
                stook_lock_fence_after_drop();                  /* M2 */
                if (STOOK_LIKELY(stook_pending_stack_empty_racy(&hold->node->pending)) ||
                    !stook_lock_try(&hold->node->lock))
                        break;
                stook_slab_settle_pending(hold);
        }
        count_moves(hold);
        stook_slab_release(hold->dead);
        stook_lock_allow_waits();
}

/* ---- the list ---- */

/* Atomic, because drains and fills read it without the lock. */
static void count_partial(struct stook_slab_hold *hold, int by)
{
        __atomic_store_n(&hold->node->partial, hold->node->partial + (uint32_t)by,
                         __ATOMIC_RELAXED);
}

void stook_slab_add(struct stook_slab_hold *hold, struct stook_slab *slab, uint64_t parts,
                    bool head)
{
        struct stook_list *e = &stook_slab_span(slab)->list;

        if (!slab->listed) {
                if (head)
                        stook_list_add_head(&hold->node->list, e);
                else
                        stook_list_add_tail(&hold->node->list, e);
                count_partial(hold, 1);
        }
        __atomic_store_n(&slab->listed, slab->listed | parts, __ATOMIC_RELAXED);
}

void stook_slab_remove(struct stook_slab_hold *hold, struct stook_slab *slab, uint64_t parts)
{
        __atomic_store_n(&slab->listed, slab->listed & ~parts, __ATOMIC_RELAXED);
        if (!slab->listed) {
                stook_list_remove(&stook_slab_span(slab)->list);
                count_partial(hold, -1);
        }
}

void stook_slab_bury(struct stook_slab_hold *hold, struct stook_slab *slab)
{
        struct stook_link *link = &stook_slab_span(slab)->link;

        if (slab->listed)
                stook_slab_remove(hold, slab, ~UINT64_C(0));
        __atomic_fetch_add(&hold->node->going, 1, __ATOMIC_RELAXED);            /* H1 */
        stook_link_set_next(link, hold->dead);
        hold->dead = link;
}

/* ---- claims ---- */

/*
 * The list is longer than an empty slab is kept in. @listed: the slab is on it already. As many as
 * are reserved stay: only listed slabs are released, and only by the holder of the lock.
 */
static bool is_long(const struct stook_slabs *slabs, unsigned node, bool listed)
{
        return stook_slabs_partial(slabs, node) + !listed > stook_slabs_listed_kept(slabs);
}

/* A wrong free may read another user's bytes here. */
bool stook_slabs_surplus(const struct stook_slabs *slabs, const struct stook_slab *slab)
{
        unsigned node = __atomic_load_n(&slab->node, __ATOMIC_RELAXED);

        return STOOK_LIKELY(node < stook_os_node_count()) && is_long(slabs, node, true);
}

void stook_slab_settle_one(struct stook_slab_hold *hold, struct stook_slab *slab, unsigned p)
{
        switch (stook_part_settle(slab, p, is_long(hold->slabs, slab->node, slab->listed))) {
        case STOOK_SETTLED:
                break;
        case STOOK_SETTLED_LIST:
                hold->added += !slab->listed;
                stook_slab_add(hold, slab, UINT64_C(1) << p, false);
                break;
        case STOOK_SETTLED_RELEASE:
                hold->removed += slab->listed != 0;
                stook_slab_bury(hold, slab);
                break;
        }
}

static void settle(struct stook_slab_hold *hold, struct stook_slab *slab, uint64_t claims)
{
        for (; claims; claims &= claims - 1)
                stook_slab_settle_one(hold, slab, (unsigned)__builtin_ctzll(claims));
}

void stook_slab_settle_pending(struct stook_slab_hold *hold)
{
        struct stook_link *link = stook_pending_stack_take_all(&hold->node->pending);

        while (link) {
                struct stook_slab *slab = stook_slab_pending_at(link);
                struct stook_link *next = link->next;

                /* The link was read first: then another thread may push the slab again. */
                settle(hold, slab, __atomic_exchange_n(&slab->pending, 0, __ATOMIC_ACQ_REL));
                link = next;
        }
}

/* ---- without the lock ---- */

/* Slabs that are to be pushed on pending together. */
struct chain {
        struct stook_link *first, *last;
};

static void enter(struct chain *chain, struct stook_slab *slab, uint64_t parts)
{
        struct stook_link *link = &stook_slab_span(slab)->link;

        if (__atomic_fetch_or(&slab->pending, parts, __ATOMIC_ACQ_REL))
                return;                         /* another thread pushes the slab (P1) */
        stook_link_set_next(link, chain->first);
        chain->first = link;
        if (!chain->last)
                chain->last = link;
}

/* @hold: room on the caller's stack, which does not hold. */
static void push(struct stook_slab_hold *hold, struct stook_slabs *slabs,
                 struct stook_slabs_node *node, const struct chain *chain)
{
        if (chain->first)
                stook_pending_stack_push_chain(&node->pending, chain->first, chain->last);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M2 */
        if (stook_slab_hold(hold, slabs, node, true)) {
                stook_slab_settle_pending(hold);
                stook_slab_unhold(hold);
        }
}

/* An empty slab leaves the middle of the list, and its neighbours are seldom in the CPU's cache. */
static void fetch_neighbours(const stook_part_key *keys, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct stook_span *span = stook_slab_span(stook_key_slab(keys[i]));

                __builtin_prefetch(span->list.next, 1);
                __builtin_prefetch(span->list.prev, 1);
        }
}

void stook_slab_settle_keys(struct stook_slabs *slabs, struct stook_slabs_node *node,
                            const stook_part_key *keys, size_t n)
{
        struct chain chain = { NULL, NULL };
        struct stook_slab_hold hold;

        if (stook_slab_hold(&hold, slabs, node, false)) {
                fetch_neighbours(keys, n);
                for (size_t i = 0; i < n; i++)
                        stook_slab_settle_one(&hold, stook_key_slab(keys[i]),
                                              stook_key_part(keys[i]));
                stook_slab_unhold(&hold);
                return;
        }
        for (size_t i = 0; i < n; i++)
                enter(&chain, stook_key_slab(keys[i]), UINT64_C(1) << stook_key_part(keys[i]));
        push(&hold, slabs, node, &chain);
}

void stook_slab_settle_parts(struct stook_slabs *slabs, struct stook_slab *slab, uint64_t parts,
                             bool pend)
{
        struct stook_slabs_node *node = stook_slab_node(slab);
        struct chain chain = { NULL, NULL };
        struct stook_slab_hold hold;

        if (!pend && stook_slab_hold(&hold, slabs, node, false)) {
                settle(&hold, slab, parts);
                stook_slab_unhold(&hold);
                return;
        }
        enter(&chain, slab, parts);
        push(&hold, slabs, node, &chain);
}

void stook_slab_pend_again(struct stook_slabs *slabs, struct stook_slabs_node *node,
                           struct stook_link *link)
{
        struct chain none = { NULL, NULL };
        struct stook_slab_hold hold;

        if (!link)
                return;
        stook_pending_stack_put_back(&node->pending, link);
        push(&hold, slabs, node, &none);
}
