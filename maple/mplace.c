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
 *  - The bounds come from pivots on the same way. A node is only linked under a parent whose pivots
 *    give the bounds that it was made for. So bounds and entry belong together. In a leaf it is the
 *    order of reading that makes sure of it, M5.
 */
#include "mtree.h"

/* Goes down one level: from a node that spans [place->min, place->max] to the child with @key. */
static inline __attribute__((always_inline))
struct mnode *step(struct mnode *node, enum mnode_kind kind, uint64_t key, struct mplace *place)
{
        unsigned index = mnode_find(node, kind, key);
        struct mnode *child = mnode_entry(node, kind, index);

        mnode_prefetch(child);
        mnode_narrow(node, kind, index, &place->min, &place->max);
        place->above = node;
        place->at = index;
        return child;
}

void stook_mplace_seek(struct stook_maple *tree, uint64_t key, struct mplace *place)
{
        uintptr_t root = mtree_root(tree);
        struct mnode *node;

        if (!mroot_is_node(root)) {
                place->leaf = place->above = NULL;
                place->first = root && key ? 1 : 0;
                place->last = root && !key ? 0 : UINT64_MAX;
                place->entry = key ? NULL : (void *)root;
                return;
        }
        node = mroot_node(root);
        place->above = NULL;
        place->min = 0;
        place->max = UINT64_MAX;
        if (mtree_gaps(tree))
                for (unsigned height = mroot_height(root); --height;)
                        node = step(node, MNODE_INNER_GAPS, key, place);
        else
                for (unsigned height = mroot_height(root); --height;)
                        node = step(node, MNODE_INNER, key, place);
        place->leaf = node;
        mplace_find(tree, place, key);
}

/*
 * The writer makes one append at a time. Its last store is that of the range's entry. Until then
 * all entries from its gap on are NULL, and they are one gap up to the end of the leaf.
 *
 * Upwards. The gap ends below the leaf's end, at a pivot. If all entries behind it are NULL, this
 * pivot is of an append that was not done. If the next one is set, the gap is what an append left
 * before its range, and stays; or the append filled the gap itself.
 * Downwards. If the entry before is NULL, its append was not done, nor was one above it begun.
 *
 * Entries also change by exact fits (M1), of neighbours one after the other. So two neighbours that
 * were read as NULL, with a range behind them, were not NULL at one moment. The same is true if
 * the gap has an entry when it is read again at the end. In both cases the answer is false.
 */
bool stook_mplace_whole_gap(struct mplace *place)
{
        struct mnode *leaf = place->leaf;
        unsigned index = place->index, behind = index + 1;

        if (place->last < place->max) {
                while (behind < MNODE_ENTRIES && !mnode_entry(leaf, MNODE_LEAF, behind))
                        behind++;
                if (behind == MNODE_ENTRIES)
                        place->last = place->max;
                else if (behind > index + 1)
                        return false;
        }
        while (index && !mnode_entry(leaf, MNODE_LEAF, index - 1))
                index--;
        if (mnode_entry(leaf, MNODE_LEAF, place->index))
                return false;
        place->index = index;
        place->first = mnode_first(leaf, index, place->min);
        return true;
}
