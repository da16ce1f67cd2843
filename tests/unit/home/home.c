/*
 * What this proves, on a made-up machine of two nodes: a thread's node is its CPU's, whatever its
 * slot. An allocation for a node never gets what happens to lie on the slot, and what lies in its
 * way goes home.
 */
#include "unit/home/two_nodes.h"

static void the_node_is_the_cpus(void **state)
{
        unsigned slot[2];

        (void)state;
        for (unsigned node = 0; node < 2; node++) {
                const struct stook_slot_head *own;

                NEED_NODE(node);
                own = stook_slot_ops()->own();
                for (slot[node] = 0; stook_slots_head(slot[node]) != own;)
                        slot[node]++;
        }
        /* The one thread there is has concurrency id 0 wherever it runs. */
        if (!locked && stook_os_rseq_has_mm_cid())
                assert_int_equal(slot[0], slot[1]);
        else
                assert_int_not_equal(slot[0], slot[1]);
}

/* More of another node's lie on the slot than are sent home at once. */
static void a_node_gets_its_own(void **state)
{
        struct stook_cache *cache = make("own");
        static void *object[CAPACITY / 2], *own[MANY];
        struct stook_cache_stats s;

        (void)state;
        NEED_NODE(0);
        get_of(cache, 0, object, CAPACITY / 2);
        stook_cache_shrink(cache);
        NEED_NODE(1);
        get_of(cache, 1, own, 1);
        stook_cache_free(cache, own[0]);
        free_all(cache, object, CAPACITY / 2);
        s = stats_of(cache);
        get_of(cache, 1, own, MANY);
        assert_int_equal(stats_of(cache).alloc_fastpath + stats_of(cache).alloc_slowpath,
                         s.alloc_fastpath + s.alloc_slowpath + MANY);
        assert_true(stats_of(cache).alloc_slowpath > s.alloc_slowpath);
        assert_int_equal(on_their_way(cache, 0), CAPACITY / 2);
        /* From both nodes in turn, with the other's in the way each time. */
        for (int i = 0; i < MANY; i++) {
                get_of(cache, i % 2, object, 1);
                NEED_NODE((unsigned)(i / 7) % 2);
                stook_cache_free(cache, object[0]);
        }
        free_all(cache, own, MANY);
        gone(cache);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_node_is_the_cpus),
                cmocka_unit_test(a_node_gets_its_own),
        };

        return cmocka_run_group_tests(tests, start_two_nodes, NULL);
}
