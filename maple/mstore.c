/*
 * Purpose: the simple calls that write: store, insert, erase.
 *
 * Place: the upper end of a write (mwrite.h), for trees with their own lock and others.
 */
#include <errno.h>
#include "mwrite.h"

int stook_mwrite_prepare(struct mwrite *write, struct stook_maple *tree, uint64_t first,
                         uint64_t last, void *entry, enum mwrite_wish wish)
{
        int error = 0;

        stook_mtree_check_holder(tree);
        if (last < first || mtree_reserved(entry))
                return -EINVAL;
        if (mtree_rcu(tree))
                error = stook_mnode_can_retire();
        if (error)
                return error;
        write->tree = tree;
        write->first = first;
        write->last = last;
        write->entry = entry;
        error = stook_mwrite_locate(write, wish);
        if (error)
                return error;
        stook_mwrite_plan(write);
        return 0;
}

void stook_mwrite_commit(struct mwrite *write, struct mreserve *reserve)
{
        struct stook_maple *tree = write->tree;

        if (write->class == MWRITE_NOTHING)
                return;
        if (MTREE_UNLIKELY(tree->deferred != NULL))
                stook_mnode_retire_deferred(tree);
        if (write->end == MWRITE_LEAF)
                stook_mwrite_leaf(write, reserve);
        else
                stook_mwrite_run(write, reserve);
}

/* Commits what was prepared. The caller holds the lock. */
static int finish(struct mwrite *write)
{
        struct mreserve reserve = { .sheaf = NULL };
        int error;

        if (write->nodes) {
                error = stook_mreserve_fill(&reserve, write->nodes);
                if (error)
                        return error;
        }
        stook_mwrite_commit(write, &reserve);
        if (write->nodes)
                stook_mreserve_return(&reserve);
        return 0;
}

static int store(struct stook_maple *tree, uint64_t first, uint64_t last, void *entry,
                 enum mwrite_wish wish)
{
        bool entered = stook_mtree_enter(tree);
        struct mwrite write;
        int error = stook_mwrite_prepare(&write, tree, first, last, entry, wish);

        if (!error)
                error = finish(&write);
        stook_mtree_leave(tree, entered);
        return error;
}

STOOK_PUBLIC int stook_maple_store(struct stook_maple *tree, uint64_t first, uint64_t last,
                                   void *entry)
{
        return store(tree, first, last, entry, MWRITE_STORE);
}

STOOK_PUBLIC int stook_maple_insert(struct stook_maple *tree, uint64_t first, uint64_t last,
                                    void *entry)
{
        return entry ? store(tree, first, last, entry, MWRITE_INSERT) : -EINVAL;
}

STOOK_PUBLIC int stook_maple_erase(struct stook_maple *tree, uint64_t key, void **old)
{
        bool entered = stook_mtree_enter(tree);
        int error = -ENOENT;
        struct mwrite write;

        if (tree->root)
                error = stook_mwrite_prepare(&write, tree, key, key, NULL, MWRITE_ERASE);
        if (!error)
                error = finish(&write);
        stook_mtree_leave(tree, entered);
        if (!error && old)
                *old = write.old;
        return error;
}
