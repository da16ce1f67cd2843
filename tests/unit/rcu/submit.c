/*
 * Proves what comes after a grace period: full sheaves come back through the barn, and memory of
 * type-stable caches goes back to the pages then, and no earlier.
 */
#include <errno.h>
#include "unit/rcu/by_hand.h"

static void test_full_sheaves_come_back_through_the_barn(void **state)
{
        enum { N = 600 };
        void *objects[N];
        struct stook_cache *cache = new_cache(0);
        struct stook_cache_stats before, after;

        (void)state;
        for (int i = 0; i < N; i++)
                objects[i] = stook_cache_alloc(cache);
        for (int i = 0; i < N; i++)
                assert_int_equal(stook_cache_free_rcu(cache, objects[i]), 0);
        before = stats_of(cache);
        /* One for each sheaf, and one of the clock. */
        assert_int_equal(n_pending, N / before.sheaf_capacity + 1);
        grace();
        after = stats_of(cache);
        assert_int_equal(after.barn_put - before.barn_put, N / before.sheaf_capacity);
        assert_int_equal(after.sheaf_flush, before.sheaf_flush);
        assert_int_equal(after.free_rcu_sheaf, N);
        for (int i = 0; i < N; i++)
                objects[i] = stook_cache_alloc(cache);
        assert_true(stats_of(cache).barn_get >= after.barn_get + N / before.sheaf_capacity - 1);
        stook_cache_free_bulk(cache, N, objects);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/*
 * The objects are freed, the cache is shrunk, and destroyed. Until a grace period has passed, a
 * reader finds what was there, and no allocation gets the memory.
 */
static void test_type_stable_memory_waits_for_readers(void **state)
{
        enum { N = 3000 };
        static unsigned char *objects[N];
        struct stook_cache *cache = new_cache(STOOK_CACHE_TYPESAFE_BY_RCU);
        size_t slabs, bytes;
        int n_spans;

        (void)state;
        stook_rcu_barrier();
        grace();
        for (int i = 0; i < N; i++)
                objects[i] = memset(stook_cache_alloc(cache), i, SIZE);
        slabs = stats_of(cache).slabs;
        bytes = stats_of(cache).slab_bytes;
        for (int i = 0; i < N; i++)
                stook_cache_free(cache, objects[i]);
        assert_int_equal(stats_of(cache).slabs, slabs);         /* frees give none back */
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        n_spans = (int)n_pending;
        assert_int_equal(n_spans, slabs);
        for (int i = 0; i < 200; i++) {
                unsigned char *other = stook_malloc(bytes + 150000);    /* pages of any span */

                for (int k = 0; k < N; k++)
                        assert_false(objects[k] >= other && objects[k] < other + bytes + 150000);
                memset(other, 0xff, bytes + 150000);
                stook_free(other);
        }
        for (int i = 0; i < N; i++)
                for (int b = 0; b < SIZE; b++)
                        assert_int_equal(objects[i][b], (unsigned char)i);
        grace();
        assert_int_equal(n_pending, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_full_sheaves_come_back_through_the_barn),
                cmocka_unit_test(test_type_stable_memory_waits_for_readers),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
