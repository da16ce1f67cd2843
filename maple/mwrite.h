/*
 * Purpose: one write, from the keys to the changed tree, in four parts:
 *   locate  (mwrite_locate.c)  finds the leaves and entries that [first, last] begins and ends in,
 *                              and the ways down to them
 *   plan    (mwrite_plan.c)    finds the class of the write, what will happen on each level, and
 *                              how many nodes that needs; no allocation, no change
 *   reserve (mreserve.c)       takes these nodes; the only part that can fail
 *   commit  (mwrite_leaf.c, mwrite_run.c)
 *                              makes the change; cannot fail, and needs exactly what was planned
 *
 * Place: used by mstore.c and mcursor_write.c. The caller holds the tree's lock throughout.
 *
 * A write that begins and ends in one leaf, and leaves it within its limits, is done there: LEAF.
 * Most writes are of this kind.
 *
 * How a write changes more than one leaf: on each level, from the leaves up, it replaces the nodes
 * from the one on the left way to the one on the right way. Three parts are strung together to a
 * run: what these nodes held to the left of the change, what is new, and what they held to the
 * right of it. The run is cut into new nodes (1 to 3), which are what is new on the level above. If
 * a run is too short for one node, the left or right neighbour is taken into it. If it is too long
 * for one node and a sibling has room, the sibling is taken in. So splits are put off, and nodes
 * are fuller. The way up ends
 *   POINTER  when one node takes the place of one: a store to an entry of the level above
 *   SPLICE   when the node above has room and may be changed in place (no RCU)
 *   ROOT     when the run is the whole level: its node is the new root, or two or three get a new
 *            root above them. Trees grow and shrink by this alone.
 *
 * Nodes needed: without RCU replaced nodes are used again for the new ones. So a write needs only
 * the nodes that the tree grows by, and none if the tree does not grow. With RCU all new nodes are
 * needed. Either way the bounds of the kernel's table hold. D is the number of levels that change
 * in shape:
 *   exact fit, same count, append 0; node 1 with RCU, else 0; new root 1; store to a tree without
 *   nodes 0 or 1; split and rebalance 2 * D + 1; spanning 3 * D + 1; any 3 * height + 1.
 */
#ifndef STOOK_MWRITE_H
#define STOOK_MWRITE_H

#include "mreserve.h"

enum mwrite_class {
        MWRITE_NOTHING,                 /* the tree is as asked for already */
        MWRITE_ROOT_STORE,              /* the tree has no node */
        MWRITE_EXACT_FIT,               /* another entry for a range: one store, with RCU, too */
        MWRITE_SAME_COUNT,              /* as many ranges in the leaf as before (with RCU: NODE) */
        MWRITE_APPEND,                  /* ranges added behind the last one (with RCU: in a gap) */
        MWRITE_NODE,                    /* one leaf changes and stays within its limits */
        MWRITE_NEW_ROOT,                /* one range is all there is */
        MWRITE_SPLIT,                   /* more than a leaf can hold */
        MWRITE_REBALANCE,               /* less than a leaf may hold */
        MWRITE_SPANNING,                /* begins and ends in different leaves */
};

/* What a write is asked for. */
enum mwrite_wish {
        MWRITE_STORE,                   /* the entry at [first, last] */
        MWRITE_INSERT,                  /* only where all of it is a gap */
        MWRITE_ERASE                    /* a gap in place of the whole range that `first` is in */
};

enum mwrite_end { MWRITE_LEAF, MWRITE_POINTER, MWRITE_SPLICE, MWRITE_ROOT };

/* The way from the root to a leaf. Index: level. */
struct mside {
        struct mnode *node[MNODE_LEVELS];
        /* of the node: the left side's first key, the right side's last */
        uint64_t bound[MNODE_LEVELS];
        unsigned char at[MNODE_LEVELS]; /* which entry of the node the way takes */
};

struct mstep {
        struct mnode *from_left, *from_right; /* neighbours taken into the run; or NULL */
        uint64_t left_last, right_first; /* last key of from_left, first of from_right */
        unsigned char cuts;             /* nodes the run is cut into */
        /* of dead[]: those before may be used again from this level on */
        unsigned char dead_end;
};

/* The ways as they were first found, to free what lies between them. */
struct mspan {
        struct mnode *left, *right;
        unsigned char left_at, right_at;
};

struct mwrite {
        struct stook_maple *tree;
        uint64_t first, last;           /* of a NULL entry: with the gaps beside it */
        void    *entry;
        void    *old;                   /* the entry that was at `first` */
        unsigned height;                /* of a tree without a node: 1 */
        enum mwrite_class class;
        enum mwrite_end end;
        unsigned top;                   /* last level with a step */
        unsigned nodes;                 /* needed from the reserve */
        uintptr_t word;                 /* the new root word, where no node is left */
        bool     rootless;              /* the leaf stands in for the root word */
        bool     becomes_word;          /* LEAF */
        bool     piece_left, piece_right; /* a range begins before first, ends after last */
        unsigned char dead_count;
        struct mside left, right;
        struct mstep step[MNODE_LEVELS];
        struct mspan span[MNODE_LEVELS];
        struct mnode *dead[4 * MNODE_LEVELS]; /* replaced nodes, by level */
        struct mnode stand_in;          /* what a root word with an entry holds, as a leaf */
};

/*
 * Locates and plans. Return: 0: the tree is unchanged, and write->nodes known; -EINVAL; -EEXIST
 * (insert); -ENOENT (erase); -ENOTSUP; -ENOMEM.
 */
int stook_mwrite_prepare(struct mwrite *write, struct stook_maple *tree, uint64_t first,
                         uint64_t last, void *entry,
                         enum mwrite_wish wish);

/* @reserve holds write->nodes nodes or more. What the write does not need stays in it. */
void stook_mwrite_commit(struct mwrite *write, struct mreserve *reserve);

/* ---- parts ---- */

/* Return: 0; -EEXIST; -ENOENT. */
int stook_mwrite_locate(struct mwrite *write, enum mwrite_wish wish);

/*
 * The node to the left, or right, of the way on a level. NULL: there is none. @bound: its first, or
 * last, key. @move: changes the way, on the levels above, so that it goes to this node.
 */
struct mnode *stook_mwrite_left_neighbour(struct mwrite *write, unsigned level, bool move,
                                          uint64_t *bound);
struct mnode *stook_mwrite_right_neighbour(struct mwrite *write, unsigned level, bool move,
                                           uint64_t *bound);

/* Entries of the leaf, or of the run of leaves, after the write. */
unsigned stook_mwrite_leaf_count(const struct mwrite *write);

void stook_mwrite_plan(struct mwrite *write);

/* Commits a write that ends in a LEAF. */
void stook_mwrite_leaf(struct mwrite *write, struct mreserve *reserve);
/* Commits all others. */
void stook_mwrite_run(struct mwrite *write, struct mreserve *reserve);

/* The largest gap below the way's node on @level is now @gap: updates the nodes above. */
void stook_mwrite_gap_up(struct mwrite *write, unsigned level, uint64_t gap);

#endif
