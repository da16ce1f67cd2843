/*
 * Proves that a wait waits for the calls of both counts; that a call in transit that was given up
 * lowers nothing when it comes back; that in a child of a fork the calls of other threads are gone,
 * also where the fork is in a call; and that a callback that was jumped out of is over.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "unit/os/child.h"
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

#define LONG_MS 3600000

static void *wait_in_thread(void *all)
{
        *(bool *)all = stook_transit_wait();
        return NULL;
}

/* While a wait waits for one count, calls begin in the other. It waits for those, too. */
static void test_both_counts_are_waited_for(void **state)
{
        uint64_t first = stook_transit_begin(), second;
        bool all = true;
        pthread_t thread;

        (void)state;
        stook_transit_wait_ms = LONG_MS;
        assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &all), 0);
        while (((second = stook_transit_begin()) & 1) == (first & 1))
                stook_transit_end(second);
        __atomic_store_n(&stook_transit_wait_ms, 1, __ATOMIC_RELAXED);
        stook_transit_end(first);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_false(all);              /* the second did not end */
        assert_true(stook_transit_is_lost(second));
        stook_transit_end(second);
        assert_true(stook_transit_wait());
        stook_transit_wait_ms = 1000;
}

static pthread_barrier_t met;
static uint64_t mine, others;

static void *hold(void *unused)
{
        others = stook_transit_begin();
        pthread_barrier_wait(&met);             /* the fork is in between */
        pthread_barrier_wait(&met);
        stook_transit_end(others);
        return unused;
}

/* It would wait for an hour. */
static void no_call_of_others(void)
{
        alarm(60);
        stook_free(stook_malloc(1));            /* the repair */
        CHECK(stook_transit_is_gone(others));
        CHECK(stook_transit_wait());
}

static void none_but_the_one_below(void)
{
        alarm(60);
        stook_free(stook_malloc(1));
        CHECK(!stook_transit_is_gone(mine) && !stook_transit_is_lost(mine));
        stook_transit_end(mine);
        CHECK(stook_transit_is_gone(others));
        CHECK(stook_transit_wait());
        /* What begins from here on is not gone. */
        mine = stook_transit_begin();
        CHECK(!stook_transit_is_gone(mine));
        stook_transit_end(mine);
        CHECK(!stook_transit_is_lost(mine) && stook_transit_wait());
}

static void test_calls_of_a_parents_threads_are_gone(void **state)
{
        pthread_t thread;

        (void)state;
        stook_transit_wait_ms = LONG_MS;
        assert_true(stook_transit_wait());      /* both begin in one count */
        pthread_barrier_init(&met, NULL, 2);
        assert_int_equal(pthread_create(&thread, NULL, hold, NULL), 0);
        pthread_barrier_wait(&met);
        assert_child_fine(no_call_of_others);
        mine = stook_transit_begin();
        assert_int_equal(mine & 1, others & 1);
        assert_child_fine(none_but_the_one_below);
        assert_false(stook_transit_is_lost(others));
        stook_transit_end(mine);
        pthread_barrier_wait(&met);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(stook_transit_wait());
        stook_transit_wait_ms = 1000;
}

static sigjmp_buf back;

static STOOK_NOINLINE void jump_out_of_a_callback(void)
{
        volatile char deep[8192];

        deep[0] = 1;
        stook_rcu_callback_begin(__builtin_frame_address(0));
        if (deep[0])
                siglongjmp(back, 1);
}

static void test_a_callback_that_was_jumped_out_of_is_over(void **state)
{
        (void)state;
        if (!sigsetjmp(back, 1))
                jump_out_of_a_callback();
        assert_true(stook_self_is_inside(STOOK_INSIDE_RCU));
        stook_rcu_heal();
        assert_false(stook_self_is_inside(STOOK_INSIDE_RCU));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_both_counts_are_waited_for),
                cmocka_unit_test(test_calls_of_a_parents_threads_are_gone),
                cmocka_unit_test(test_a_callback_that_was_jumped_out_of_is_over),
                cmocka_unit_test(test_a_call_that_comes_back_late_changes_nothing),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
