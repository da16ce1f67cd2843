/*
 * Proves that an object that finds no sheaf waits by its hidden word, and that a barrier frees all
 * batches of a chain.
 */
#include <errno.h>
#include "unit/rcu/by_hand.h"
#include "base/inject.h"

static void test_without_a_sheaf_there_is_the_hidden_word(void **state)
{
        struct stook_cache *cache = new_cache(STOOK_CACHE_RCU), *other = new_cache(0);
        void *objects[100], *kept = stook_cache_alloc(other);

        (void)state;
        assert_true(stats_of(cache).stride >= SIZE + 8);
        for (int i = 0; i < 100; i++)
                objects[i] = memset(stook_cache_alloc(cache), i, SIZE);
        stook_inject.sheaf_fail_every = 1;
        for (int i = 0; i < 100; i++)
                assert_int_equal(stook_cache_free_rcu(cache, objects[i]), 0);
        assert_int_equal(stook_cache_free_rcu(other, kept), -EAGAIN);
        stook_inject.sheaf_fail_every = 0;
        assert_true(stats_of(cache).free_rcu_sheaf_fail > 0);
        for (int i = 0; i < 100; i++)
                for (int b = 0; b < SIZE; b++)
                        assert_int_equal(((unsigned char *)objects[i])[b], i);
        stook_cache_rcu_barrier(cache);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        stook_cache_free(other, kept);
        assert_int_equal(stook_cache_destroy(other), 0);
}

/*
 * One object of a chain waits for readers, and the others for its grace period: a barrier waits for
 * two of them.
 */
static void test_a_barrier_frees_what_waits_behind_a_batch(void **state)
{
        struct stook_cache *cache = new_cache(STOOK_CACHE_RCU | STOOK_CACHE_NO_SHEAVES);

        (void)state;
        for (int everything = 0; everything < 2; everything++) {
                for (int i = 0; i < 10; i++)
                        assert_int_equal(stook_cache_free_rcu(cache, stook_cache_alloc(cache)), 0);
                assert_int_equal(n_pending, 1);
                if (everything)
                        stook_rcu_barrier();
                else
                        stook_cache_rcu_barrier(cache);
                assert_int_equal(n_pending, 0);
                assert_int_equal(stook_rcu_backlog(), 0);
        }
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_without_a_sheaf_there_is_the_hidden_word),
                cmocka_unit_test(test_a_barrier_frees_what_waits_behind_a_batch),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
