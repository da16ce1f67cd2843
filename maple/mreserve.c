/*
 * Purpose: where nodes come from and go to: one cache for all trees of the process.
 *
 * Place: the only file of the maple tree that calls libstook.
 * Concurrency: the first thread that needs the cache makes it. M1: its pointer is published by a
 *  compare-and-swap with release and read with acquire.
 * Failure: in RCU trees stook_cache_free_rcu() may have no place to note a node in. Nodes have no
 *  room for a hidden word of the cache: they would be 512 bytes then. But a dead node has its head,
 *  so it goes to the tree's list of deferred nodes. It is offered again when the tree is next
 *  written to, and when the tree is destroyed.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stook/cache.h>
#include <stook/rcu.h>
#include <stook/sheaf.h>
#include "mreserve.h"

static struct stook_cache *node_cache;          /* atomic M1 */
/* atomic: nodes can be freed by RCU; stays 1 once it is */
static int rcu_chosen;

/* NULL: no memory. */
static struct stook_cache *cache(void)
{
        struct stook_cache *made, *found = __atomic_load_n(&node_cache, __ATOMIC_ACQUIRE);
        /*
         * 32 as in the kernel: the worst write of a tree of height 10 fits a sheaf of the ordinary
         * kind.
         */
        struct stook_cache_args args = {
                .args_size = sizeof(args), .align = MNODE_BYTES, .sheaf_capacity = 32,
        };

        if (MTREE_LIKELY(found != NULL))
                return found;
        made = stook_cache_create("maple_node", MNODE_BYTES, &args);
        if (!made)
                return NULL;
        if (__atomic_compare_exchange_n(&node_cache, &found, made, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
                return made;
        stook_cache_destroy(made);
        return found;
}

int stook_mreserve_fill(struct mreserve *reserve, unsigned n)
{
        unsigned have = stook_mreserve_left(reserve);
        struct stook_cache *from;
        int saved = errno;

        if (have >= n)
                return 0;
        from = cache();
        if (!from)
                goto none;
        n -= (unsigned)reserve->listed;
        have -= (unsigned)reserve->listed;
        if (n - have == 1 && !reserve->one) {
                reserve->one = stook_cache_alloc(from);
                if (!reserve->one)
                        goto none;
                return 0;
        }
        if (reserve->one)
                n--;
        if (reserve->sheaf)
                return stook_sheaf_refill(from, 0, &reserve->sheaf, n) ? -ENOMEM : 0;
        reserve->sheaf = stook_sheaf_prefill(from, 0, n);
        if (reserve->sheaf)
                return 0;
none:
        errno = saved;
        return -ENOMEM;
}

static struct mnode *pop(struct mreserve *reserve)
{
        struct mnode *node = reserve->list;

        reserve->list = (void *)(uintptr_t)node->head;
        reserve->listed--;
        return node;
}

struct mnode *stook_mreserve_take(struct mreserve *reserve)
{
        struct mnode *node = reserve->one;

        if (node) {
                reserve->one = NULL;
                return node;
        }
        if (reserve->listed)
                return pop(reserve);
        return stook_sheaf_alloc(node_cache, reserve->sheaf);
}

unsigned stook_mreserve_left(const struct mreserve *reserve)
{
        unsigned in_sheaf = 0;

        if (reserve->sheaf)
                in_sheaf = (unsigned)stook_sheaf_available(reserve->sheaf);
        in_sheaf += !!reserve->one;
        return reserve->listed > UINT_MAX - in_sheaf ? UINT_MAX
                                                     : in_sheaf + (unsigned)reserve->listed;
}

void stook_mreserve_return(struct mreserve *reserve)
{
        if (reserve->one)
                stook_cache_free(node_cache, reserve->one);
        if (reserve->sheaf)
                stook_sheaf_return(node_cache, reserve->sheaf);
        reserve->sheaf = NULL;
        reserve->one = NULL;
}

int stook_mreserve_list(struct mreserve *reserve, uint64_t n)
{
        uint64_t before = reserve->listed;
        void *nodes[64];

        while (reserve->listed < n) {
                uint64_t rest = n - reserve->listed, room = sizeof(nodes) / sizeof(*nodes);
                unsigned some = (unsigned)(rest < room ? rest : room);

                if (stook_mnode_alloc_bulk(some, nodes)) {
                        stook_mreserve_unlist(reserve, before);
                        return -ENOMEM;
                }
                for (unsigned i = 0; i < some; i++) {
                        ((struct mnode *)nodes[i])->head = (uintptr_t)reserve->list;
                        reserve->list = nodes[i];
                }
                reserve->listed += some;
        }
        return 0;
}

void stook_mreserve_unlist(struct mreserve *reserve, uint64_t keep)
{
        while (reserve->listed > keep)
                stook_cache_free(node_cache, pop(reserve));
}

int stook_mnode_alloc_bulk(unsigned n, void **nodes)
{
        struct stook_cache *from = cache();

        return !from || stook_cache_alloc_bulk(from, 0, n, nodes) ? -ENOMEM : 0;
}

void stook_mnode_free(struct mnode *node)
{
        stook_cache_free(node_cache, node);
}

int stook_mnode_can_retire(void)
{
        struct mreserve probe = { .sheaf = NULL };
        int error;

        if (MTREE_LIKELY(__atomic_load_n(&rcu_chosen, __ATOMIC_RELAXED)))
                return 0;
        if (stook_mreserve_fill(&probe, 1))
                return -ENOMEM;
        error = stook_cache_free_rcu(node_cache, probe.one);
        if (error)
                stook_cache_free(node_cache, probe.one);
        if (error == -ENOTSUP)
                return error;
        __atomic_store_n(&rcu_chosen, 1, __ATOMIC_RELAXED);
        return 0;
}

static void defer(struct stook_maple *tree, struct mnode *node)
{
        __atomic_store_n(&node->head, (uintptr_t)tree->deferred | MNODE_DEAD, __ATOMIC_RELEASE);
        tree->deferred = node;
}

void stook_mnode_retire(struct stook_maple *tree, struct mnode *node)
{
        __atomic_store_n(&node->head, MNODE_DEAD, __ATOMIC_RELEASE);
        if (stook_cache_free_rcu(node_cache, node))
                defer(tree, node);
}

void stook_mnode_retire_deferred(struct stook_maple *tree)
{
        struct mnode *node = tree->deferred;

        tree->deferred = NULL;
        while (node) {
                struct mnode *next = (struct mnode *)(uintptr_t)(node->head & ~MNODE_DEAD);

                stook_mnode_retire(tree, node);
                node = next;
        }
}

void stook_mnode_retire_rest(struct stook_maple *tree)
{
        for (int tries = 0; tree->deferred && tries < 3; tries++) {
                stook_cache_rcu_barrier(node_cache);
                stook_mnode_retire_deferred(tree);
        }
}

void stook_mnode_drop_subtree(struct stook_maple *tree, struct mnode *node, unsigned level)
{
        enum mnode_kind kind = mtree_kind(tree, level);
        unsigned count = mnode_count(node);

        if (level)
                for (unsigned i = 0; i < count; i++)
                        stook_mnode_drop_subtree(tree, mnode_entries(node, kind)[i], level - 1);
        if (mtree_rcu(tree))
                stook_mnode_retire(tree, node);
        else
                stook_mnode_free(node);
}
