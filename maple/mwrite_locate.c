/*
 * Purpose: where a write begins and ends.
 *
 * Place: first part of a write (mwrite.h).
 * A write of a gap takes in the gaps beside it, also those in the neighbouring leaves. So two gaps
 * never meet (I3 of mnode.h).
 */
#include <errno.h>
#include "mwrite.h"

#define NONE_4 UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX
static const struct mnode nothing = {
        .head = 1 << 1,
        .wide.pivot = { NONE_4, NONE_4, NONE_4, UINT64_MAX, UINT64_MAX, UINT64_MAX },
};

/* What a tree without a node holds, as a leaf. It is read and never written. */
static struct mnode *stand_in(struct mwrite *write, uintptr_t root)
{
        struct mnode *leaf = &write->stand_in;

        if (!root)
                return (struct mnode *)(uintptr_t)&nothing;
        mnode_copy(leaf, &nothing);
        leaf->wide.entry[0] = (void *)root;
        leaf->wide.pivot[0] = 0;
        mnode_set_count(leaf, 2);
        return leaf;
}

struct mnode *stook_mwrite_left_neighbour(struct mwrite *write, unsigned level, bool move,
                                          uint64_t *bound)
{
        struct mside *side = &write->left;
        unsigned up = level + 1, index;
        struct mnode *node;
        uint64_t first;

        while (up < write->height && !side->at[up])
                up++;
        if (up >= write->height)
                return NULL;
        node = side->node[up];
        index = side->at[up] - 1u;
        first = mnode_first(node, index, side->bound[up]);
        if (move)
                side->at[up] = (unsigned char)index;
        for (;;) {
                node = mnode_entries(node, mtree_kind(write->tree, up))[index];
                if (--up == level) {
                        *bound = first;
                        return node;
                }
                index = mnode_count(node) - 1;
                if (move) {
                        side->node[up] = node;
                        side->bound[up] = first;
                        side->at[up] = (unsigned char)index;
                }
                first = mnode_first(node, index, first);
        }
}

struct mnode *stook_mwrite_right_neighbour(struct mwrite *write, unsigned level, bool move,
                                           uint64_t *bound)
{
        struct mside *side = &write->right;
        unsigned up = level + 1, index;
        enum mnode_kind kind;
        struct mnode *node;
        uint64_t last;

        while (up < write->height && side->at[up] + 1u == mnode_count(side->node[up]))
                up++;
        if (up >= write->height)
                return NULL;
        node = side->node[up];
        index = side->at[up] + 1u;
        kind = mtree_kind(write->tree, up);
        last = mnode_last(node, kind, index, side->bound[up]);
        if (move)
                side->at[up] = (unsigned char)index;
        for (;;) {
                node = mnode_entries(node, kind)[index];
                if (--up == level) {
                        *bound = last;
                        return node;
                }
                index = 0;
                kind = mtree_kind(write->tree, up);
                if (move) {
                        side->node[up] = node;
                        side->bound[up] = last;
                        side->at[up] = 0;
                }
                last = mnode_last(node, kind, 0, last);
        }
}

/*
 * Both ways go to the leaf that has `first` in it; then, if need be, the right one to that of
 * `last`.
 */
static void descend(struct mwrite *write, uintptr_t root)
{
        struct mside *left = &write->left, *right = &write->right;
        enum mnode_kind kind = mtree_kind(write->tree, 1);
        struct mnode *node = mroot_node(root);
        uint64_t min = 0, max = UINT64_MAX;
        unsigned index;

        for (unsigned level = write->height; --level;) {
                index = mnode_find(node, kind, write->first);
                left->node[level] = right->node[level] = node;
                left->at[level] = right->at[level] = (unsigned char)index;
                left->bound[level] = min;
                right->bound[level] = max;
                min = mnode_first(node, index, min);
                max = mnode_last(node, kind, index, max);
                node = mnode_entries(node, kind)[index];
                mnode_prefetch(node);
        }
        left->node[0] = right->node[0] = node;
        left->bound[0] = min;
        right->bound[0] = max;
        if (write->last <= max)
                return;
        node = mroot_node(root);
        max = UINT64_MAX;
        for (unsigned level = write->height; --level;) {
                index = mnode_find(node, kind, write->last);
                right->node[level] = node;
                right->at[level] = (unsigned char)index;
                right->bound[level] = max;
                max = mnode_last(node, kind, index, max);
                node = mnode_entries(node, kind)[index];
                mnode_prefetch(node);
        }
        right->node[0] = node;
        right->bound[0] = max;
}

