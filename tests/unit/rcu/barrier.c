/*
 * Proves that a barrier leaves nothing out, so that free_rcu and then destroy is legal; and that a
 * barrier that could not end is reported.
 */
#include <errno.h>
#include "unit/rcu/by_hand.h"

static void test_free_rcu_then_destroy_is_legal(void **state)
{
        (void)state;
        for (int n = 1; n < 200; n += 7) {
                struct stook_cache *cache = new_cache(n & 1 ? STOOK_CACHE_RCU : 0);

                for (int i = 0; i < n; i++)
                        assert_int_equal(stook_cache_free_rcu(cache, stook_cache_alloc(cache)), 0);
                assert_int_equal(stook_cache_destroy(cache), 0);
                assert_int_equal(n_pending, 0);
        }
}

static struct stook_cache *busy;

static void barrier_inside(struct stook_rcu_head *head)
{
        (void)head;
        stook_cache_rcu_barrier(busy);
        stook_rcu_barrier();
}

static void test_a_barrier_that_could_not_end_is_reported(void **state)
{
        struct stook_rcu_head head;

        (void)state;
        stook_on_report(note, NULL);
        busy = new_cache(0);
        assert_int_equal(stook_cache_free_rcu(busy, stook_cache_alloc(busy)), 0);
        reports = 0;
        may_wait = 0;
        barrier_inside(&head);
        may_wait = 1;
        assert_int_equal(reports, 2);
        assert_int_equal(fault, STOOK_FAULT_RCU);
        assert_int_equal(stook_cache_destroy(busy), 0);
        stook_on_report(NULL, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_free_rcu_then_destroy_is_legal),
                cmocka_unit_test(test_a_barrier_that_could_not_end_is_reported),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
