/*
 * Purpose: what the files of src/slab call of each other. Most other layers include slab/slab.h.
 * Place: slab_partial.c (a list, its lock, and the way without the lock), slab_fork.c,
 *  slab_birth.c, slab_shrink.c. Also called by special, and inspect. Transitions of a part are in
 *  slab/slab_state.h.
 */
#ifndef STOOK_SLAB_INSIDE_H
#define STOOK_SLAB_INSIDE_H

#include "slab/slab_state.h"

/* ---- slab_partial.c ---- */

/*
 * The lock of a list is held. Released slabs gather here, because no lock is held over a call into
 * pages.
 */
struct stook_slab_hold {
        struct stook_slabs *slabs;
        struct stook_slabs_node *node;
        struct stook_link *dead;
        uint32_t added, removed;        /* slabs that frees put on the list, and took off it */
};

/*
 * False: the lock was refused. @try: it is not waited for; nor is it while waits are forbidden (all
 * of a drain).
 */
bool stook_slab_hold(struct stook_slab_hold *hold, struct stook_slabs *slabs,
                     struct stook_slabs_node *node, bool try);
/*
 * The same for calls that may take 0.2 s, and settles what is pending. False: the holder is
 * stopped or dead.
 */
bool stook_slab_hold_long(struct stook_slab_hold *hold, struct stook_slabs *slabs,
                          struct stook_slabs_node *node);
/*
 * Drops the lock. Then looks at pending, and settles what is there, until nothing is. Then gives
 * back the slabs that gathered.
 */
void stook_slab_unhold(struct stook_slab_hold *hold);

/* Held: lists the part, or releases the slab. The claim is the caller's. */
void stook_slab_settle_one(struct stook_slab_hold *hold, struct stook_slab *slab, unsigned p);
/* Held: settles all claims on pending. */
void stook_slab_settle_pending(struct stook_slab_hold *hold);
/*
 * Held: parts @parts of a slab are LISTED from here on. A slab that was on no list goes to the
 * list's head or tail (@head).
 */
void stook_slab_add(struct stook_slab_hold *hold, struct stook_slab *slab, uint64_t parts,
                    bool head);
/* Held: these parts are not LISTED any more. */
void stook_slab_remove(struct stook_slab_hold *hold, struct stook_slab *slab, uint64_t parts);
/*
 * The end of a slab: a settle, or a retire, marks it *released* under the lock; it is *buried*, off
 * the list; without the lock it is *unmade*, out of the pagemap, and its span is given to the
 * pages. Held: the second of these steps (slab_shrink.c H1).
 */
void stook_slab_bury(struct stook_slab_hold *hold, struct stook_slab *slab);

/* Held, the list not empty: its first slab, which goes to its tail. */
STOOK_INLINE struct stook_slab *stook_slab_turn(struct stook_slab_hold *hold)
{
        struct stook_list *e = hold->node->list.next;

        stook_list_remove(e);
        stook_list_add_tail(&hold->node->list, e);
        return stook_slab_listed_at(e);
}

/* A part of a slab in one word: address of the span's descriptor | number of the part. 0: none. */
typedef uintptr_t stook_part_key;
_Static_assert(_Alignof(struct stook_span) >= STOOK_SLAB_PARTS,
               "a part's number fits below a descriptor's address");

STOOK_INLINE stook_part_key stook_part_key_of(const struct stook_slab *slab, unsigned p)
{
        return (uintptr_t)stook_slab_span(slab) | p;
}

STOOK_INLINE uintptr_t stook_key_span(stook_part_key key)
{
        return key & ~(stook_part_key)(STOOK_SLAB_PARTS - 1);
}

STOOK_INLINE struct stook_slab *stook_key_slab(stook_part_key key)
{
        return stook_slab_of((struct stook_span *)stook_key_span(key));
}

STOOK_INLINE unsigned stook_key_part(stook_part_key key)
{
        return (unsigned)(key & (STOOK_SLAB_PARTS - 1));
}

/*
 * Not held, waits forbidden: settles claims on parts of slabs of one node, under the lock or by way
 * of pending.
 */
void stook_slab_settle_keys(struct stook_slabs *slabs, struct stook_slabs_node *node,
                            const stook_part_key *keys, size_t n);
/*
 * The same for parts @parts (bit p: part p) of one slab. @pend: by way of pending, without looking
 * for the lock first.
 */
void stook_slab_settle_parts(struct stook_slabs *slabs, struct stook_slab *slab, uint64_t parts,
                             bool pend);

/*
 * Not held, waits forbidden: what is left of a pending stack that the caller took, from @link on,
 * goes back. The words `pending` of these slabs were not taken. NULL: nothing is left.
 */
void stook_slab_pend_again(struct stook_slabs *slabs, struct stook_slabs_node *node,
                           struct stook_link *link);

STOOK_INLINE struct stook_slabs_node *stook_slab_node(const struct stook_slab *slab)
{
        return &slab->slabs->node[slab->node];
}

/* Racy: nothing on the list, nothing pending. */
STOOK_INLINE bool stook_slabs_node_idle(struct stook_slabs_node *node)
{
        return !__atomic_load_n(&node->partial, __ATOMIC_RELAXED) &&
               stook_pending_stack_empty_racy(&node->pending);
}

/* ---- slab_fork.c ---- */
/*
 * Held, and inherited from a call that was jumped out of: makes the list anew from the parts'
 * flags.
 */
void stook_slab_relist(struct stook_slab_hold *hold);

/* ---- slab_birth.c ---- */

/* The parts of every slab of the cache lie in its descriptor. */
STOOK_INLINE bool stook_slabs_parts_are_near(const struct stook_slabs *slabs)
{
        return slabs->objects <= STOOK_SPAN_PAIRS * STOOK_PART_OBJECTS && !slabs->ctor;
}

/* Slabs that are made together, so that their pages are looked for once. */
#define STOOK_SLAB_BIRTHS 8

/*
 * New slabs, the caller's alone: all objects free, all parts claimed. The caller takes what it
 * wants by plain stores, clears the claims of parts that have nothing left, and publishes each slab
 * before it hands out an object of it.
 * @want: objects that the caller needs; @may_ask: the program may be asked for memory. Return:
 * slabs, at most as many as these objects need; 0: no memory. Of a run the others are listed.
 */
unsigned stook_slab_births(struct stook_slabs *slabs, unsigned node, size_t want, bool may_ask,
                           struct stook_slab *born[STOOK_SLAB_BIRTHS]);
/* Of a span that the caller took: a slab, not published. NULL: no memory for its parts. */
struct stook_slab *stook_slab_make(struct stook_slabs *slabs, struct stook_span *span);
/* Its parts are marked as released. From here on the span is no slab, only taken. */
void stook_slab_unmake(struct stook_slab *slab);
/*
 * Puts the claimed parts on the list, at its @head or tail, or on pending. @try: the lock is not
 * waited for.
 */
void stook_slab_publish(struct stook_slabs *slabs, struct stook_slab *slab, bool head, bool try);
/*
 * Gives the spans of released slabs of one node back to the pages. They are linked by their `link`.
 * No lock is held.
 */
void stook_slab_release(struct stook_link *first);

/* ---- slab_shrink.c ---- */

/*
 * Slabs of a node beyond those that are reserved, and beyond those that go. Without the lock it is
 * a hint; with it, so many may be released before it is dropped.
 */
uint32_t stook_slabs_beyond_reserved(const struct stook_slabs *slabs,
                                     const struct stook_slabs_node *node);

#endif
