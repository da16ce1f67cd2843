/*
 * Purpose: a tree's own lock, and the beginning and end of a tree's life.
 *
 * Concurrency: holder is the address of a thread-local byte, or NULL. Only the holder stores its
 *  own address and takes it away again. So a thread that compares it with its own address gets an
 *  exact answer, whatever other threads do at the same time.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "mtree.h"

static __thread char self;
__thread unsigned stook_mtree_locked;

static bool has_lock(const struct stook_maple *tree)
{
        return !(tree->flags & STOOK_MAPLE_EXTERNAL_LOCK);
}

static bool held(const struct stook_maple *tree)
{
        return __atomic_load_n(&tree->holder, __ATOMIC_RELAXED) == &self;
}

STOOK_PUBLIC void stook_maple_lock(struct stook_maple *tree)
{
        if (!has_lock(tree))
                return;
        pthread_mutex_lock(&tree->lock);
        __atomic_store_n(&tree->holder, &self, __ATOMIC_RELAXED);
        stook_mtree_locked++;
}

STOOK_PUBLIC void stook_maple_unlock(struct stook_maple *tree)
{
        if (!has_lock(tree))
                return;
        stook_mtree_check_holder(tree);
        __atomic_store_n(&tree->holder, NULL, __ATOMIC_RELAXED);
        stook_mtree_locked--;
        pthread_mutex_unlock(&tree->lock);
}

bool stook_mtree_enter(struct stook_maple *tree)
{
        if (!has_lock(tree) || held(tree))
                return false;
        stook_maple_lock(tree);
        return true;
}

void stook_mtree_leave(struct stook_maple *tree, bool entered)
{
        if (entered)
                stook_maple_unlock(tree);
}

bool stook_mtree_enter_reader(struct stook_maple *tree)
{
        return !mtree_rcu(tree) && stook_mtree_enter(tree);
}

void stook_mtree_check_holder(const struct stook_maple *tree)
{
#ifndef NDEBUG
        static const char text[] = "stook: maple tree: a write without the tree's lock held\n";

        if (!has_lock(tree) || held(tree))
                return;
        if (write(2, text, sizeof(text) - 1) < 0)
                abort();
        abort();
#else
        (void)tree;
#endif
}

STOOK_PUBLIC int stook_maple_init(struct stook_maple *tree, unsigned flags)
{
        if (flags & ~MTREE_FLAGS)
                return -EINVAL;
        *tree = (struct stook_maple)STOOK_MAPLE_INIT(flags);
        return 0;
}

STOOK_PUBLIC void stook_maple_destroy(struct stook_maple *tree)
{
        bool entered = stook_mtree_enter(tree);
        uintptr_t root = mtree_root(tree);

        mtree_set_root(tree, 0);
        mtree_written(tree);
        tree->wrapped = 0;
        stook_mnode_retire_deferred(tree);
        if (mroot_is_node(root))
                stook_mnode_drop_subtree(tree, mroot_node(root), mroot_height(root) - 1);
        stook_mnode_retire_rest(tree);
        stook_mtree_leave(tree, entered);
}

STOOK_PUBLIC bool stook_maple_empty(const struct stook_maple *tree)
{
        return !mtree_root(tree);
}

STOOK_PUBLIC unsigned stook_maple_height(const struct stook_maple *tree)
{
        uintptr_t root = mtree_root(tree);

        return mroot_is_node(root) ? mroot_height(root) : 0;
}
