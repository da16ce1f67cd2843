/*
 * Purpose: a node's slabs with free objects: the list, its lock, and the way without the lock.
 * Place: called by fill, drain and shrink; calls slab_birth for releases.
 *
 * Invariants:
 *  P1 a slab on pending has CLAIM set and is there once: who pushes it set the claim, who takes it has it.
 *  P2 whoever drops the lock looks at pending after that, whoever pushes on pending tries the lock after that:
 *     one of them sees the other, so nothing stays there while nobody is about to look.
 *  P3 no lock is held over a call into pages.
 *  P4 a thread that has a claim, or a releasing slab, in its hands holds the lock or has forbidden waits (base/lock.h).
 *     So in a child of fork that is repaired, every claim that is not taken back is a vanished thread's.
 * Concurrency: M2: drop of the lock, fence, look at pending / push on pending, fence, try of the lock (P2).
 */
#include "base/thread.h"
#include "slab/slab_partial.h"

/* ---- the lock ---- */

bool stook_slab_hold(struct stook_slab_hold *hold, struct stook_slabs *slabs, struct stook_slabs_node *node, bool try)
{
        hold->slabs = slabs;
        hold->node = node;
        hold->dead = NULL;
        return try ? stook_lock_try(&node->lock) : stook_lock_take(&node->lock);
}

static void release_dead(struct stook_link *dead)
{
        while (dead) {
                struct stook_span *span = stook_container_of(dead, struct stook_span, link);

                dead = dead->next;
                stook_slab_release(stook_slab_of(span));
        }
}

void stook_slab_unhold(struct stook_slab_hold *hold)
{
        stook_lock_forbid_waits();                              /* P4 */
        for (;;) {
                stook_lock_drop(&hold->node->lock);
                stook_lock_fence_after_drop();                  /* M2 */
                if (STOOK_LIKELY(stook_pending_stack_empty_racy(&hold->node->pending)))
                        break;
                if (!stook_lock_try(&hold->node->lock))
                        break;
                stook_slab_settle_pending(hold);
        }
        release_dead(hold->dead);
        stook_lock_allow_waits();
}

/* ---- the list ---- */

/* Read racily by pushers and fillers: hence atomic. */
static void count_partial(struct stook_slab_hold *hold, int by)
{
        __atomic_store_n(&hold->node->partial, hold->node->partial + (uint32_t)by, __ATOMIC_RELAXED);
}

void stook_slab_add(struct stook_slab_hold *hold, struct stook_slab *slab, bool head)
{
        struct stook_list *e = &stook_slab_span(slab)->list;

        if (head)
                stook_list_add_head(&hold->node->list, e);
        else
                stook_list_add_tail(&hold->node->list, e);
        count_partial(hold, 1);
}

void stook_slab_remove(struct stook_slab_hold *hold, struct stook_slab *slab)
{
        stook_list_remove(&stook_slab_span(slab)->list);
        count_partial(hold, -1);
}

static void gather_dead(struct stook_slab_hold *hold, struct stook_slab *slab)
{
        struct stook_link *link = &stook_slab_span(slab)->link;

        link->next = hold->dead;
        hold->dead = link;
}

void stook_slab_bury(struct stook_slab_hold *hold, struct stook_slab *slab)
{
        stook_slab_remove(hold, slab);
        gather_dead(hold, slab);
}

/* ---- claims ---- */

void stook_slab_settle_one(struct stook_slab_hold *hold, struct stook_slab *slab)
{
        struct stook_counters *counters = hold->slabs->counters;

        switch (stook_slab_settle(slab, hold->node->partial, stook_slabs_kept(hold->slabs))) {
        case STOOK_SETTLED:
                break;
        case STOOK_SETTLED_LIST:
                stook_slab_add(hold, slab, false);
                stook_count(counters, STOOK_STAT_free_add_partial, 1);
                break;
        case STOOK_SETTLED_UNLIST:
                stook_slab_bury(hold, slab);
                stook_count(counters, STOOK_STAT_free_remove_partial, 1);
                break;
        case STOOK_SETTLED_RELEASE:
                gather_dead(hold, slab);
                break;
        }
}

static void settle_chain(struct stook_slab_hold *hold, struct stook_link *first)
{
        while (first) {
                struct stook_span *span = stook_container_of(first, struct stook_span, link);

                first = first->next;    /* before the claim is taken back */
                stook_slab_settle_one(hold, stook_slab_of(span));
        }
}

