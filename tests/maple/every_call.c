/*
 * Proves that libstook-maple.so has every call its header declares, and that a tree and a cursor
 * have the sizes that programs already compiled have fixed; then uses the library as an installed
 * program would: nodes come from a cache that the library shows, and go back to it.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stook/maple.h>
#include <stook/stats.h>

static void test_every_call_is_there(void **state)
{
        void (*const calls[])(void) = {
#define CALL(name) (void (*)(void))name
                CALL(stook_maple_init),
                CALL(stook_maple_destroy),
                CALL(stook_maple_lock),
                CALL(stook_maple_unlock),
                CALL(stook_maple_set_external_lock),
                CALL(stook_maple_set_rcu),
                CALL(stook_maple_load),
                CALL(stook_maple_load_range),
                CALL(stook_maple_overlaps),
                CALL(stook_maple_store),
                CALL(stook_maple_insert),
                CALL(stook_maple_erase),
                CALL(stook_maple_alloc),
                CALL(stook_maple_alloc_top),
                CALL(stook_maple_alloc_cyclic),
                CALL(stook_maple_empty_area),
                CALL(stook_maple_empty_area_rev),
                CALL(stook_maple_find),
                CALL(stook_maple_find_after),
                CALL(stook_maple_next),
                CALL(stook_maple_prev),
                CALL(stook_maple_dup),
                CALL(stook_maple_empty),
                CALL(stook_maple_height),
                CALL(stook_maple_nodes),
                CALL(stook_maple_validate),
                CALL(stook_maple_dump),
                CALL(stook_maple_cursor_set),
                CALL(stook_maple_cursor_move),
                CALL(stook_maple_cursor_pause),
                CALL(stook_maple_cursor_reset),
                CALL(stook_maple_cursor_finish),
                CALL(stook_maple_cursor_status),
                CALL(stook_maple_cursor_dump),
                CALL(stook_maple_cursor_walk),
                CALL(stook_maple_cursor_erase),
                CALL(stook_maple_cursor_store),
                CALL(stook_maple_cursor_replace),
                CALL(stook_maple_cursor_expect),
                CALL(stook_maple_cursor_preallocate),
                CALL(stook_maple_cursor_store_prealloc),
                CALL(stook_maple_cursor_preallocated),
                CALL(stook_maple_cursor_find),
                CALL(stook_maple_cursor_find_rev),
                CALL(stook_maple_cursor_find_range),
                CALL(stook_maple_cursor_find_range_rev),
                CALL(stook_maple_cursor_next),
                CALL(stook_maple_cursor_prev),
                CALL(stook_maple_cursor_next_range),
                CALL(stook_maple_cursor_prev_range),
                CALL(stook_maple_cursor_empty_area),
                CALL(stook_maple_cursor_empty_area_rev),
                CALL(stook_maple_cursor_empty_area_next),
                CALL(stook_maple_cursor_empty_area_prev),
                CALL(stook_maple_cursor_alloc_cyclic),
        };

        (void)state;
        for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
                assert_non_null(calls[i]);
}

static void test_sizes(void **state)
{
        (void)state;
        assert_int_equal(offsetof(struct stook_maple, lock), 104);
        static const pthread_mutex_t initial = PTHREAD_MUTEX_INITIALIZER;
        static const struct stook_maple tree = STOOK_MAPLE_INIT(0);

        assert_int_equal(sizeof(struct stook_maple), 152);
        assert_memory_equal(tree.lock, &initial, sizeof(initial));
        assert_int_equal(sizeof(struct stook_maple_cursor), 144);
}

static void test_nodes_are_a_cache(void **state)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };
        struct stook_maple tree = STOOK_MAPLE_INIT(STOOK_MAPLE_GAPS);
        struct stook_cache *nodes;
        uint64_t start;
        static uint64_t entry;

        (void)state;
        for (uint64_t i = 0; i < 10000; i++)
                assert_int_equal(stook_maple_alloc(&tree, &entry, 16, 4096, UINT64_MAX, &start), 0);
        assert_int_equal(start, 4096 + 9999 * 16);
        nodes = stook_cache_find("maple_node");
        assert_non_null(nodes);
        assert_int_equal(stook_cache_object_size(nodes), 256);
        assert_int_equal(stook_cache_get_stats(nodes, &stats), 0);
        assert_int_equal(stook_maple_validate(&tree), 0);
        assert_in_range(stook_maple_nodes(&tree), 10000 / 16, 10000 / 10);
        stook_maple_destroy(&tree);
        assert_int_equal(stook_cache_destroy(nodes), 0);        /* none was lost */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_call_is_there),
                cmocka_unit_test(test_sizes),
                cmocka_unit_test(test_nodes_are_a_cache),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
