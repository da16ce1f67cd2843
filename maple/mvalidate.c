/*
 * Purpose: checks every node of a tree, and reports what is wrong.
 *
 * Place: for tests and for people; no other file calls it. The tree's lock is held. It checks
 *  - the invariants of mnode.h (I1 to I4),
 *  - the tracked gaps,
 *  - the depth of leaves: the walk goes down by the height, so a leaf that is too high is read as
 *    an inner node, and fails,
 *  - that no node is dead.
 */
#include <inttypes.h>
#include <stdarg.h>
#include "mtree.h"

struct check {
        const struct stook_maple *tree;
        int      faults;
        bool     after_gap;             /* the range before this one is a gap */
        size_t   nodes;
};

static __attribute__((format(printf, 3, 4)))
void fault(struct check *check, const struct mnode *node, const char *format, ...)
{
        va_list args;

        check->faults++;
        va_start(args, format);
        fprintf(stderr, "stook: maple tree %p: node %p: ", (const void *)check->tree,
                (const void *)node);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
}

/* Fill, order and padding. False: the entries must not be followed. */
static bool check_shape(struct check *check, struct mnode *node, unsigned level, uint64_t min,
                        uint64_t max, bool root)
{
        enum mnode_kind kind = mtree_kind(check->tree, level);
        struct mnode_shape shape = mnode_shape(kind);
        unsigned count = mnode_count(node), least = !root ? shape.least : level ? 2 : 1;
        const uint64_t *pivot = mnode_pivots(node);
        int before = check->faults;

        if ((uintptr_t)node % MNODE_BYTES)
                fault(check, node, "not aligned");
        if (node->head & MNODE_DEAD)
                fault(check, node, "dead");
        if (count < least || count > shape.entries) {
                fault(check, node, "%u entries on level %u, not %u to %u", count, level, least,
                      shape.entries);
                return false;
        }
        for (unsigned i = 0; i + 1 < count; i++)
                if (pivot[i] < (i ? pivot[i - 1] + 1 : min) || pivot[i] >= max)
                        fault(check, node,
                              "pivot %u is %" PRIu64 ", out of order in [%" PRIu64 ", %" PRIu64 "]",
                              i, pivot[i], min, max);
        for (unsigned i = count - 1; i + 1 < shape.entries; i++)
                if (pivot[i] != UINT64_MAX)
                        fault(check, node, "unused pivot %u is %" PRIu64, i, pivot[i]);
        for (unsigned i = count; i < shape.entries; i++)
                if (mnode_entries(node, kind)[i])
                        fault(check, node, "unused entry %u is not NULL", i);
        return check->faults == before;
}

static void check_node(struct check *check, struct mnode *node, unsigned level, uint64_t min,
                       uint64_t max, bool root)
{
        enum mnode_kind kind = mtree_kind(check->tree, level);
        unsigned count = mnode_count(node);

        check->nodes++;
        if (!check_shape(check, node, level, min, max, root))
                return;
        for (unsigned i = 0; i < count; i++) {
                void *entry = mnode_entries(node, kind)[i];
                uint64_t first = mnode_first(node, i, min), last = mnode_last(node, kind, i, max);

                if (!level) {
                        if (!entry && check->after_gap)
                                fault(check, node, "two gaps meet at %" PRIu64, first);
                        check->after_gap = !entry;
                        if (mtree_reserved(entry))
                                fault(check, node, "reserved entry at %u", i);
                        continue;
                }
                if (!entry) {
                        fault(check, node, "no child at %u", i);
                        continue;
                }
                check_node(check, entry, level - 1, first, last, false);
                if (kind == MNODE_INNER_GAPS &&
                    node->gaps.gap[i] != stook_mgap_of(check->tree, entry, level - 1, first, last))
                        fault(check, node, "gap %u is %" PRIu64 ", not %" PRIu64, i,
                              node->gaps.gap[i],
                              stook_mgap_of(check->tree, entry, level - 1, first, last));
        }
}

static struct check walk(struct stook_maple *tree)
{
        struct check check = { .tree = tree };
        bool entered = stook_mtree_enter(tree);
        uintptr_t root = mtree_root(tree);

        if (mroot_is_node(root)) {
                if (!mroot_height(root) || mroot_height(root) > MNODE_LEVELS)
                        fault(&check, mroot_node(root), "height %u", mroot_height(root));
                else
                        check_node(&check, mroot_node(root), mroot_height(root) - 1, 0, UINT64_MAX,
                                   true);
        }
        stook_mtree_leave(tree, entered);
        return check;
}

STOOK_PUBLIC int stook_maple_validate(struct stook_maple *tree)
{
        return walk(tree).faults;
}

STOOK_PUBLIC size_t stook_maple_nodes(struct stook_maple *tree)
{
        return walk(tree).nodes;
}