void stook_slab_settle_pending(struct stook_slab_hold *hold)
{
        settle_chain(hold, stook_pending_stack_take_all(&hold->node->pending));
}

void stook_slab_pend(struct stook_slabs *slabs, struct stook_slabs_node *node, struct stook_link *first,
                     struct stook_link *last)
{
        struct stook_slab_hold hold;

        stook_pending_stack_push_chain(&node->pending, first, last);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M2 */
        if (stook_slab_hold(&hold, slabs, node, true)) {
                stook_slab_settle_pending(&hold);
                stook_slab_unhold(&hold);
        }
}

void stook_slab_settle_all(struct stook_slabs *slabs, struct stook_slabs_node *node, struct stook_link *first,
                           struct stook_link *last)
{
        struct stook_slab_hold hold;

        if (!stook_slab_hold(&hold, slabs, node, false)) {
                stook_slab_pend(slabs, node, first, last);
                return;
        }
        last->next = NULL;
        settle_chain(&hold, first);
        stook_slab_unhold(&hold);
}

/* ---- detached slabs ---- */

static void put_back_pending(struct stook_slabs *slabs, struct stook_slabs_node *node, struct stook_slab *const *batch,
                             size_t n)
{
        struct stook_link *first = NULL, *last = NULL;

        stook_lock_forbid_waits();                              /* P4 */
        for (size_t i = 0; i < n; i++) {
                struct stook_link *link = &stook_slab_span(batch[i])->link;

                if (!stook_slab_postpone(batch[i]))
                        continue;
                link->next = first;
                first = link;
                if (!last)
                        last = link;
        }
        if (first)
                stook_slab_pend(slabs, node, first, last);
        stook_lock_allow_waits();
}

void stook_slab_put_back(struct stook_slabs *slabs, struct stook_slabs_node *node, struct stook_slab *const *batch,
                         size_t n, bool head, bool try)
{
        struct stook_slab_hold hold;

        if (!stook_slab_hold(&hold, slabs, node, try)) {
                put_back_pending(slabs, node, batch, n);
                return;
        }
        for (size_t i = 0; i < n; i++)
                if (stook_slab_list(batch[i], node->partial >= stook_slabs_kept(slabs)))
                        stook_slab_add(&hold, batch[i], head);
                else
                        gather_dead(&hold, batch[i]);
        stook_slab_unhold(&hold);
}

/* Held: the one slab on the list gives objects where it stands. */
static void take_fresh(struct stook_slab_hold *hold, size_t want, struct stook_slab_fresh *fresh)
{
        struct stook_slab *slab = stook_slab_of(stook_container_of(hold->node->list.next, struct stook_span, list));
        bool left;

        fresh->slab = slab;
        fresh->count = stook_slab_take_listed(slab, want, &fresh->from, &left);
        if (fresh->count && !left)
                stook_slab_remove(hold, slab);
}

/*
 * Free objects never grow fewer in a listed slab, so what is read here is a lower bound. Only the slabs at the
 * head are compared: left-overs go to the tail, so the window moves through the list.
 */
int stook_slab_detach_some(struct stook_slabs *slabs, struct stook_slabs_node *node, size_t want,
                           struct stook_slab **batch, bool try, struct stook_slab_fresh *fresh)
{
        uint32_t free_objects[STOOK_SLAB_BATCH];
        struct stook_slab_hold hold;
        int n = 0, take = 0;

        if (!stook_slab_hold(&hold, slabs, node, try))
                return -1;
        stook_slab_settle_pending(&hold);
        if (fresh)
                fresh->count = 0;
        if (fresh && node->partial == 1)
                take_fresh(&hold, want, fresh);
        if (fresh && fresh->count) {
                stook_slab_unhold(&hold);
                return 0;
        }
        stook_list_for_each(e, &node->list) {
                struct stook_slab *slab = stook_slab_of(stook_container_of(e, struct stook_span, list));
                uint32_t free = slab->objects - stook_word_inuse(stook_slab_word(slab));
                int at = n++;

                for (; at > 0 && free_objects[at - 1] > free; at--) {
                        free_objects[at] = free_objects[at - 1];
                        batch[at] = batch[at - 1];
                }
                free_objects[at] = free;
                batch[at] = slab;
                if (n == STOOK_SLAB_BATCH)
                        break;
        }
        for (size_t got = 0; take < n && got < want; take++) {
                got += free_objects[take];
                stook_slab_detach(batch[take], stook_self);
                stook_slab_remove(&hold, batch[take]);
        }
        stook_slab_unhold(&hold);
        return take;
}
