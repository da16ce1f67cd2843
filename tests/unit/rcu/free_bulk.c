/*
 * Proves of frees by RCU in bulk: whole sheaves are filled from the array and the rest goes one by
 * one; the objects are untouched until the grace period ends; after a failure the array says which
 * objects are still the caller's; and every error.
 */
#include <errno.h>
#include "unit/rcu/by_hand.h"

enum { N = 1000 };
static char *objects[N], *kept[N];

static void allocate(struct stook_cache *cache, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                objects[i] = kept[i] = stook_cache_alloc(cache);
                assert_non_null(objects[i]);
                memset(objects[i], (int)i, SIZE);
        }
}

static void test_n_objects_wait_in_whole_sheaves(void **state)
{
        struct stook_cache *cache = new_cache((uint64_t)(uintptr_t)*state);
        size_t before = calls;

        allocate(cache, N);
        assert_int_equal(stook_cache_free_rcu_bulk(cache, N, (void **)objects), 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_true(calls - before >= N / stats_of(cache).sheaf_capacity);
        assert_true(calls - before <= N / stats_of(cache).sheaf_capacity + 2);
        for (unsigned i = 0; i < N; i++)
                for (unsigned b = 0; b < SIZE; b++)
                        assert_int_equal((unsigned char)kept[i][b], (unsigned char)i);
        stook_cache_rcu_barrier(cache);
        assert_int_equal(stats_of(cache).free_rcu_sheaf, N);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_few_and_none(void **state)
{
        struct stook_cache *cache = new_cache(0);

        (void)state;
        allocate(cache, 3);
        objects[1] = NULL;
        assert_int_equal(stook_cache_free_rcu_bulk(cache, 0, NULL), 0);
        assert_int_equal(stook_cache_free_rcu_bulk(cache, 3, (void **)objects), 0);
        stook_cache_free(cache, kept[1]);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_a_cache_without_sheaves(void **state)
{
        struct stook_cache *cache = new_cache(STOOK_CACHE_NO_SHEAVES | STOOK_CACHE_RCU);

        (void)state;
        allocate(cache, N);
        assert_int_equal(stook_cache_free_rcu_bulk(cache, N, (void **)objects), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Those that the library owns are NULL in the array. */
static void refused_beyond(size_t limit)
{
        struct stook_cache *cache = new_cache(0);
        size_t mine = 0;

        allocate(cache, N);
        stook_rcu_set_limit(limit, 0);
        assert_int_equal(stook_cache_free_rcu_bulk(cache, N, (void **)objects), -EAGAIN);
        for (unsigned i = 0; i < N; i++)
                if (objects[i]) {
                        assert_ptr_equal(objects[i], kept[i]);
                        mine++;
                }
        assert_true(mine > 0 && mine < N);
        assert_int_equal(stats_of(cache).objects_live, mine);
        for (unsigned i = 0; i < N; i++)
                if (objects[i])
                        stook_cache_free(cache, objects[i]);
        stook_rcu_set_limit(0, 1000);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_too_much_waits(void **state)
{
        (void)state;
        refused_beyond(SIZE);
        refused_beyond(N / 2 * SIZE);           /* after some whole sheaves */
}

static void test_each_error(void **state)
{
        struct stook_cache *cache = new_cache(0), *none = stook_cache_create("none", SIZE, NULL);
        char *object = stook_cache_alloc(none), *array[3], local;

        (void)state;
        array[0] = object;
        assert_int_equal(stook_cache_free_rcu_bulk(none, 1, (void **)array), -ENOTSUP);
        assert_ptr_equal(array[0], object);
        assert_int_equal(stook_cache_free_rcu_bulk(NULL, 1, (void **)array), -EINVAL);
        assert_int_equal(stook_cache_free_rcu_bulk(cache, 1, NULL), -EINVAL);
        stook_on_report(note, NULL);
        reports = 0;
        array[0] = stook_cache_alloc(cache);
        array[1] = &local;
        array[2] = stook_cache_alloc(cache);
        assert_int_equal(stook_cache_free_rcu_bulk(cache, 3, (void **)array), -EINVAL);
        stook_on_report(NULL, NULL);
        assert_int_equal(reports, 1);
        assert_null(array[0]);
        assert_ptr_equal(array[1], &local);
        assert_null(array[2]);
        stook_cache_free(none, object);
        assert_int_equal(stook_cache_destroy(none), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_prestate(test_n_objects_wait_in_whole_sheaves, NULL),
                cmocka_unit_test_prestate(test_n_objects_wait_in_whole_sheaves,
                                          (void *)(uintptr_t)(STOOK_CACHE_RCU |
                                                              STOOK_CACHE_ACCOUNT)),
                cmocka_unit_test(test_few_and_none),
                cmocka_unit_test(test_a_cache_without_sheaves),
                cmocka_unit_test(test_too_much_waits),
                cmocka_unit_test(test_each_error),
        };

        return cmocka_run_group_tests(tests, round_by_round, NULL);
}
