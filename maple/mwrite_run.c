/*
 * Purpose: writes that make new nodes: commits what mwrite_plan.c has planned.
 *
 * Place: last part of a write (mwrite.h).
 * Invariants:
 *  I1 nothing that readers can reach is changed before the one store that publishes the new nodes:
 *     to the root word, or to one entry. (SPLICE changes a node in place, and is for trees without
 *     RCU.)
 *  I2 without RCU a node is used again only after all of its content that stays is in a run.
 * Concurrency: the order is M1 of mnode.h (publication), M3 of mtree.h (the version), M2 of mnode.h
 *  (retirement).
 */
#include <string.h>
#include "mwrite.h"

/*
 * 16 entries of the left leaf, the new range, 16 of the right leaf. Only shorter runs take in a
 * neighbour (mwrite_plan.c I1).
 */
#define RUN_MAX 34

struct run {
        unsigned n;
        unsigned fresh, fresh_end;      /* entries from fresh to below fresh_end are new */
        uint64_t first;                 /* first key */
        uint64_t last[RUN_MAX];
        void    *entry[RUN_MAX];
        uint64_t gap[RUN_MAX];
};

struct cut {
        struct mnode *node;
        uint64_t last, gap;
};

static void add(struct run *run, uint64_t last, void *entry, uint64_t gap)
{
        run->last[run->n] = last;
        run->entry[run->n] = entry;
        run->gap[run->n++] = gap;
}

/* Entries [from, to) of a node whose last entry ends at @max. */
static void add_entries(struct run *run, struct mnode *node, enum mnode_kind kind, unsigned from,
                      unsigned to, uint64_t max)
{
        void **entries = mnode_entries(node, kind);

        for (unsigned i = from; i < to; i++)
                add(run, mnode_last(node, kind, i, max), entries[i], kind == MNODE_INNER_GAPS ?
                    node->gaps.gap[i] : 0);
}

/* The run of a level: what is kept to the left, what is new, what is kept to the right. */
static void begin_run(struct mwrite *write, unsigned level, struct run *run)
{
        enum mnode_kind kind = mtree_kind(write->tree, level);
        struct mstep *step = write->step + level;
        struct mnode *left = write->left.node[level];

        run->n = 0;
        run->first = write->left.bound[level];
        if (step->from_left)
                add_entries(run, step->from_left, kind, 0, mnode_count(step->from_left),
                          step->left_last);
        /* These entries never include the node's last one, so its end does not matter. */
        add_entries(run, left, kind, 0, write->left.at[level], UINT64_MAX);
        if (!level && write->piece_left)
                add(run, write->first - 1, left->wide.entry[write->left.at[0]], 0);
        run->fresh = run->n;
}

static void end_run(struct mwrite *write, unsigned level, struct run *run)
{
        enum mnode_kind kind = mtree_kind(write->tree, level);
        struct mstep *step = write->step + level;
        struct mnode *right = write->right.node[level];
        unsigned at = write->right.at[level], count = mnode_count(right);
        uint64_t max = write->right.bound[level];

        if (step->from_right)
                max = step->right_first - 1;
        run->fresh_end = run->n;
        if (!level && write->piece_right)
                add(run, mnode_last(right, kind, at, max), right->wide.entry[at], 0);
        add_entries(run, right, kind, at + 1, count, max);
        if (step->from_right)
                add_entries(run, step->from_right, kind, 0, mnode_count(step->from_right),
                          write->right.bound[level]);
}

static struct mnode *take(struct mwrite *write, unsigned dead_end, unsigned *reused,
                          struct mreserve *reserve)
{
        if (!mtree_rcu(write->tree) && *reused < dead_end)
                return write->dead[(*reused)++];
        return stook_mreserve_take(reserve);
}

/* A node of run entries [from, to); @first is its first key. Returns its largest gap. */
static uint64_t make_node(const struct mwrite *write, struct mnode *node, unsigned level,
                          const struct run *run, unsigned from,
                          unsigned to, uint64_t first)
{
        enum mnode_kind kind = mtree_kind(write->tree, level);
        unsigned entries = mnode_shape(kind).entries, n = to - from;
        uint64_t *pivot = mnode_pivots(node), gap = 0;
        void **entry = mnode_entries(node, kind);

        memcpy(pivot, run->last + from, (n - 1) * sizeof(*pivot));
        memset(pivot + n - 1, 0xff, (entries - n) * sizeof(*pivot));
        memcpy(entry, run->entry + from, n * sizeof(*entry));
        memset(entry + n, 0, (entries - n) * sizeof(*entry));
        if (kind == MNODE_INNER_GAPS) {
                memcpy(node->gaps.gap, run->gap + from, n * sizeof(*node->gaps.gap));
                memset(node->gaps.gap + n, 0, (entries - n) * sizeof(*node->gaps.gap));
        }
        mnode_set_count(node, n);
        if (mtree_gaps(write->tree))
                gap = stook_mgap_of(write->tree, node, level, first, run->last[to - 1]);
        return gap;
}

/*
 * Where a run is cut in two: evenly, as a rule. But a program that adds at the upper end of a node
 * will add there again, and so at the lower end. Then the other part is left as full as can be.
 */
static unsigned first_cut(const struct mwrite *write, const struct run *run, unsigned cuts,
                          struct mnode_shape shape)
{
        unsigned rest = run->n - shape.entries;
        unsigned small = rest > shape.least ? rest : shape.least;

