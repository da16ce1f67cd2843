/*
 * Purpose: what all files of the maple tree share: the root word, the levels' kinds, a place in a
 * leaf.
 *
 * Place: above mnode.h, below everything else.
 * The root word is one of
 *   0                          the empty tree
 *   an entry                   of key 0 alone; its two low bits are not 10
 *   node | height << 2 | 2     a node has 8 free low bits, the height is 1 to 63
 * So one load tells a reader where to begin and how far down to go.
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

/* The entry of key 0 can be the root word itself. */
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

/*
 * M4: the release store in stook_maple_set_rcu() pairs with this acquire load: a reader that
 *     takes no lock sees what writers changed in place before RCU was switched on.
 */
static inline unsigned mtree_flags(const struct stook_maple *tree)
{
        return __atomic_load_n(&tree->flags, __ATOMIC_ACQUIRE);
}

/* Other flags than RCU do not change. */
static inline bool mtree_gaps(const struct stook_maple *tree)
{
        return __atomic_load_n(&tree->flags, __ATOMIC_RELAXED) & STOOK_MAPLE_GAPS;
}

static inline bool mtree_rcu(const struct stook_maple *tree)
{
        return mtree_flags(tree) & STOOK_MAPLE_RCU;
}

static inline bool mtree_own_lock(const struct stook_maple *tree)
{
        return !(__atomic_load_n(&tree->flags, __ATOMIC_RELAXED) & STOOK_MAPLE_EXTERNAL_LOCK);
}

static inline enum mnode_kind mtree_kind(const struct stook_maple *tree, unsigned level)
{
        return !level ? MNODE_LEAF : mtree_gaps(tree) ? MNODE_INNER_GAPS : MNODE_INNER;
}

/* ---- how a cursor knows that its leaf may be gone ---- */

/*
 * The leaf that a cursor remembers, the node above it, and the other leaves of that node have not
 * been freed if one of two things holds.
 *
 * - No write ended since the walk that found them: the tree's version is the same. This goes for
 *   trees without RCU, and for cursors that are used under the lock. Their thread is no reader, so
 *   nodes of an RCU tree may be freed while another thread has the lock.
 * - A reader found them, and the read section lasts. What a replaced node points to was in the tree
 *   when it was replaced, so after the section began. Such a cursor has the version MTREE_SECTION.
 *   It need not look at the tree's version, which writers change all the time.
 *
 * With an external lock the library cannot tell readers from the holder: cursors go by the version.
 *
 *  M3: the release store of the version comes after the store that unlinks a node. It pairs with
 *      the acquire load before a cursor's walk: the walk does not find nodes unlinked by then.
 *  The store comes before the node is given to free_rcu, too. So if a cursor was used under the
 *  lock and is now used in a read section, it finds the version changed, or else the section began
 *  early enough for the grace period to wait for it.
 */
#define MTREE_SECTION UINT64_MAX

/* Own locks of trees that this thread holds: with one, it is not taken for a reader. */
extern __thread unsigned stook_mtree_locked;

/* M3 */
static inline uint64_t mtree_version(const struct stook_maple *tree)
{
        return __atomic_load_n(&tree->version, __ATOMIC_ACQUIRE);
}

/* The version that a cursor remembers when it is about to walk down. */
static inline uint64_t mtree_version_for_walk(const struct stook_maple *tree)
{
        bool reader = mtree_rcu(tree) && mtree_own_lock(tree) && !stook_mtree_locked;

        return reader ? MTREE_SECTION : mtree_version(tree);
}

static inline bool mtree_same_version(const struct stook_maple *tree, uint64_t version)
{
        return version == MTREE_SECTION || version == mtree_version(tree);
}

/* M3. The lock is held. Nodes that the write replaced are unlinked, and none was given back yet. */
static inline void mtree_written(struct stook_maple *tree)
{
        __atomic_store_n(&tree->version, tree->version + 1, __ATOMIC_RELEASE);
}

/* ---- entries ---- */

static inline bool mtree_reserved(const void *entry)
{
        return ((uintptr_t)entry & 3) == 2 && (uintptr_t)entry < 4096 &&
               entry != STOOK_MAPLE_PLACEHOLDER;
}

/* Neither a gap nor a placeholder: one test, since the placeholder is a single bit. */
static inline bool mtree_seen(const void *entry)
{
        return (uintptr_t)entry & ~(uintptr_t)STOOK_MAPLE_PLACEHOLDER;
}

