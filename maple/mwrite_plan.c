/*
 * Purpose: the class of a write, what it does on each level, and the exact number of nodes that it
 * takes from the reserve.
 *
 * Place: second part of a write (mwrite.h). It reads counts, and changes only the plan, which
 * mwrite_leaf.c and mwrite_run.c commit.
 * Invariants:
 *  I1 a node that is made has between `least` and `entries` of them in use, unless it is the root.
 *     A run that is too short takes in a neighbour, which has `least` at least. A run that is too
 *     long is cut evenly, or as mwrite_run.c says, each piece with `least` at least.
 *  I2 each replaced node is in dead[] once, after all of its content that stays was taken over.
 *     Nodes and subtrees between the two ways first found are not in dead[], but in span[].
 */
#include "mwrite.h"

unsigned stook_mwrite_leaf_count(const struct mwrite *write)
{
        return write->left.at[0] + write->piece_left + 1u + write->piece_right +
               mnode_count(write->right.node[0]) - 1 - write->right.at[0];
}

/* With RCU an append is one to the gap at the end of the leaf, of which some stays. */
static bool appends(const struct mwrite *write)
{
        const struct mside *left = &write->left;
        struct mnode *leaf = left->node[0];

        if (left->at[0] + 1u != mnode_count(leaf))
                return false;
        return !mtree_rcu(write->tree) ||
               (write->piece_right && !leaf->wide.entry[left->at[0]]);
}

static enum mwrite_class classify(const struct mwrite *write, unsigned count)
{
        const struct mside *left = &write->left, *right = &write->right;
        struct mnode *leaf = left->node[0];
        bool one_entry = leaf == right->node[0] && left->at[0] == right->at[0];
        bool exact = one_entry && !write->piece_left && !write->piece_right;

        if (exact && leaf->wide.entry[left->at[0]] == write->entry)
                return MWRITE_NOTHING;
        if (write->rootless)
                return MWRITE_ROOT_STORE;
        if (exact && (write->entry || write->height + mnode_count(leaf) > 2))
                return MWRITE_EXACT_FIT;
        if (write->first == 0 && write->last == UINT64_MAX)
                return MWRITE_NEW_ROOT;
        if (leaf != right->node[0])
                return MWRITE_SPANNING;
        if (count > MNODE_ENTRIES)
                return MWRITE_SPLIT;
        /* Two ranges may fit the root word. */
        if (count < (write->height > 1 ? mnode_shape(MNODE_LEAF).least : 3u))
                return MWRITE_REBALANCE;
        if (appends(write))
                return count == mnode_count(leaf) ? MWRITE_SAME_COUNT : MWRITE_APPEND;
        if (mtree_rcu(write->tree))
                return MWRITE_NODE;
        return count == mnode_count(leaf) ? MWRITE_SAME_COUNT : MWRITE_NODE;
}

static void bury(struct mwrite *write, struct mnode *node)
{
        write->dead[write->dead_count++] = node;
}

/* The nodes of both ways on a level: one or two. */
static void bury_ways(struct mwrite *write, unsigned level)
{
        bury(write, write->left.node[level]);
        if (write->right.node[level] != write->left.node[level])
                bury(write, write->right.node[level]);
}

/*
 * Before take_in_* leaves the nodes of the left or right way above @level: all children of these
 * nodes are replaced, so the nodes are, too.
 */
static void take_in_left(struct mwrite *write, unsigned level, unsigned *count)
{
        struct mside *left = &write->left;
        struct mstep *step = write->step + level;
        uint64_t bound;

        for (unsigned up = level + 1; !left->at[up]; up++)
                if (left->node[up] != write->right.node[up])
                        bury(write, left->node[up]);
        step->from_left = stook_mwrite_left_neighbour(write, level, true, &bound);
        step->left_last = left->bound[level] - 1;
        left->bound[level] = bound;
        bury(write, step->from_left);
        *count += mnode_count(step->from_left);
}