static uint64_t entry_first(const struct mwrite *write)
{
        return mnode_first(write->left.node[0], write->left.at[0], write->left.bound[0]);
}

static uint64_t entry_last(const struct mwrite *write)
{
        return mnode_last(write->right.node[0], MNODE_LEAF, write->right.at[0],
                          write->right.bound[0]);
}

static void *entry_at(const struct mside *side)
{
        return side->node[0]->wide.entry[side->at[0]];
}

/* Widens the write over the gap that `first` is in, or that ends before it. */
static void widen_left(struct mwrite *write)
{
        struct mside *left = &write->left;
        struct mnode *node;
        uint64_t bound;

        if (entry_at(left)) {
                if (!write->first || entry_first(write) != write->first)
                        return;
                if (left->at[0]) {
                        if (left->node[0]->wide.entry[left->at[0] - 1])
                                return;
                        left->at[0]--;
                } else {
                        node = stook_mwrite_left_neighbour(write, 0, false, &bound);
                        if (!node || node->wide.entry[mnode_count(node) - 1])
                                return;
                        stook_mwrite_left_neighbour(write, 0, true, &bound);
                        left->node[0] = node;
                        left->bound[0] = bound;
                        left->at[0] = (unsigned char)(mnode_count(node) - 1);
                }
        }
        write->first = entry_first(write);
}

static void widen_right(struct mwrite *write)
{
        struct mside *right = &write->right;
        struct mnode *node;
        uint64_t bound;

        if (entry_at(right)) {
                if (write->last == UINT64_MAX || entry_last(write) != write->last)
                        return;
                if (right->at[0] + 1u < mnode_count(right->node[0])) {
                        if (right->node[0]->wide.entry[right->at[0] + 1])
                                return;
                        right->at[0]++;
                } else {
                        node = stook_mwrite_right_neighbour(write, 0, false, &bound);
                        if (!node || node->wide.entry[0])
                                return;
                        stook_mwrite_right_neighbour(write, 0, true, &bound);
                        right->node[0] = node;
                        right->bound[0] = bound;
                        right->at[0] = 0;
                }
        }
        write->last = entry_last(write);
}

int stook_mwrite_locate(struct mwrite *write, enum mwrite_wish wish)
{
        uintptr_t root = write->tree->root;
        struct mside *left = &write->left, *right = &write->right;

        write->rootless = !mroot_is_node(root);
        write->height = write->rootless ? 1 : mroot_height(root);
        if (write->rootless) {
                left->node[0] = right->node[0] = stand_in(write, root);
                left->bound[0] = 0;
                right->bound[0] = UINT64_MAX;
        } else {
                descend(write, root);
        }
        left->at[0] = (unsigned char)mnode_find_wide(left->node[0], write->first);
        right->at[0] = left->at[0];
        if (left->node[0] != right->node[0] || entry_last(write) < write->last)
                right->at[0] = (unsigned char)mnode_find_wide(right->node[0], write->last);
        write->old = entry_at(left);
        if (wish == MWRITE_ERASE) {
                if (!write->old)
                        return -ENOENT;
                write->first = entry_first(write);
                write->last = entry_last(write);
        }
        if (wish == MWRITE_INSERT &&
            (entry_at(left) || left->node[0] != right->node[0] || left->at[0] != right->at[0]))
                return -EEXIST;
        if (!write->entry) {
                widen_left(write);
                widen_right(write);
        }
        write->piece_left = entry_first(write) < write->first;
        write->piece_right = entry_last(write) > write->last;
        return 0;
}
