/*
 * Purpose: a node's slabs with free objects: holding the list's lock, and doing without it.
 * Place: within the slab layer.
 */
#ifndef STOOK_SLAB_PARTIAL_H
#define STOOK_SLAB_PARTIAL_H

#include "slab/slab_state.h"

/* Slabs of one batch: of a fill's detach, or claimed by a drain. Eight words of stack; more was no faster. */
#define STOOK_SLAB_BATCH 8

/* The lock of a node's list is held. Slabs to be released gather here: no lock is held over a call into pages. */
struct stook_slab_hold {
        struct stook_slabs *slabs;
        struct stook_slabs_node *node;
        struct stook_link *dead;
};

/* False: refused (@try: at once). */
bool stook_slab_hold(struct stook_slab_hold *hold, struct stook_slabs *slabs, struct stook_slabs_node *node, bool try);
/* Drops the lock; looks at pending after that, as often as it takes; releases what gathered. */
void stook_slab_unhold(struct stook_slab_hold *hold);

/* Held: lists or releases a slab whose claim is the caller's. */
void stook_slab_settle_one(struct stook_slab_hold *hold, struct stook_slab *slab);
/* Held: sees to everything on pending. */
void stook_slab_settle_pending(struct stook_slab_hold *hold);
/* Held: on the list or off it. */
void stook_slab_add(struct stook_slab_hold *hold, struct stook_slab *slab, bool head);
void stook_slab_remove(struct stook_slab_hold *hold, struct stook_slab *slab);
/* Held: a releasing slab off the list, to be released when the lock is dropped. */
void stook_slab_bury(struct stook_slab_hold *hold, struct stook_slab *slab);

/* Not held, waits forbidden: pushes a chain of claimed slabs, linked by their spans' `link`, on pending; sees to it that somebody looks. */
void stook_slab_pend(struct stook_slabs *slabs, struct stook_slabs_node *node, struct stook_link *first,
                     struct stook_link *last);
/* Not held, waits forbidden: lists or releases a chain of slabs whose claims are the caller's, now or by way of pending. */
void stook_slab_settle_all(struct stook_slabs *slabs, struct stook_slabs_node *node, struct stook_link *first,
                           struct stook_link *last);
/* Not held: detached slabs back to the list (@head: its head), now or by way of pending. */
void stook_slab_put_back(struct stook_slabs *slabs, struct stook_slabs_node *node, struct stook_slab *const *batch,
                         size_t n, bool head, bool try);

/* Objects that were never out, taken from a slab that was not detached for that: @count of them from @from on. */
struct stook_slab_fresh {
        struct stook_slab *slab;
        uint32_t from, count;           /* count 0: none */
};

/*
 * Detaches slabs with @want free objects in all, or as many as there are, at most STOOK_SLAB_BATCH, fullest
 * of those at the list's head first. If the list has one slab only, and nothing has come back to that, takes objects
 * from it where it stands instead: half of the atomic instructions, and where a cache grows it is the usual case.
 * @fresh: what was taken so; NULL: not to be done.
 * Return: slabs; -1: the lock is not to be had.
 */
int stook_slab_detach_some(struct stook_slabs *slabs, struct stook_slabs_node *node, size_t want,
                           struct stook_slab **batch, bool try, struct stook_slab_fresh *fresh);

/* Racily: nothing on the list, nothing pending. */
STOOK_INLINE bool stook_slabs_node_idle(struct stook_slabs_node *node)
{
        return !__atomic_load_n(&node->partial, __ATOMIC_RELAXED) && stook_pending_stack_empty_racy(&node->pending);
}

/* ---- slab_birth.c ---- */

/* A new slab, detached, the caller's. NULL: no memory. */
struct stook_slab *stook_slab_birth(struct stook_slabs *slabs, unsigned node);
/* A releasing slab's span back to the pages; no lock held. */
void stook_slab_release(struct stook_slab *slab);

#endif