static void take_in_right(struct mwrite *write, unsigned level, unsigned *count)
{
        struct mside *right = &write->right;
        struct mstep *step = write->step + level;
        uint64_t bound;

        for (unsigned up = level + 1; right->at[up] + 1u == mnode_count(right->node[up]); up++)
                if (right->node[up] != write->left.node[up])
                        bury(write, right->node[up]);
        step->from_right = stook_mwrite_right_neighbour(write, level, true, &bound);
        step->right_first = right->bound[level] + 1;
        right->bound[level] = bound;
        bury(write, step->from_right);
        *count += mnode_count(step->from_right);
}

/*
 * The run is too short. It takes in a sibling on either side, else the neighbour below another
 * parent. If there is none, this level is the root.
 */
static void lengthen(struct mwrite *write, unsigned level, unsigned *count)
{
        struct mside *left = &write->left, *right = &write->right;
        uint64_t bound;

        if (level + 1 == write->height)
                return;
        if (left->at[level + 1])
                take_in_left(write, level, count);
        else if (right->at[level + 1] + 1u < mnode_count(right->node[level + 1]))
                take_in_right(write, level, count);
        else if (stook_mwrite_left_neighbour(write, level, false, &bound))
                take_in_left(write, level, count);
        else if (stook_mwrite_right_neighbour(write, level, false, &bound))
                take_in_right(write, level, count);
}

/*
 * The run is too long for one node. It takes in a sibling if both nodes then have room. The
 * left one comes first: a program that fills a tree upwards gets fuller nodes that way.
 */
static void share(struct mwrite *write, unsigned level, unsigned *count)
{
        enum mnode_kind kind = mtree_kind(write->tree, level);
        unsigned most = mnode_shape(kind).entries * 2u - 2, at = write->left.at[level + 1];
        struct mnode *above = write->left.node[level + 1];
        void **siblings = mnode_entries(above, mtree_kind(write->tree, level + 1));

        if (at && *count + mnode_count(siblings[at - 1]) <= most)
                take_in_left(write, level, count);
        else if (at + 1 < mnode_count(above) && *count + mnode_count(siblings[at + 1]) <= most)
                take_in_right(write, level, count);
}

static bool whole_level(const struct mwrite *write, unsigned level)
{
        for (unsigned up = level + 1; up < write->height; up++)
                if (write->left.at[up] ||
                    write->right.at[up] + 1u < mnode_count(write->right.node[up]))
                        return false;
        return true;
}

/*
 * Counts what the nodes made on a level take from the reserve. Without RCU they take replaced nodes
 * first.
 */
static void charge(struct mwrite *write, unsigned made, unsigned *reused)
{
        unsigned free = mtree_rcu(write->tree) ? 0 : write->dead_count - *reused;
        unsigned again = made < free ? made : free;

        *reused += again;
        write->nodes += made - again;
}

/* The ranges that are left fit the root word: there is none, or one for key 0 alone. */
static bool makes_word(struct mwrite *write, unsigned count)
{
        struct mnode *first = write->left.node[0], *last = write->right.node[0];
        unsigned behind = write->right.at[0] + !write->piece_right;

        write->word = 0;
        if (count == 1)
                return !write->entry;
        if (count != 2)
                return false;
        if (write->entry) {
                write->word = (uintptr_t)write->entry;
                return !write->last && !last->wide.entry[behind] && mroot_can_hold(write->entry);
        }
        write->word = (uintptr_t)first->wide.entry[0];
        return write->first == 1 && mroot_can_hold(first->wide.entry[0]);
}

/* The write is within one leaf, and a leaf or the root word is what becomes of it. */
static bool stays_leaf(const struct mwrite *write, unsigned count)
{
        return write->left.node[0] == write->right.node[0] && count <= MNODE_ENTRIES &&
               (write->height == 1 || count >= mnode_shape(MNODE_LEAF).least);
}

static bool copies(const struct mwrite *write)
{
        return mtree_rcu(write->tree) && write->class != MWRITE_APPEND;
}

