/*
 * Proves that a barrier leaves nothing out, so that free_rcu and then destroy is legal, also where
 * another thread takes what was deferred just before the barrier would; and that a barrier that
 * could not end is reported.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include "pages/span.h"
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

static sem_t taken, leave;
static pthread_t taker;

static void wait_for(sem_t *sem)
{
        while (sem_wait(sem))
                assert_int_equal(errno, EINTR);
}

static void stay(void)
{
        on_call = NULL;
        sem_post(&taken);
        wait_for(&leave);
}

static void *submit(void *unused)
{
        stook_rcu_submit_deferred();
        return unused;
}

/* In the barrier, before it takes the deferred sheaves: another thread takes them, and stays. */
static void have_them_taken(void)
{
        on_call = stay;
        assert_int_equal(pthread_create(&taker, NULL, submit, NULL), 0);
        wait_for(&taken);
}

/* It waits for as long as waits for a call last, and says so. */
static void test_a_barrier_waits_for_who_takes_what_was_deferred(void **state)
{
        struct stook_cache *cache = new_cache(0);
        struct stook_rcu_cache owner = { .own = &by_hand };
        struct stook_span *span = stook_span_take(0, 4096, 0);
        size_t before = calls;

        (void)state;
        sem_init(&taken, 0, 0);
        sem_init(&leave, 0, 0);
        stook_rcu_barrier();
        assert_non_null(span);
        for (unsigned i = 0; i < stats_of(cache).sheaf_capacity; i++)
                assert_int_equal(stook_cache_free_rcu_nolock(cache, stook_cache_alloc(cache)), 0);
        assert_int_equal(calls, before);        /* none is submitted */
        stook_rcu_give_span(&owner, span);
        stook_on_report(note, NULL);
        reports = 0;
        stook_transit_wait_ms = 1;
        on_call = have_them_taken;
        stook_cache_rcu_barrier(cache);
        assert_int_equal(reports, 1);
        assert_int_equal(fault, STOOK_FAULT_RCU);
        stook_transit_wait_ms = 1000;
        sem_post(&leave);
        assert_int_equal(pthread_join(taker, NULL), 0);
        stook_on_report(NULL, NULL);
        grace();
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_barrier_waits_for_who_takes_what_was_deferred),
                cmocka_unit_test(test_free_rcu_then_destroy_is_legal),
                cmocka_unit_test(test_a_barrier_that_could_not_end_is_reported),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
