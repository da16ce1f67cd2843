/*
 * Purpose: writes within one leaf, and those that make the first leaf or leave only a root word.
 * Most writes are of this kind. The leaf is changed in place (0 nodes). With RCU, and in a tree
 * that had no node, a changed copy takes its place (1 node). With RCU an append is done in place,
 * too.
 *
 * Place: last part of a write (mwrite.h).
 * Concurrency: with RCU there are two changes in place: that of an entry, by one store (M1), for an
 *  exact fit; and an append, M5 of mnode.h. A copy is published by one store, too (M1). Then comes
 *  the version, M3 of mtree.h. Then the leaf that the copy replaces is retired, M2.
 */
#include <string.h>
#include "mwrite.h"

void stook_mwrite_gap_up(struct mwrite *write, unsigned level, uint64_t gap)
{
        while (++level < write->height) {
                struct mnode *node = write->left.node[level];
                uint64_t *gaps = node->gaps.gap, old, others = 0;
                unsigned count = mnode_count(node), at = write->left.at[level];

                old = gaps[at];
                if (old == gap)
                        return;
                gaps[at] = 0;
                for (unsigned i = 0; i < count; i++)
                        others = gaps[i] > others ? gaps[i] : others;
                gaps[at] = gap;
                if (others >= old && others >= gap)
                        return;
                gap = others > gap ? others : gap;
        }
}

/*
 * Makes @now what @leaf becomes: the new range and the pieces beside it stand where entries @from
 * to @to were. @now may be @leaf. Else all of it is read from @leaf, so that no load waits for a
 * store just made.
 */
static void splice(const struct mwrite *write, const struct mnode *leaf, struct mnode *now,
                   unsigned from, unsigned to)
{
        void *left_entry = leaf->wide.entry[from], *right_entry = leaf->wide.entry[to];
        unsigned count = mnode_count(leaf), n = write->piece_left + 1u + write->piece_right;
        unsigned tail = count - 1 - to, new_count = from + n + tail, i = from;
        uint64_t old_last = tail ? leaf->wide.pivot[to] : UINT64_MAX;
        uint64_t *pivot = now->wide.pivot;
        void **entry = now->wide.entry;

        if (now != leaf)
                mnode_copy(now, leaf);
        if (n != to + 1 - from && tail) {
                memmove(entry + from + n, leaf->wide.entry + to + 1, tail * sizeof(*entry));
                memmove(pivot + from + n, leaf->wide.pivot + to + 1, (tail - 1) * sizeof(*pivot));
        }
        if (write->piece_left) {
                pivot[i] = write->first - 1;
                entry[i++] = left_entry;
        }
        entry[i] = write->entry;
        if (write->piece_right) {
                pivot[i++] = write->last;
                entry[i] = right_entry;
        }
        if (tail)
                pivot[i] = old_last;
        for (i = new_count; i < count; i++) {
                entry[i] = NULL;
                pivot[i - 1] = UINT64_MAX;
        }
        mnode_set_count(now, new_count);
}

/*
 * M5 of mnode.h. The new range, and a gap before it, go into the gap at the end of the leaf. The
 * entries from @at on are NULL, so all of it stays a gap until the last store. Each pivot is stored
 * before those above it, and before the entry whose end it is.
 */
static void append(const struct mwrite *write, struct mnode *leaf, unsigned at)
{
        uint64_t *pivot = leaf->wide.pivot;

        if (write->piece_left)
                __atomic_store_n(pivot + at++, write->first - 1, __ATOMIC_RELEASE);
        __atomic_store_n(pivot + at, write->last, __ATOMIC_RELEASE);
        mnode_publish(leaf->wide.entry + at, write->entry);
        mnode_set_count(leaf, at + 2);
}

/* The root, or the entry of the parent, points to @now. */
static void link_leaf(struct mwrite *write, struct mnode *now)
{
        struct mnode *above = write->left.node[1];

        if (write->height == 1)
                mtree_set_root(write->tree, mroot_make(now, 1));
        else
                mnode_publish(mnode_entries(above, mtree_kind(write->tree, 1)) + write->left.at[1],
                              now);
}

void stook_mwrite_leaf(struct mwrite *write, struct mreserve *reserve)
{
        struct mnode *leaf = write->left.node[0], *now = leaf;
        unsigned at = write->left.at[0];

        if (write->class == MWRITE_EXACT_FIT) {
                mnode_publish(leaf->wide.entry + at, write->entry);
        } else if (write->becomes_word) {
                now = NULL;
                mtree_set_root(write->tree, write->word);
        } else if (write->class == MWRITE_APPEND && mtree_rcu(write->tree)) {
                append(write, leaf, at);
        } else {
                if (write->nodes)
                        now = stook_mreserve_take(reserve);
                splice(write, leaf, now, at, write->right.at[0]);
                if (now != leaf)
                        link_leaf(write, now);
        }
        if (mtree_gaps(write->tree) && write->height > 1)
                stook_mwrite_gap_up(write, 0,
                                    stook_mgap_of(write->tree, now, 0, write->left.bound[0],
                                                            write->right.bound[0]));
        mtree_written(write->tree);
        if (now == leaf || write->rootless)
                return;
        if (mtree_rcu(write->tree))
                stook_mnode_retire(write->tree, leaf);
        else
                stook_mnode_free(leaf);
}
