/*
 * Proves that a call in transit that was given up lowers nothing when it comes back: the next call
 * is still waited for.
 */
#include <errno.h>
#include "unit/rcu/by_hand.h"

/*
 * A call in transit that was given up lowers nothing when it comes back: the next one is still
 * waited for.
 */
static void test_a_call_that_comes_back_late_changes_nothing(void **state)
{
        uint64_t late, other;

        (void)state;
        assert_true(stook_transit_wait());
        late = stook_transit_begin();
        stook_transit_wait_ms = 1;
        assert_false(stook_transit_wait());
        assert_true(stook_transit_is_lost(late));
        assert_true(stook_transit_wait());
        other = stook_transit_begin();
        assert_int_equal(other & 1, late & 1);          /* the same count */
        stook_transit_end(late);
        assert_false(stook_transit_is_lost(other));
        assert_false(stook_transit_wait());
        stook_transit_end(other);
        assert_true(stook_transit_wait());
        stook_transit_wait_ms = 1000;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_call_that_comes_back_late_changes_nothing),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