/* ---- a place: an entry of a leaf, or what stands for it in a tree without nodes ---- */

struct mplace {
        struct mnode *leaf;             /* NULL: the tree has no node */
        struct mnode *above;            /* the node that a walk came from to the leaf, or NULL */
        unsigned at;                    /* which of its entries the leaf is */
        uint64_t min, max;              /* the leaf's */
        unsigned index;
        uint64_t first, last;           /* the range's */
        void    *entry;
};

/* Finds the range that @key is in. */
void stook_mplace_seek(struct stook_maple *tree, uint64_t key, struct mplace *place);

/*
 * Reads entry @index of the leaf in @place, whose bounds are there already. The end is read after
 * the entry, M5: it is the entry's, unless that is a gap.
 */
static inline void mplace_read(struct mplace *place, unsigned index)
{
        place->index = index;
        place->entry = mnode_entry(place->leaf, MNODE_LEAF, index);
        place->first = mnode_first(place->leaf, index, place->min);
        place->last = mnode_last(place->leaf, MNODE_LEAF, index, place->max);
}

/*
 * M5. @place has a gap of a leaf that may be appended to now: widens it to the gap that it is a
 * part of. False: there is no such gap any more, because the leaf was written to; to be looked for
 * again.
 */
bool stook_mplace_whole_gap(struct mplace *place);

/* Reads the range that @key is in. The leaf in @place has it. */
static inline void mplace_find(const struct stook_maple *tree, struct mplace *place, uint64_t key)
{
        do
                mplace_read(place, mnode_find_wide(place->leaf, key));
        while (MTREE_UNLIKELY(place->last < key) ||
               (mtree_rcu(tree) &&
                !(place->entry ? mnode_still(place->leaf, place->index, place->entry)
                               : stook_mplace_whole_gap(place))));
}

/*
 * For tests, with one thread: loads use wide compares, or do not. Return: they do now; false where
 * the processor has none.
 */
bool stook_mload_choose(bool wide);

/* ---- locking of simple calls ---- */

/*
 * Takes the tree's lock. True: it was taken, and must be left again. False: the tree has none of
 * its own, or the caller holds it.
 */
bool stook_mtree_enter(struct stook_maple *tree);
void stook_mtree_leave(struct stook_maple *tree, bool entered);
/* For reads, which take no lock in RCU trees. */
bool stook_mtree_enter_reader(struct stook_maple *tree);
/*
 * Ends the process if a tree is about to be changed by a thread that does not hold the lock that
 * was registered; in builds with assertions also if that is the tree's own lock.
 */
void stook_mtree_check_holder(const struct stook_maple *tree);

/* ---- gaps; the caller holds the lock ---- */

/* The largest gap in a node on @level that spans [min, max]. */
uint64_t stook_mgap_of(const struct stook_maple *tree, struct mnode *node, unsigned level,
                       uint64_t min, uint64_t max);

/*
 * The lowest or the highest place for @size keys in [min, max]. False: none. size >= 1, min <= max.
 */
bool stook_mgap_lowest(struct stook_maple *tree, uint64_t min, uint64_t max, uint64_t size,
                       uint64_t *first);
bool stook_mgap_highest(struct stook_maple *tree, uint64_t min, uint64_t max, uint64_t size,
                        uint64_t *first);

/*
 * What alloc_cyclic stores at. Return: 0; 1: the search wrapped around; -EBUSY. lo <= hi.
 */
int stook_mfit_cyclic(struct stook_maple *tree, uint64_t lo, uint64_t hi, uint64_t next,
                      uint64_t *key);
/* Notes that @key was stored at. */
void stook_mfit_cyclic_stored(struct stook_maple *tree, uint64_t key);

/* ---- nodes given back ---- */

/*
 * Frees a node that no reader can be in: it was never published, or its readers have left.
 */
void stook_mnode_free(struct mnode *node);
/*
 * Marks a node that readers may be in as dead, and frees it after them. The caller holds the lock.
 */
void stook_mnode_retire(struct stook_maple *tree, struct mnode *node);
/* Retires nodes again that the cache could not take before. */
void stook_mnode_retire_deferred(struct stook_maple *tree);
/* The same when the tree is destroyed: waits for readers, so that there is room. */
void stook_mnode_retire_rest(struct stook_maple *tree);
/* Frees or retires, by the tree's kind, @node on @level and all nodes below it. */
void stook_mnode_drop_subtree(struct stook_maple *tree, struct mnode *node, unsigned level);

#endif
