/*
 * Purpose: a tree's lock, the beginning and end of a tree's life, and RCU switched on and off.
 *
 * Concurrency: holder is the address of a thread-local byte, or NULL. Only the holder stores its
 *  own address and takes it away again. So a thread that compares it with its own address gets an
 *  exact answer, whatever other threads do at the same time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "mreserve.h"

static __thread char self;
__thread unsigned stook_mtree_locked;

/* Zeros are an initialized mutex in each C library that Stook is built with: tests/maple. */
_Static_assert(sizeof(pthread_mutex_t) <= sizeof(((struct stook_maple *)0)->lock) &&
               _Alignof(pthread_mutex_t) <= _Alignof(uint64_t), "a mutex fits");

static pthread_mutex_t *mutex_of(struct stook_maple *tree)
{
        return (pthread_mutex_t *)(void *)tree->lock;
}

static bool held(const struct stook_maple *tree)
{
        return __atomic_load_n(&tree->holder, __ATOMIC_RELAXED) == &self;
}

STOOK_PUBLIC void stook_maple_lock(struct stook_maple *tree)
{
        if (!mtree_own_lock(tree))
                return;
        pthread_mutex_lock(mutex_of(tree));
        __atomic_store_n(&tree->holder, &self, __ATOMIC_RELAXED);
        stook_mtree_locked++;
}

STOOK_PUBLIC void stook_maple_unlock(struct stook_maple *tree)
{
        if (!mtree_own_lock(tree))
                return;
        stook_mtree_check_holder(tree);
        __atomic_store_n(&tree->holder, NULL, __ATOMIC_RELAXED);
        stook_mtree_locked--;
        pthread_mutex_unlock(mutex_of(tree));
}

bool stook_mtree_enter(struct stook_maple *tree)
{
        if (!mtree_own_lock(tree) || held(tree))
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

static bool allowed(const struct stook_maple *tree)
{
        if (!mtree_own_lock(tree))
                return !tree->held || tree->held(tree->external);
#ifndef NDEBUG
        return held(tree);
#else
        return true;
#endif
}

void stook_mtree_check_holder(const struct stook_maple *tree)
{
        static const char text[] = "stook: maple tree: a write without the tree's lock held\n";

        if (MTREE_LIKELY(allowed(tree)))
                return;
        if (write(2, text, sizeof(text) - 1) < 0)
                abort();
        abort();
}

STOOK_PUBLIC int stook_maple_set_external_lock(struct stook_maple *tree,
                                               bool (*held_by_caller)(const void *lock),
                                               const void *lock)
{
        if (mtree_own_lock(tree))
                return -EINVAL;
        tree->held = held_by_caller;
        tree->external = lock;
        return 0;
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

/*
 * The version changes, so that no cursor that was used under the lock trusts its leaf. A cursor of
 * a reader would: its holder paused it.
 */
STOOK_PUBLIC int stook_maple_set_rcu(struct stook_maple *tree, bool on)
{
        bool entered = stook_mtree_enter(tree);
        unsigned others = mtree_flags(tree) & ~STOOK_MAPLE_RCU;
        int error = 0;

        stook_mtree_check_holder(tree);
        if (on)
                error = stook_mnode_can_retire();
        if (!error) {
                __atomic_store_n(&tree->flags, others | (on ? STOOK_MAPLE_RCU : 0),
                                 __ATOMIC_RELEASE);
                mtree_written(tree);
        }
        stook_mtree_leave(tree, entered);
        return error;
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