        if (cuts == 2 && write->entry && run->n - run->fresh_end <= 1)
                return run->n - small;
        if (cuts == 2 && write->entry && run->fresh <= 1)
                return small;
        return run->n / cuts;
}

static void cut_run(struct mwrite *write, unsigned level, struct run *run, struct cut *cut,
                    unsigned *reused, struct mreserve *reserve)
{
        struct mnode_shape shape = mnode_shape(mtree_kind(write->tree, level));
        unsigned cuts = write->step[level].cuts, from = 0, to;
        uint64_t first = run->first;

        for (unsigned i = 0; i < cuts; i++, from = to) {
                to = i + 1 == cuts ? run->n :
                     i             ? from + (run->n - from) / (cuts - i)
                                   : first_cut(write, run, cuts, shape);
                cut[i].node = take(write, write->step[level].dead_end, reused, reserve);
                cut[i].last = run->last[to - 1];
                cut[i].gap = make_node(write, cut[i].node, level, run, from, to, first);
                first = cut[i].last + 1;
        }
}

static void add_cuts(struct run *run, const struct cut *cut, unsigned cuts)
{
        for (unsigned i = 0; i < cuts; i++)
                add(run, cut[i].last, cut[i].node, cut[i].gap);
}

/* The whole level is new. */
static void finish_root(struct mwrite *write, unsigned level, const struct cut *cut,
                        unsigned *reused, struct mreserve *reserve)
{
        unsigned cuts = write->step[level].cuts;
        struct mnode *root;
        struct run run;

        if (!cuts) {
                mtree_set_root(write->tree, write->word);
        } else if (cuts == 1) {
                mtree_set_root(write->tree, mroot_make(cut->node, level + 1));
        } else {
                run.n = 0;
                add_cuts(&run, cut, cuts);
                root = take(write, write->step[level].dead_end, reused, reserve);
                make_node(write, root, level + 1, &run, 0, cuts, 0);
                mtree_set_root(write->tree, mroot_make(root, level + 2));
        }
}

/* One node in the place of one. */
static void finish_pointer(struct mwrite *write, unsigned level, const struct cut *cut)
{
        enum mnode_kind kind = mtree_kind(write->tree, level + 1);
        struct mnode *above = write->left.node[level + 1];

        mnode_publish(mnode_entries(above, kind) + write->left.at[level + 1], cut->node);
        if (mtree_gaps(write->tree))
                stook_mwrite_gap_up(write, level, cut->gap);
}

/* The node above is rewritten in place, with the cuts for the children that were replaced. */
static void finish_splice(struct mwrite *write, unsigned level, struct run *run,
                          const struct cut *cut)
{
        struct mnode *above = write->left.node[level + 1];
        uint64_t gap;

        write->step[level + 1].from_left = write->step[level + 1].from_right = NULL;
        begin_run(write, level + 1, run);
        add_cuts(run, cut, write->step[level].cuts);
        end_run(write, level + 1, run);
        gap = make_node(write, above, level + 1, run, 0, run->n, run->first);
        if (mtree_gaps(write->tree))
                stook_mwrite_gap_up(write, level + 1, gap);
}

/* The subtrees between the two ways first found: the write covers all of their ranges. */
static void drop_spanned(struct mwrite *write)
{
        for (unsigned level = 1; level < write->height; level++) {
                enum mnode_kind kind = mtree_kind(write->tree, level);
                struct mspan *span = write->span + level;
                unsigned end = span->left == span->right ? span->right_at : mnode_count(span->left);

                for (unsigned i = span->left_at + 1u; i < end; i++)
                        stook_mnode_drop_subtree(write->tree, mnode_entries(span->left, kind)[i],
                                                 level - 1);
                if (span->left != span->right)
                        for (unsigned i = 0; i < span->right_at; i++)
                                stook_mnode_drop_subtree(write->tree,
                                                         mnode_entries(span->right,
                                                                     kind)[i], level - 1);
        }
}

void stook_mwrite_run(struct mwrite *write, struct mreserve *reserve)
{
        bool spanning = write->left.node[0] != write->right.node[0];
        struct cut cut[3];
        unsigned reused = 0;
        struct run run;

        if (spanning && !mtree_rcu(write->tree))
                drop_spanned(write);
        for (unsigned level = 0; level <= write->top; level++) {
                begin_run(write, level, &run);
                if (level)
                        add_cuts(&run, cut, write->step[level - 1].cuts);
                else
                        add(&run, write->last, write->entry, 0);
                end_run(write, level, &run);
                cut_run(write, level, &run, cut, &reused, reserve);
        }
        switch (write->end) {
        case MWRITE_LEAF:               /* mwrite_leaf.c */
                break;
        case MWRITE_ROOT:
                finish_root(write, write->top, cut, &reused, reserve);
                break;
        case MWRITE_POINTER:
                finish_pointer(write, write->top, cut);
                break;
        case MWRITE_SPLICE:
                finish_splice(write, write->top, &run, cut);
                break;
        }
        mtree_written(write->tree);
        if (mtree_rcu(write->tree)) {
                if (spanning)
                        drop_spanned(write);
                for (unsigned i = 0; i < write->dead_count; i++)
                        stook_mnode_retire(write->tree, write->dead[i]);
        } else {
                for (unsigned i = reused; i < write->dead_count; i++)
                        stook_mnode_free(write->dead[i]);
        }
}
