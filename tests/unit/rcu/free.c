/*
 * Proves of a free that waits for readers: the object is untouched until the grace period ends;
 * nolock calls do not call the implementation; any object of malloc can be freed so; what waits
 * before there is an implementation waits for it; and the answers where it cannot be done.
 */
#include <errno.h>
#include "pages/span.h"
#include "unit/rcu/by_hand.h"

static void test_without_an_rcu_it_says_so(void **state)
{
        struct stook_cache *cache = stook_cache_create("none", SIZE, NULL);
        void *object = stook_cache_alloc(cache), *other = stook_malloc(1 << 20);
        struct stook_rcu wrong = by_hand;

        (void)state;
        assert_int_equal(stook_cache_free_rcu(cache, object), -ENOTSUP);
        assert_int_equal(stook_free_rcu(other), -ENOTSUP);
        stook_cache_rcu_barrier(cache);
        stook_rcu_barrier();
        wrong.ops_size--;
        assert_int_equal(stook_rcu_use(&wrong), -EINVAL);
        assert_int_equal(stook_rcu_use(NULL), -EINVAL);
        stook_cache_free(cache, object);
        stook_free(other);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static struct stook_span *waits;
static struct stook_rcu_cache of_the_process;  /* it has no implementation of its own */

/* Memory of a type-stable cache is there until there is an implementation to ask. */
static void test_a_span_waits_for_an_implementation(void **state)
{
        (void)state;
        waits = stook_span_take(0, 4096, 0);
        assert_non_null(waits);
        stook_rcu_give_span(&of_the_process, waits);
        for (int i = 0; i < 3; i++)
                stook_rcu_submit_deferred();
        assert_int_equal(n_pending, 0);
        assert_int_equal(stook_span_kind_of(waits), STOOK_SPAN_TAKEN);
}

static void test_then_it_is_asked(void **state)
{
        (void)state;
        assert_int_equal(stook_rcu_use(&by_hand), 0);
        stook_rcu_barrier();
        grace();
        assert_int_not_equal(stook_span_kind_of(waits), STOOK_SPAN_TAKEN);
}

static void test_an_object_is_untouched_until_its_readers_have_left(void **state)
{
        enum { N = 1000 };
        static char *objects[N];
        struct stook_cache *cache = new_cache((uint64_t)(uintptr_t)*state);

        for (int i = 0; i < N; i++) {
                objects[i] = stook_cache_alloc(cache);
                assert_non_null(objects[i]);
                memset(objects[i], i, SIZE);
        }
        for (int i = 0; i < N; i++)
                assert_int_equal(stook_cache_free_rcu(cache, objects[i]), 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stats_of(cache).free_rcu_sheaf, N);
        assert_true(n_pending > 0);
        /* Nor are they handed out again. */
        for (int i = 0; i < N; i++) {
                char *other = stook_cache_alloc(cache);

                for (int k = 0; k < N; k++)
                        assert_ptr_not_equal(other, objects[k]);
                memset(other, 0xff, SIZE);
        }
        for (int i = 0; i < N; i++)
                for (int b = 0; b < SIZE; b++)
                        assert_int_equal((unsigned char)objects[i][b], (unsigned char)i);
        assert_int_equal(stats_of(cache).objects_live, N);
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
}

static void test_nolock_never_calls_the_implementation(void **state)
{
        struct stook_cache *cache = new_cache(0);
        size_t before = calls;

        (void)state;
        for (int i = 0; i < 1000; i++)
                assert_int_equal(stook_cache_free_rcu_nolock(cache, stook_cache_alloc(cache)), 0);
        assert_int_equal(calls, before);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_true(calls > before);
}

static void test_any_object_of_malloc(void **state)
{
        static const size_t sizes[] = { 1, 100, 5000, 60000, 128 << 10, 200 << 10, 5 << 20 };
        static const struct stook_rcu another = {
                .ops_size = sizeof(another), .call = call, .barrier = grace,
        };
        char *objects[STOOK_ARRAY_SIZE(sizes)];

        (void)state;
        assert_int_equal(stook_rcu_use(&another), 0);   /* nothing was freed yet */
        assert_int_equal(stook_rcu_use(&by_hand), 0);
        for (int round = 0; round < 50; round++) {
                for (size_t i = 0; i < STOOK_ARRAY_SIZE(sizes); i++) {
                        objects[i] = memset(stook_malloc(sizes[i]), (int)i + round, sizes[i]);
                        assert_int_equal(stook_free_rcu(objects[i]), 0);
                }
                for (size_t i = 0; i < STOOK_ARRAY_SIZE(sizes); i++)
                        for (size_t b = 0; b < sizes[i]; b += 777)
                                assert_int_equal((unsigned char)objects[i][b],
                                                 (unsigned char)(i + (size_t)round));
                if (round % 10 == 9)
                        grace();
        }
        stook_rcu_barrier();
        assert_int_equal(n_pending, 0);
        assert_int_equal(stook_rcu_use(&another), -EBUSY);
        assert_int_equal(stook_rcu_use(&by_hand), 0);
        assert_false(stook_owns(objects[STOOK_ARRAY_SIZE(sizes) - 1]));
}

static void test_any_object_without_calling_the_implementation(void **state)
{
        static const size_t sizes[] = { 1, 100, 5000, 60000, 200 << 10, 5 << 20 };
        struct stook_cache *cache = new_cache(0);
        size_t before = calls;
        char *object;

        (void)state;
        for (int round = 0; round < 50; round++)
                for (size_t i = 0; i < STOOK_ARRAY_SIZE(sizes); i++) {
                        object = memset(stook_malloc(sizes[i]), 7, sizes[i]);
                        assert_int_equal(stook_free_rcu_nolock(object), 0);
                        for (size_t b = 0; b < sizes[i]; b += 777)
                                assert_int_equal(object[b], 7);
                }
        for (int i = 0; i < 200; i++)
                assert_int_equal(stook_free_rcu_nolock(stook_cache_alloc(cache)), 0);
        assert_int_equal(calls, before);
        assert_int_equal(stats_of(cache).objects_live, 0);
        stook_rcu_barrier();
        assert_true(calls > before);
        assert_int_equal(n_pending, 0);
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_what_is_no_object_is_reported(void **state)
{
        struct stook_cache *cache = new_cache(0), *other = new_cache(0);
        char *object = stook_cache_alloc(cache), *of_other = stook_cache_alloc(other);

        (void)state;
        stook_on_report(note, NULL);
        reports = 0;
        assert_int_equal(stook_cache_free_rcu(cache, object + 8), -EINVAL);
        assert_int_equal(fault, STOOK_FAULT_INTERIOR);
        assert_int_equal(stook_cache_free_rcu(cache, of_other), -EINVAL);
        assert_int_equal(fault, STOOK_FAULT_WRONG_CACHE);
        assert_int_equal(stook_free_rcu(&reports), -EINVAL);
        assert_int_equal(fault, STOOK_FAULT_FOREIGN);
        assert_int_equal(reports, 3);
        assert_int_equal(stook_cache_free_rcu(cache, NULL), 0);
        assert_int_equal(stook_free_rcu(NULL), 0);
        stook_on_report(NULL, NULL);
        assert_int_equal(stook_cache_free_rcu(cache, object), 0);
        stook_cache_free(other, of_other);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_cache_destroy(other), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_without_an_rcu_it_says_so),
                cmocka_unit_test(test_a_span_waits_for_an_implementation),
                cmocka_unit_test_prestate(test_an_object_is_untouched_until_its_readers_have_left,
                                          (void *)(uintptr_t)0),
                cmocka_unit_test_prestate(test_an_object_is_untouched_until_its_readers_have_left,
                                          (void *)(uintptr_t)STOOK_CACHE_RCU),
                cmocka_unit_test(test_nolock_never_calls_the_implementation),
                cmocka_unit_test(test_any_object_of_malloc),
                cmocka_unit_test(test_any_object_without_calling_the_implementation),
                cmocka_unit_test(test_what_is_no_object_is_reported),
                cmocka_unit_test(test_then_it_is_asked),
        };

        return cmocka_run_group_tests(tests, round_by_round, NULL);
}
