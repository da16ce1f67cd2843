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

/* Looks at the entries in the order asked for. So the first one that fits is the result. */
static bool search_node(struct search *search, struct mnode *node, unsigned level, uint64_t min,
                        uint64_t max)
{
        enum mnode_kind kind = level ? MNODE_INNER_GAPS : MNODE_LEAF;
        unsigned from = mnode_find(node, kind, search->min);
        unsigned to = mnode_find(node, kind, search->max);

        if (search->min < min)
                from = 0;
        if (search->max > max)
                to = mnode_count(node) - 1;
        for (unsigned n = 0; n <= to - from; n++) {
                unsigned i = search->highest ? to - n : from + n;
                uint64_t first = mnode_first(node, i, min), last = mnode_last(node, kind, i, max);
                bool found = false;

                if (!level)
                        found = !node->wide.entry[i] && fits(search, first, last);
                else if (node->gaps.gap[i] >= search->size)
                        found = search_node(search, node->gaps.entry[i], level - 1, first, last);
                if (found)
                        return true;
        }
        return false;
}

static bool search(struct stook_maple *tree, struct search *search, uint64_t *first)
{
        uintptr_t root = mtree_root(tree);
        bool found;

        if (mroot_is_node(root))
                found = search_node(search, mroot_node(root), mroot_height(root) - 1, 0,
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
