/*
 * Proves that what waits for readers is bounded, large objects, too; that a free that may wait
 * waits for room; and that nothing is refused for ever.
 */
#include <errno.h>
#include <pthread.h>
#include "os/os.h"
#include "unit/rcu/by_hand.h"

/* No grace period ever ends: readers are stalled. */
static void test_what_waits_is_bounded(void **state)
{
        enum { LIMIT = 100000, N = 20000 };
        struct stook_cache *cache = new_cache(0), *sure = new_cache(STOOK_CACHE_RCU);
        uint64_t slack = stats_of(cache).sheaf_capacity * stats_of(cache).stride;
        static void *kept[N];
        int refused = 0;

        (void)state;
        stook_rcu_barrier();
        assert_int_equal(stook_rcu_backlog(), 0);
        stook_rcu_set_limit(LIMIT, 0);
        for (int i = 0; i < N; i++) {
                void *object = stook_cache_alloc(cache);
                int error = i & 1 ? stook_cache_free_rcu(cache, object) :
                                    stook_cache_free_rcu_nolock(cache, object);

                assert_true(error == 0 || error == -EAGAIN);
                if (error)
                        kept[refused++] = object;
        }
        assert_true(refused > 0);
        assert_true(stook_rcu_backlog() >= LIMIT && stook_rcu_backlog() < LIMIT + slack);
        /* Only objects in open sheaves went besides. */
        assert_true((uint64_t)(N - refused) * stats_of(cache).stride < LIMIT + 20 * slack);
        /* These are not refused. That is reported once. */
        stook_on_report(note, NULL);
        reports = 0;
        for (int i = 0; i < 500; i++)
                assert_int_equal(stook_cache_free_rcu(sure, stook_cache_alloc(sure)), 0);
        assert_int_equal(reports, 1);
        assert_int_equal(fault, STOOK_FAULT_RCU);
        stook_on_report(NULL, NULL);
        /* The readers leave. */
        stook_rcu_barrier();
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_free_rcu(cache, kept[--refused]), 0);
        stook_rcu_set_limit(0, 1000);
        while (refused)
                assert_int_equal(stook_cache_free_rcu(cache, kept[--refused]), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_cache_destroy(sure), 0);
}

/*
 * All that waits was deferred by nolock calls. An ordinary call that finds the limit reached
 * submits it: no other call need ever come.
 */
static void test_what_nolock_calls_deferred_does_not_refuse_for_ever(void **state)
{
        enum { LIMIT = 100000, N = 20000 };
        struct stook_cache *cache = new_cache(0);
        static void *kept[N];
        int n = 0;

        (void)state;
        stook_rcu_barrier();
        stook_rcu_set_limit(LIMIT, 0);
        do
                assert_true(n < N);
        while (!stook_cache_free_rcu_nolock(cache, kept[n++] = stook_cache_alloc(cache)));
        assert_true(stook_rcu_backlog() >= LIMIT);
        n--;
        if (stook_cache_free_rcu(cache, kept[n]))
                grace();
        else
                kept[n] = stook_cache_alloc(cache);
        grace();
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_free_rcu(cache, kept[n]), 0);
        stook_rcu_set_limit(0, 1000);
        stook_rcu_barrier();
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* A child of a fork does not have the threads that waited for room. That costs one wake. */
static void test_waiters_of_a_parent_are_forgotten(void **state)
{
        struct stook_cache *cache = new_cache(0);

        (void)state;
        stook_rcu_waiters = 1;
        assert_int_equal(stook_cache_free_rcu(cache, stook_cache_alloc(cache)), 0);
        stook_cache_rcu_barrier(cache);
        assert_int_equal(stook_rcu_waiters, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_large_objects_wait_in_full(void **state)
{
        size_t bytes = (size_t)2 << 20;

        (void)state;
        stook_rcu_barrier();
        assert_int_equal(stook_free_rcu(stook_malloc(bytes)), 0);
        assert_in_range(stook_rcu_backlog(), bytes, 2 * bytes);
        stook_rcu_barrier();
        assert_int_equal(stook_rcu_backlog(), 0);
}

static void test_the_limit_is_a_part_of_the_memory(void **state)
{
        uint64_t before = stook_rcu_limit_bytes();
        uint64_t memory = stook_os_memory_bytes(), address = stook_os_address_limit();

        (void)state;
        stook_rcu_set_default_limit(0);
        stook_rcu_find_default_limit();
        assert_int_equal(stook_rcu_limit_bytes(), (memory < address ? memory : address) / 8);
        stook_rcu_set_default_limit(before);
}

static uint32_t over;

/* The other thread goes on while callbacks are called: nothing is left pending by then. */
static void *end_a_grace_period(void *unused)
{
        static struct pending ended[10000];
        size_t n;

        while (!__atomic_load_n(&stook_rcu_waiters, __ATOMIC_RELAXED))
                if (__atomic_load_n(&over, __ATOMIC_RELAXED))
                        return unused;
        pthread_mutex_lock(&by_hand_lock);
        n = n_pending;
        assert_true(n <= sizeof(ended) / sizeof(*ended));
        memcpy(ended, pending, n * sizeof(*ended));
        n_pending = 0;
        pthread_mutex_unlock(&by_hand_lock);
        for (size_t i = 0; i < n; i++)
                ended[i].done(ended[i].head);
        return unused;
}

static void test_a_free_waits_for_room(void **state)
{
        enum { LIMIT = 100000 };
        struct stook_cache *cache = new_cache(0);
        pthread_t thread;

        (void)state;
        stook_rcu_barrier();
        stook_rcu_set_limit(LIMIT, 3600000);
        while (stook_rcu_backlog() < LIMIT)
                assert_int_equal(stook_cache_free_rcu(cache, stook_cache_alloc(cache)), 0);
        may_wait = 2;
        over = 0;
        assert_int_equal(pthread_create(&thread, NULL, end_a_grace_period, NULL), 0);
        for (unsigned i = 0; i < stats_of(cache).sheaf_capacity; i++)
                assert_int_equal(stook_cache_free_rcu(cache, stook_cache_alloc(cache)), 0);
        __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        may_wait = 1;
        stook_rcu_set_limit(0, 1000);
        stook_rcu_barrier();
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_large_objects_wait_in_full),
                cmocka_unit_test(test_the_limit_is_a_part_of_the_memory),
                cmocka_unit_test(test_a_free_waits_for_room),
                cmocka_unit_test(test_what_waits_is_bounded),
                cmocka_unit_test(test_what_nolock_calls_deferred_does_not_refuse_for_ever),
                cmocka_unit_test(test_waiters_of_a_parent_are_forgotten),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
