/*
 * Proves that an object that finds no sheaf waits by its hidden word; that each batch of a chain
 * asks for the next, and a barrier frees all; and that no batch is lost with the call that asked
 * for its grace period: one that was given up, or one of a thread that a child of a fork has not.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "unit/os/child.h"
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

/* Nobody frees anything meanwhile. */
static void test_a_batch_asks_for_the_next(void **state)
{
        struct stook_cache *cache = new_cache(STOOK_CACHE_RCU | STOOK_CACHE_NO_SHEAVES);

        (void)state;
        for (int i = 0; i < 10; i++)
                assert_int_equal(stook_cache_free_rcu(cache, stook_cache_alloc(cache)), 0);
        assert_int_equal(n_pending, 1);
        grace();
        assert_int_equal(n_pending, 1);
        assert_int_equal(stats_of(cache).objects_live, 9);
        grace();
        assert_int_equal(n_pending, 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static struct stook_cache *chained;

static void *free_one(void *unused)
{
        assert_int_equal(stook_cache_free_rcu(chained, stook_cache_alloc(chained)), 0);
        return unused;
}

/* In a call of the implementation, which lasts so long that it is given up. */
static void give_up(void)
{
        pthread_t thread;

        on_call = NULL;
        stook_transit_wait_ms = 1;
        assert_false(stook_transit_wait());
        stook_transit_wait_ms = 1000;
        assert_int_equal(pthread_create(&thread, NULL, free_one, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(n_pending, 1);         /* the turn was taken from the lost call */
}

static void test_a_lost_call_comes_back_with_its_batch(void **state)
{
        (void)state;
        chained = new_cache(STOOK_CACHE_RCU | STOOK_CACHE_NO_SHEAVES);
        stook_rcu_barrier();
        on_call = give_up;
        free_one(NULL);
        assert_int_equal(n_pending, 2);
        grace();
        assert_int_equal(n_pending, 0);
        assert_int_equal(stats_of(chained).objects_live, 0);
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_destroy(chained), 0);
}

static pthread_barrier_t met;

static void stop_here(void)
{
        on_call = NULL;
        pthread_barrier_wait(&met);             /* the fork is in between */
        pthread_barrier_wait(&met);
}

static void free_what_is_left(void)
{
        alarm(60);
        free_one(NULL);
        stook_cache_rcu_barrier(chained);
        CHECK(stats_of(chained).objects_live == 0);
        CHECK(stook_rcu_backlog() == 0);
        CHECK(stook_cache_destroy(chained) == 0);
}

static void test_a_child_frees_the_batch_of_a_thread_it_has_not(void **state)
{
        pthread_t thread;

        (void)state;
        chained = new_cache(STOOK_CACHE_RCU | STOOK_CACHE_NO_SHEAVES);
        pthread_barrier_init(&met, NULL, 2);
        on_call = stop_here;
        assert_int_equal(pthread_create(&thread, NULL, free_one, NULL), 0);
        pthread_barrier_wait(&met);
        assert_child_fine(free_what_is_left);
        pthread_barrier_wait(&met);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(stook_cache_destroy(chained), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_batch_asks_for_the_next),
                cmocka_unit_test(test_a_lost_call_comes_back_with_its_batch),
                cmocka_unit_test(test_a_child_frees_the_batch_of_a_thread_it_has_not),
                cmocka_unit_test(test_without_a_sheaf_there_is_the_hidden_word),
                cmocka_unit_test(test_a_barrier_frees_what_waits_behind_a_batch),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
