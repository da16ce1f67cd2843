/*
 * What this proves, on a made-up machine of two nodes: maintenance gives back what caches keep on
 * every node, whichever node it is called on. These are objects in a remote sheaf that no thread
 * fills, full sheaves in the barn of a node where nothing runs any more, and the slabs that are
 * empty then. A busy thread reaps the idle sheaves of its own slot. What is reserved is there on
 * every node.
 * Run with STOOK_TOPOLOGY=nodes=2:slots=8.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "cache/cache.h"
#include "evacuate/evacuate.h"
#include "os/os.h"
#include "pages/purge.h"
#include "home/home.h"

#define SHORT_MS 20
#define LONG_MS  3600000
#define WAITS    6000                   /* of 5 ms */
#define FEW      30                     /* of a sheaf's 60 */
#define MANY     1000

static struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        return s;
}

static struct stook_cache_node_stats on_node(struct stook_cache *cache, unsigned node)
{
        struct stook_cache_node_stats s = { .stats_size = sizeof(s) };

        assert_int_equal(stook_cache_get_node_stats(cache, node, &s), 0);
        return s;
}

/* Has this thread run on a slot of the node. False: there is no CPU for that here. */
static bool go_to(unsigned node)
{
        cpu_set_t set;

        __atomic_store_n(&stook_inject.locked_slot, node + 1, __ATOMIC_RELAXED);
        if (strcmp(getenv("STOOK_SLOTS"), "locked")) {
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

static void gone(struct stook_cache *cache)
{
        stook_pages_set_decay_ms(LONG_MS);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static size_t on_their_way(struct stook_cache *cache)
{
        size_t n = 0;

        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                for (unsigned node = 0; node < 2; node++) {
                        const struct stook_sheaf *sheaf = stook_home_sheaf(&cache->front,
                                                                                  slot, node);

                        n += sheaf ? stook_sheaf_size(sheaf) : 0;
                }
        return n;
}

/* Objects of node 0, freed together on node 1, too few to fill a sheaf. */
static struct stook_cache *with_a_few_on_their_way(const char *name)
{
        struct stook_cache *cache = stook_cache_create(name, 64, NULL);
        void *objects[FEW];

        assert_non_null(cache);
        stook_pages_set_decay_ms(LONG_MS);
        for (int i = 0; i < FEW; i++)
                assert_non_null(objects[i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE,
                                                                    0));
        if (!go_to(1))
                return NULL;
        stook_cache_free_bulk(cache, FEW, objects);
        assert_int_equal(on_their_way(cache), FEW);
        return cache;
}

static void maintain_until_bare(struct stook_cache *cache)
{
        stook_pages_set_decay_ms(SHORT_MS);
        for (int waits = 0;
             waits < WAITS && (stats_of(cache).objects_cached || stats_of(cache).slabs); waits++) {
                stook_maintain();
                nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
        }
        assert_int_equal(on_their_way(cache), 0);
        assert_int_equal(stats_of(cache).objects_cached, 0);
        assert_int_equal(stats_of(cache).slabs, 0);
}

static void a_sheaf_left_unfilled_goes_home(void **state)
{
        struct stook_cache *cache;

        (void)state;
        NEED_NODE(0);
        cache = with_a_few_on_their_way("round");
        if (!cache)
                skip();
        NEED_NODE(0);
        maintain_until_bare(cache);
        gone(cache);
}

static void one_that_is_being_filled_stays(void **state)
{
        struct stook_cache *cache;
        void *object;

        (void)state;
        NEED_NODE(0);
        cache = with_a_few_on_their_way("filled");
        if (!cache)
                skip();
        /* Each round sees an object more than the one before, until the sheaf is full. */
        stook_pages_set_decay_ms(0);
        for (int i = 0; i < 10; i++) {
                assert_int_equal(on_their_way(cache), FEW + i);
                assert_non_null(object = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 0));
                stook_evacuate_idle(0);
                stook_cache_free_bulk(cache, 1, &object);
        }
        stook_evacuate_idle(0);
        assert_int_equal(on_their_way(cache), FEW + 10);
        stook_evacuate_idle(0);
        assert_int_equal(on_their_way(cache), 0);
        gone(cache);
}

/* A round answers with the number of caches, however many things it found in each. */
static void a_round_counts_a_cache_once(void **state)
{
        struct stook_cache *cache;
        unsigned caches = strcmp(getenv("STOOK_SLOTS"), "locked") ? 2 : 1; /* go_to uses malloc */

        (void)state;
        NEED_NODE(0);
        stook_pages_set_decay_ms(0);
        for (int i = 0; i < 10; i++)
                stook_evacuate_idle(0);
        cache = with_a_few_on_their_way("counted");
        if (!cache)
                skip();
        stook_cache_free(cache, stook_cache_alloc(cache));
        stook_pages_set_decay_ms(0);
        for (int i = 0; i < 10; i++)
                assert_in_range(stook_evacuate_idle(0), 0, caches);
        assert_int_equal(on_their_way(cache), 0);
        gone(cache);
}

static void the_slots_own_hand_takes_it_home(void **state)
{
        struct stook_cache *cache;

        (void)state;
        NEED_NODE(0);
        cache = with_a_few_on_their_way("hand");
        if (!cache)
                skip();
        stook_pages_set_decay_ms(SHORT_MS);
        for (int waits = 0; waits < WAITS && on_their_way(cache); waits++) {
                for (int i = 0; i < 64; i++)
                        stook_slot_reap_idle();
                nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
        }
        assert_int_equal(on_their_way(cache), 0);
        gone(cache);
}

static void barns_of_other_nodes_are_emptied(void **state)
{
        struct stook_cache *cache = stook_cache_create("barns", 64, NULL);
        static void *objects[MANY];

        (void)state;
        NEED_NODE(1);
        stook_pages_set_decay_ms(LONG_MS);
        for (int i = 0; i < MANY; i++)
                assert_non_null(objects[i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE,
                                                                    1));
        for (int i = 0; i < MANY; i++)
                stook_cache_free(cache, objects[i]);
        assert_true(on_node(cache, 1).barn_full > 0);
        NEED_NODE(0);
        maintain_until_bare(cache);
        assert_int_equal(on_node(cache, 1).barn_full, 0);
        gone(cache);
}

static void objects_are_reserved_on_every_node(void **state)
{
        struct stook_cache *cache = stook_cache_create("reserved", 64, NULL);
        size_t want;

        (void)state;
        NEED_NODE(1);
        assert_int_equal(stook_cache_reserve(cache, MANY), 0);
        want = (MANY + stats_of(cache).objects_per_slab - 1) / stats_of(cache).objects_per_slab;
        for (unsigned node = 0; node < 2; node++)
                assert_true(on_node(cache, node).slabs >= want);
        stook_cache_shrink(cache);
        for (unsigned node = 0; node < 2; node++)
                assert_true(on_node(cache, node).slabs >= want);
        assert_int_equal(stook_cache_reserve(cache, 0), 0);
        assert_int_equal(stook_cache_shrink(cache), 0);
        gone(cache);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_sheaf_left_unfilled_goes_home),
                cmocka_unit_test(one_that_is_being_filled_stays),
                cmocka_unit_test(a_round_counts_a_cache_once),
                cmocka_unit_test(the_slots_own_hand_takes_it_home),
                cmocka_unit_test(barns_of_other_nodes_are_emptied),
                cmocka_unit_test(objects_are_reserved_on_every_node),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
