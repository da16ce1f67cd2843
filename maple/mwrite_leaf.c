/*
 * Purpose: writes within one leaf, in place: 0 nodes.
 *
 * Place: last part of a write (mwrite.h).
 * Concurrency: with RCU only an exact fit comes here: the entry in a slot is replaced by one store, M1.
 */
#include <string.h>
#include "mwrite.h"

void stook_mwrite_gap_up(struct mwrite *write, unsigned level, uint64_t gap)
{
        while (++level < write->height) {
                struct mnode *node = write->left.node[level];
                uint64_t *gaps = node->gaps.gap, before = 0, after = 0;
                unsigned count = mnode_count(node), at = write->left.at[level];

                if (gaps[at] == gap)
                        return;
                for (unsigned i = 0; i < count; i++)
                        before = gaps[i] > before ? gaps[i] : before;
                gaps[at] = gap;
                for (unsigned i = 0; i < count; i++)
                        after = gaps[i] > after ? gaps[i] : after;
                if (after == before)
                        return;
                gap = after;
        }
}

/* Puts the new range and the pieces beside it where the slots [from, to] were. */
static void splice(struct mwrite *write, struct mnode *leaf, unsigned from, unsigned to)
{
        uint64_t *pivot = leaf->wide.pivot;
        void **slot = leaf->wide.slot;
        void *left_entry = slot[from], *right_entry = slot[to];
        unsigned count = mnode_count(leaf), n = write->piece_left + 1u + write->piece_right;
        unsigned tail = count - 1 - to, now = from + n + tail, i = from;
        uint64_t old_last = tail ? pivot[to] : UINT64_MAX;

        if (n != to + 1 - from && tail) {
                memmove(slot + from + n, slot + to + 1, tail * sizeof(*slot));
                memmove(pivot + from + n, pivot + to + 1, (tail - 1) * sizeof(*pivot));
        }
        if (write->piece_left) {
                pivot[i] = write->first - 1;
                slot[i++] = left_entry;
        }
        slot[i] = write->entry;
        if (write->piece_right) {
                pivot[i++] = write->last;
                slot[i] = right_entry;
        }
        if (tail)
                pivot[i] = old_last;
        for (i = now; i < count; i++) {
                slot[i] = NULL;
                pivot[i - 1] = UINT64_MAX;
        }
        mnode_set_count(leaf, now);
}

void stook_mwrite_leaf(struct mwrite *write)
{
        struct mnode *leaf = write->left.node[0];
        unsigned at = write->left.at[0];

        if (write->class == MWRITE_EXACT_FIT)
                mnode_publish(leaf->wide.slot + at, write->entry);
        else
                splice(write, leaf, at, write->right.at[0]);
        if (mtree_gaps(write->tree) && write->height > 1)
                stook_mwrite_gap_up(write, 0, stook_mgap_of(write->tree, leaf, 0, write->left.bound[0],
                                                            write->right.bound[0]));
}