static void plan_leaf(struct mwrite *write, unsigned count)
{
        write->end = MWRITE_LEAF;
        write->top = 0;
        write->becomes_word = false;
        if (write->class == MWRITE_EXACT_FIT)
                return;
        write->becomes_word = write->height == 1 && makes_word(write, count);
        write->nodes = !write->becomes_word && (write->rootless || copies(write));
}

/* Before lengthen() and share() move the ways: what lies between them is freed by these. */
static void note_spans(struct mwrite *write)
{
        const struct mside *left = &write->left, *right = &write->right;

        for (unsigned level = 0; level < write->height && left->node[0] != right->node[0]; level++)
                write->span[level] = (struct mspan){
                        left->node[level], right->node[level], left->at[level], right->at[level],
                };
}

/* Do both ways go through one node on this level? */
static bool meet_at(const struct mwrite *write, unsigned level)
{
        return write->left.node[level] == write->right.node[level];
}

/* ROOT: the nodes of this level get a new root above them, or are it; all above are replaced. */
static void plan_root(struct mwrite *write, unsigned level, unsigned count, unsigned *reused)
{
        struct mstep *step = write->step + level;

        for (unsigned up = level + 1; up < write->height; up++)
                bury_ways(write, up);
        write->end = MWRITE_ROOT;
        step->dead_end = write->dead_count;
        if (!level && makes_word(write, count))
                step->cuts = 0;
        charge(write, step->cuts + (step->cuts > 1), reused);
}

/* POINTER: one node takes the place of one, below one entry of the level above. */
static bool ends_by_pointer(const struct mwrite *write, unsigned level)
{
        return write->step[level].cuts == 1 && meet_at(write, level + 1) &&
               write->left.at[level + 1] == write->right.at[level + 1];
}

/* SPLICE: the one node above takes the new nodes in place, and then has @count entries. */
static bool ends_by_splice(const struct mwrite *write, unsigned above, unsigned count)
{
        struct mnode_shape shape = mnode_shape(mtree_kind(write->tree, above));

        return !mtree_rcu(write->tree) && meet_at(write, above) && count <= shape.entries &&
               (count >= shape.least || above + 1 == write->height);
}

/* From the leaves up: the run of each level, until one of the three ends of mwrite.h is reached. */
static void plan_run(struct mwrite *write, unsigned count)
{
        unsigned reused = 0;

        write->dead_count = 0;
        note_spans(write);
        for (unsigned level = 0;; level++) {
                struct mnode_shape shape = mnode_shape(mtree_kind(write->tree, level));
                struct mstep *step = write->step + level;

                step->from_left = step->from_right = NULL;
                bury_ways(write, level);
                if (count < shape.least)
                        lengthen(write, level, &count);
                else if (count > shape.entries && meet_at(write, level) &&
                         level + 1 < write->height)
                        share(write, level, &count);
                step->cuts = (unsigned char)((count + shape.entries - 1) / shape.entries);
                write->top = level;
                if (whole_level(write, level)) {
                        plan_root(write, level, count, &reused);
                        return;
                }
                step->dead_end = write->dead_count;
                charge(write, step->cuts, &reused);
                if (ends_by_pointer(write, level)) {
                        write->end = MWRITE_POINTER;
                        return;
                }
                count = write->left.at[level + 1] + step->cuts +
                        mnode_count(write->right.node[level + 1]) - 1u -
                        write->right.at[level + 1];
                if (ends_by_splice(write, level + 1, count)) {
                        write->end = MWRITE_SPLICE;
                        return;
                }
        }
}

void stook_mwrite_plan(struct mwrite *write)
{
        unsigned count = stook_mwrite_leaf_count(write);

        write->nodes = 0;
        write->class = classify(write, count);
        if (write->class == MWRITE_NOTHING)
                return;
        if (MTREE_LIKELY(write->class == MWRITE_EXACT_FIT || stays_leaf(write, count)))
                plan_leaf(write, count);
        else
                plan_run(write, count);
}
