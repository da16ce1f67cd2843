/*
 * Purpose: what tests on a made-up machine of 4 nodes, 0 and 2 with memory, have in common. They
 * run as on a node, and look where objects come from.
 */
#ifndef ON_NODES_H
#define ON_NODES_H

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
#include "pages/purge.h"
#include "home/home.h"
#include "unit/cache/stats_sums.h"

static bool locked;                     /* by the locked backend */

/* Makes this thread run on a slot of the node. False: there is no CPU for that here. */
static inline bool go_to(unsigned node)
{
        cpu_set_t set;

        __atomic_store_n(&stook_inject.locked_slot, node + 1, __ATOMIC_RELAXED);
        if (!locked) {
                CPU_ZERO(&set);
                CPU_SET(node, &set);
                if (sched_setaffinity(0, sizeof(set), &set))
                        return false;
                stook_cache_free(stook_cache_find("warm"),
                                 stook_cache_alloc(stook_cache_find("warm")));
        }
        assert_int_equal(stook_slot_node(), node);
        return true;
}

#define NEED_NODE(node) do { if (!go_to(node)) skip(); } while (0)

static inline unsigned node_of(const void *object)
{
        int node = stook_object_node(object);

        assert_true(node == 0 || node == 2);
        return (unsigned)node;
}

static inline unsigned how_many_of(unsigned node, void **objects, size_t n)
{
        unsigned count = 0;

        for (size_t i = 0; i < n; i++)
                count += node_of(objects[i]) == node;
        return count;
}

static inline void allocate(struct stook_cache *cache, void **objects, size_t n)
{
        for (size_t i = 0; i < n; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
}

static inline void free_all(struct stook_cache *cache, void **objects, size_t n)
{
        for (size_t i = 0; i < n; i++)
                stook_cache_free(cache, objects[i]);
}

static inline void gone(struct stook_cache *cache)
{
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(stats_of(cache).objects_cached, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Before all tests. False: no memory. An hour: no test is so slow that sheaves become idle. */
static inline bool start_on_nodes(void)
{
        stook_pages_set_decay_ms(3600 * 1000);
        locked = !strcmp(stook_slots_backend_name(), "locked");
        return stook_cache_create("warm", 64, NULL);
}

#endif
