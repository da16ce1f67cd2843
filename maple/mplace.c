/*
 * Purpose: walks of readers: from a key to its range.
 *
 * Place: under every call that looks something up, except stook_maple_load() (mload.c). Below:
 * mnode.h.
 * Concurrency: in RCU trees readers come here in a read section. A walk goes down through nodes
 *  that may be replaced meanwhile. The result is right all the same:
 *  - A node that the walk reaches was current at some moment of the walk, or was replaced after the
 *    walk began. Only current nodes are changed. So a replaced node's entries are as they were when
 *    it was replaced.
 *  - By induction from the root, the entry found is the one that the key had at some moment between
 *    the begin and the end of the walk.
 *  - The bounds come from pivots on the same way, which never change in published nodes. A node is
 *    only linked under a parent whose pivots give the bounds that it was made for. So bounds and
 *    entry belong together.
 */
#include "mtree.h"

void stook_mplace_seek(struct stook_maple *tree, uint64_t key, struct mplace *place)
{
        uintptr_t root = mtree_root(tree);
        enum mnode_kind kind = mtree_kind(tree, 1);
        uint64_t min = 0, max = UINT64_MAX;
        struct mnode *node;
        unsigned index;

        if (!mroot_is_node(root)) {
                place->leaf = NULL;
                place->first = root && key ? 1 : 0;
                place->last = root && !key ? 0 : UINT64_MAX;
                place->entry = key ? NULL : (void *)root;
                return;
        }
        node = mroot_node(root);
        for (unsigned height = mroot_height(root); --height;) {
                index = mnode_find(node, kind, key);
                min = mnode_first(node, index, min);
                max = mnode_last(node, kind, index, max);
                node = mnode_entry(node, kind, index);
                mnode_prefetch(node);
        }
        index = mnode_find_wide(node, key);
        place->leaf = node;
        place->min = min;
        place->max = max;
        place->index = index;
        place->first = mnode_first(node, index, min);
        place->last = mnode_last(node, MNODE_LEAF, index, max);
        place->entry = mnode_entry(node, MNODE_LEAF, index);
}

bool stook_mplace_read(struct stook_maple *tree, struct mplace *place, unsigned index)
{
        struct mnode *node = place->leaf;

        place->index = index;
        place->first = mnode_first(node, index, place->min);
        place->last = mnode_last(node, MNODE_LEAF, index, place->max);
        place->entry = mnode_entry(node, MNODE_LEAF, index);
        /* The load of the entry was an acquire, so this load comes after it: M2. */
        return !mtree_rcu(tree) || !(__atomic_load_n(&node->head, __ATOMIC_ACQUIRE) & MNODE_DEAD);
}
