/*
 * Purpose: what all files of the maple tree share: the root word, the levels' kinds, a place in a leaf.
 *
 * Place: above mnode.h, below everything else.
 * The root word is one of
 *   0                          the empty tree
 *   an entry                   of key 0 alone; its two low bits are not 10
 *   node | height << 2 | 2     a node has 8 free low bits, the height is 1 to 63
 * so one load tells a reader where to begin and how far down to go.
 */
#ifndef STOOK_MTREE_H
#define STOOK_MTREE_H

#include <stook/maple.h>
#include "mnode.h"

#define MTREE_LIKELY(x)   __builtin_expect(!!(x), 1)
#define MTREE_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MTREE_FLAGS       (STOOK_MAPLE_GAPS | STOOK_MAPLE_RCU | STOOK_MAPLE_EXTERNAL_LOCK)

/* ---- the root word ---- */

static inline bool mroot_is_node(uintptr_t root)
{
        return (root & 3) == 2;
}

static inline struct mnode *mroot_node(uintptr_t root)
{
        return (struct mnode *)(root & ~(uintptr_t)(MNODE_BYTES - 1));
}

static inline unsigned mroot_height(uintptr_t root)
{
        return (unsigned)(root & (MNODE_BYTES - 1)) >> 2;
}

static inline uintptr_t mroot_make(struct mnode *node, unsigned height)
{
        return (uintptr_t)node | height << 2 | 2;
}

/* Can the entry of key 0 be the root word itself? */
static inline bool mroot_can_hold(const void *entry)
{
        return ((uintptr_t)entry & 3) != 2;
}

/* M1 */
static inline uintptr_t mtree_root(const struct stook_maple *tree)
{
        return __atomic_load_n(&tree->root, __ATOMIC_ACQUIRE);
}

static inline void mtree_set_root(struct stook_maple *tree, uintptr_t root)
{
        __atomic_store_n(&tree->root, root, __ATOMIC_RELEASE);
}

/* ---- flags ---- */

static inline bool mtree_gaps(const struct stook_maple *tree)
{
        return tree->flags & STOOK_MAPLE_GAPS;
}

static inline bool mtree_rcu(const struct stook_maple *tree)
{
        return tree->flags & STOOK_MAPLE_RCU;
}

static inline enum mnode_kind mtree_kind(const struct stook_maple *tree, unsigned level)
{
        return !level ? MNODE_LEAF : mtree_gaps(tree) ? MNODE_INNER_GAPS : MNODE_INNER;
}

/* ---- what tells a cursor that its leaf may be gone ---- */

/* Of this thread, to any RCU tree. */
extern __thread uint64_t stook_mtree_own_writes;

/*
 * Changes with every write that a leaf need not outlive for a cursor of this thread: without RCU each one; with RCU this
 * thread's own. (A thread with the lock is no reader, so grace periods may end under its cursors, and nobody else writes
 * then. Readers hold on to leaves by their read section, and look whether those are dead.)
 */
static inline uint64_t mtree_version(const struct stook_maple *tree)
{
        return mtree_rcu(tree) ? stook_mtree_own_writes : tree->version;
}

static inline void mtree_written(struct stook_maple *tree)
{
        if (mtree_rcu(tree))
                stook_mtree_own_writes++;
        else
                tree->version++;
}

static inline bool mtree_reserved(const void *entry)
{
        return ((uintptr_t)entry & 3) == 2 && (uintptr_t)entry < 4096;
}

/* ---- a place: a slot of a leaf, or what stands for it in a tree without nodes ---- */

struct mplace {
        struct mnode *leaf;             /* NULL: the tree has no node */
        uint64_t min, max;              /* the leaf's */
        unsigned slot;
        uint64_t first, last;           /* the range's */
        void    *entry;
};

/* Finds the range that has @key in it. */
void stook_mplace_seek(struct stook_maple *tree, uint64_t key, struct mplace *place);

/*
 * Reads slot @slot of the leaf at hand again. False: the leaf was replaced meanwhile (RCU trees), and what is in the
 * place means nothing.
 */
bool stook_mplace_read(struct stook_maple *tree, struct mplace *place, unsigned slot);

/* For tests: loads by wide compares, where the processor has them, or without. Return: by wide ones. One thread. */
bool stook_mload_choose(bool wide);

/* ---- locking of simple calls ---- */

/* True: the lock was taken, and must be left again. False: there is none to take, or the caller has it. */
bool stook_mtree_enter(struct stook_maple *tree);
void stook_mtree_leave(struct stook_maple *tree, bool entered);
/* For reads, which take no lock in RCU trees. */
bool stook_mtree_enter_reader(struct stook_maple *tree);
/* Ends the process if a tree with a lock of its own is about to be changed without it; where there are assertions. */
void stook_mtree_check_holder(const struct stook_maple *tree);

/* ---- gaps (lock) ---- */

/* The largest gap in a node on @level that spans [min, max]. */
uint64_t stook_mgap_of(const struct stook_maple *tree, struct mnode *node, unsigned level, uint64_t min, uint64_t max);

/* The lowest or the highest place for @size keys in [min, max]. False: none. size >= 1, min <= max. */
bool stook_mgap_lowest(struct stook_maple *tree, uint64_t min, uint64_t max, uint64_t size, uint64_t *first);
bool stook_mgap_highest(struct stook_maple *tree, uint64_t min, uint64_t max, uint64_t size, uint64_t *first);

/* ---- nodes given back ---- */

/* A node, or a whole subtree with its root on @level, that no reader was ever shown, or may be shown no more. */
void stook_mnode_free(struct mnode *node);
/* One that readers may be in: marked dead and freed after them. The tree's lock is held. */
void stook_mnode_retire(struct stook_maple *tree, struct mnode *node);
/* Offers nodes again that the cache could not take. */
void stook_mnode_retire_deferred(struct stook_maple *tree);
/* The same when the tree goes: makes room for them by waiting for readers. */
void stook_mnode_retire_rest(struct stook_maple *tree);
/* By the tree's kind, free or retire. */
void stook_mnode_drop_subtree(struct stook_maple *tree, struct mnode *node, unsigned level);

#endif
