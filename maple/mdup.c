/*
 * Purpose: a copy of a tree, node by node.
 *
 * Place: on mreserve.c, which gives all children of a node in one bulk allocation, right into the
 * node's entries. Nodes do not come from a prefilled sheaf. A tree does not know how many nodes it
 * has, so a walk would have to count them first, and a sheaf holds 65,534 objects at most. A copy
 * does not need what a sheaf gives: it may fail at any node, unlike a write.
 * Failure: any allocation may fail. Then all of the copy is given back. No reader has seen it, so
 *  no node waits for readers.
 */
#include <errno.h>
#include <string.h>
#include "mreserve.h"

static void drop(const struct stook_maple *tree, struct mnode *node, unsigned level)
{
        unsigned count = level ? mnode_count(node) : 0;

        for (unsigned i = 0; i < count; i++)
                drop(tree, mnode_entries(node, mtree_kind(tree, level))[i], level - 1);
        stook_mnode_free(node);
}

/* Fills @copy. On failure frees the nodes made below it, but not @copy. */
static int fill(const struct stook_maple *from, struct mnode *node, struct mnode *copy,
                unsigned level)
{
        enum mnode_kind kind = mtree_kind(from, level);
        unsigned count = mnode_count(node);
        void **children = mnode_entries(copy, kind);
        int error;

        memcpy(copy, node, sizeof(*copy));
        if (!level)
                return 0;
        error = stook_mnode_alloc_bulk(count, children);
        for (unsigned i = 0; i < count && !error; i++) {
                error = fill(from, mnode_entries(node, kind)[i], children[i], level - 1);
                if (!error)
                        continue;
                for (unsigned j = 0; j < count; j++) {
                        if (j < i)
                                drop(from, children[j], level - 1);
                        else
                                stook_mnode_free(children[j]);
                }
        }
        return error;
}

/* Both locks are held. */
static int dup(struct stook_maple *from, struct stook_maple *to)
{
        uintptr_t root = mtree_root(from);
        void *copy;
        int error;

        if (mtree_root(to) || from->flags != to->flags)
                return -EINVAL;
        if (mroot_is_node(root)) {
                error = stook_mnode_alloc_bulk(1, &copy);
                if (error)
                        return error;
                error = fill(from, mroot_node(root), copy, mroot_height(root) - 1);
                if (error) {
                        stook_mnode_free(copy);
                        return error;
                }
                root = mroot_make(copy, mroot_height(root));
        }
        mtree_set_root(to, root);
        to->wrapped = from->wrapped;
        mtree_written(to);
        return 0;
}

/* Takes the locks in the order of their addresses: another thread may copy the other way. */
STOOK_PUBLIC int stook_maple_dup(struct stook_maple *from, struct stook_maple *to)
{
        struct stook_maple *first = from < to ? from : to, *second = from < to ? to : from;
        bool entered_first, entered_second;
        int error;

        if (from == to)
                return -EINVAL;
        entered_first = stook_mtree_enter(first);
        entered_second = stook_mtree_enter(second);
        error = dup(from, to);
        stook_mtree_leave(second, entered_second);
        stook_mtree_leave(first, entered_first);
        return error;
}
