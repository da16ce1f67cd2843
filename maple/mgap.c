/*
 * Purpose: gaps: how large they are, and the lowest or highest one for a number of keys.
 *
 * Place: used by writes, which keep the tracking up to date, and by alloc and empty_area, which
 * search. A gap is one entry of one leaf, never more (I3 of mnode.h). So the largest gap below a
 * node is the largest of its children's. A search passes over a subtree whose largest gap is too
 * small. At the ends of [min, max] a gap may be large enough but not lie within the limits. So a
 * search enters at most one subtree in vain on each level and side.
 */
#include "mtree.h"

uint64_t stook_mgap_of(const struct stook_maple *tree, struct mnode *node, unsigned level,
                       uint64_t min, uint64_t max)
{
        unsigned count = mnode_count(node);
        uint64_t largest = 0;

        if (level && mtree_gaps(tree)) {
                for (unsigned i = 0; i < count; i++)
                        largest = node->gaps.gap[i] > largest ? node->gaps.gap[i] : largest;
                return largest;
        }
        /* Without a branch, because where gaps are cannot be predicted. */
        for (unsigned i = 0; i + 1 < count; i++) {
                uint64_t gap = node->wide.entry[i] ? 0 : node->wide.pivot[i] - min + 1;

                largest = gap > largest ? gap : largest;
                min = node->wide.pivot[i] + 1;
        }
        if (!node->wide.entry[count - 1] && max - min + 1 > largest)
                largest = max - min + 1;
        return largest;
}

struct search {
        uint64_t min, max, size;
        bool     highest;
        uint64_t found;
};

/* There is room in the part of the gap [first, last] that lies within the limits. */
static bool fits(struct search *search, uint64_t first, uint64_t last)
{
        if (first < search->min)
                first = search->min;
        if (last > search->max)
                last = search->max;
        if (first > last || last - first < search->size - 1)
                return false;
        search->found = search->highest ? last - (search->size - 1) : first;
        return true;
}

/* A subtree below entry @i of an inner node, which spans [*min, *max]. */
static inline struct mnode *child(struct mnode *node, unsigned i, uint64_t *min, uint64_t *max)
{
        struct mnode *below = node->gaps.entry[i];

        mnode_prefetch(below);
        mnode_narrow(node, MNODE_INNER_GAPS, i, min, max);
        return below;
}

/*
 * A search that finds no room in a leaf goes on in the next one. It is asked for now, so that the
 * search does not wait for it. (Measured: 0.9 of the time among 100,000 ranges.)
 */
static inline void prefetch_leaf(struct mnode *node, unsigned level, unsigned i)
{
        if (level == 1 && i < mnode_count(node))
                mnode_prefetch(node->gaps.entry[i]);
}

/*
 * Entries are looked at in the order asked for, so the first one that fits is the result. The
 * limits are looked for in the nodes that they cut, and in no others.
 */
static bool search_leaf_up(struct search *search, struct mnode *leaf, uint64_t min, uint64_t max)
{
        unsigned count = mnode_count(leaf), i = 0;

        if (search->min > min)
                i = mnode_find_wide(leaf, search->min);
        for (; i < count; i++)
                if (!leaf->wide.entry[i] &&
                    fits(search, mnode_first(leaf, i, min), mnode_last(leaf, MNODE_LEAF, i, max)))
                        return true;
        return false;
}

static bool search_up(struct search *search, struct mnode *node, unsigned level, uint64_t min,
                      uint64_t max)
{
        unsigned count = mnode_count(node), i = 0;

        if (!level)
                return search_leaf_up(search, node, min, max);
        if (search->min > min)
                i = mnode_find_gaps(node, search->min);
        for (; i < count; i++) {
                uint64_t first = min, last = max;
                struct mnode *below;

                if (node->gaps.gap[i] < search->size)
                        continue;
                below = child(node, i, &first, &last);
                prefetch_leaf(node, level, i + 1);
                if (search_up(search, below, level - 1, first, last))
                        return true;
                if (last >= search->max)
                        return false;
        }
        return false;
}

static bool search_leaf_down(struct search *search, struct mnode *leaf, uint64_t min, uint64_t max)
{
        unsigned i = mnode_count(leaf);

        if (search->max < max)
                i = mnode_find_wide(leaf, search->max) + 1;
        while (i--)
                if (!leaf->wide.entry[i] &&
                    fits(search, mnode_first(leaf, i, min), mnode_last(leaf, MNODE_LEAF, i, max)))
                        return true;
        return false;
}

static bool search_down(struct search *search, struct mnode *node, unsigned level, uint64_t min,
                        uint64_t max)
{
        unsigned i = mnode_count(node);

        if (!level)
                return search_leaf_down(search, node, min, max);
        if (search->max < max)
                i = mnode_find_gaps(node, search->max) + 1;
        while (i--) {
                uint64_t first = min, last = max;
                struct mnode *below;

                if (node->gaps.gap[i] < search->size)
                        continue;
                below = child(node, i, &first, &last);
                prefetch_leaf(node, level, i - 1);
                if (search_down(search, below, level - 1, first, last))
                        return true;
                if (first <= search->min)
                        return false;
        }
        return false;
}

static bool search(struct stook_maple *tree, struct search *search, uint64_t *first)
{
        uintptr_t root = mtree_root(tree);
        bool found;

        if (mroot_is_node(root))
                found = (search->highest ? search_down : search_up)(search, mroot_node(root),
                                                                    mroot_height(root) - 1, 0,
                                                                    UINT64_MAX);
        else
                found = fits(search, root ? 1 : 0, UINT64_MAX);
        if (found)
                *first = search->found;
        return found;
}

bool stook_mgap_lowest(struct stook_maple *tree, uint64_t min, uint64_t max, uint64_t size,
                       uint64_t *first)
{
        return search(tree, &(struct search){ min, max, size, false, 0 }, first);
}

bool stook_mgap_highest(struct stook_maple *tree, uint64_t min, uint64_t max, uint64_t size,
                        uint64_t *first)
{
        return search(tree, &(struct search){ min, max, size, true, 0 }, first);
}
