/*
 * Purpose: what tests on a made-up machine of two nodes have in common. They run as on a node, free
 * there, and look where objects are. Run with STOOK_TOPOLOGY=nodes=2:slots=8.
 */
#ifndef UNIT_HOME_TWO_NODES_H
#define UNIT_HOME_TWO_NODES_H

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "cache/cache.h"
#include "os/os.h"
#include "slot/slot_hot.h"
#include "home/home.h"

#define CAPACITY 64
#define MANY     1000

static bool locked;                     /* by the locked backend */

static inline struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        assert_int_equal(s.objects_live, s.alloc_fastpath + s.alloc_slowpath -
                                         s.free_fastpath - s.free_slowpath - s.free_rcu_sheaf);
        assert_int_equal(s.objects_cached, s.sheaf_refill + s.free_fastpath + s.free_rcu_sheaf -
                                           s.alloc_fastpath - s.sheaf_flush);
        return s;
}

/* Has this thread run on a node. False: there is no CPU for that here. */
static inline bool go_to(unsigned node)
{
        cpu_set_t set;

        __atomic_store_n(&stook_inject.locked_slot, node + 1, __ATOMIC_RELAXED);
        if (!locked) {
                CPU_ZERO(&set);
                CPU_SET(node, &set);
                if (sched_setaffinity(0, sizeof(set), &set))
                        return false;
                stook_free(stook_malloc(8));
        }
        assert_int_equal(stook_slot_node(), node);
        return true;
}

#define NEED_NODE(node) do { if (!go_to(node)) skip(); } while (0)

/* Capacity is as it is: it does not grow. */
static inline struct stook_cache *make(const char *name)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .sheaf_capacity = CAPACITY,
                                         .barn_full = 10, .barn_empty = 10 };
        struct stook_cache *cache = stook_cache_create(name, 64, &args);

        assert_non_null(cache);
        assert_int_equal(stats_of(cache).sheaf_capacity, CAPACITY);
        return cache;
}

static inline void gone(struct stook_cache *cache)
{
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(stats_of(cache).objects_cached, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static inline void get_of(struct stook_cache *cache, int node, void **objects, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                assert_non_null(objects[i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE,
                                                                    node));
                assert_int_equal(stook_object_node(objects[i]), node);
        }
}

static inline size_t how_many_of(int node, void **objects, size_t n)
{
        size_t count = 0;

        for (size_t i = 0; i < n; i++)
                count += stook_object_node(objects[i]) == node;
        return count;
}

static inline void free_all(struct stook_cache *cache, void **objects, size_t n)
{
        for (size_t i = 0; i < n; i++)
                stook_cache_free(cache, objects[i]);
}

/* In sheaves that wait to be filled with objects of a node. */
static inline size_t on_their_way(struct stook_cache *cache, unsigned node)
{
        size_t n = 0;

        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                const struct stook_sheaf *sheaf;

                sheaf = stook_home_sheaf(&cache->front, slot, node);
                n += sheaf ? stook_sheaf_size(sheaf) : 0;
        }
        return n;
}

static inline struct stook_cache_node_stats on_node(struct stook_cache *cache, unsigned node)
{
        struct stook_cache_node_stats s = { .stats_size = sizeof(s) };

        assert_int_equal(stook_cache_get_node_stats(cache, node, &s), 0);
        return s;
}

static inline int start_two_nodes(void **state)
{
        (void)state;
        locked = !strcmp(getenv("STOOK_SLOTS"), "locked");
        return 0;
}

#endif
