/*
 * Proves that the implementation is never called on top of a call of it, and that such a call
 * changes no errno; and what comes after a grace period: full sheaves come back through the barn,
 * memory of type-stable caches goes back to the pages, charges of groups end, and no earlier.
 */
#include <errno.h>
#include <stook/group.h>
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

static struct stook_cache *freed_inside;
static unsigned depth, deepest;

/* As an implementation that frees by RCU itself, more than a sheaf, and whose calls set errno. */
static void free_more(void)
{
        unsigned most = 2 * (unsigned)stats_of(freed_inside).sheaf_capacity;

        depth++;
        deepest = depth > deepest ? depth : deepest;
        for (unsigned i = 0; depth == 1 && i < most; i++)
                assert_int_equal(stook_cache_free_rcu(freed_inside,
                                                      stook_cache_alloc(freed_inside)), 0);
        depth--;
        errno = EIO;
}

static void test_a_call_is_not_entered_again(void **state)
{
        unsigned once;

        (void)state;
        freed_inside = new_cache(0);
        once = (unsigned)stats_of(freed_inside).sheaf_capacity + 1;
        stook_rcu_barrier();
        on_call = free_more;
        errno = 0;
        for (unsigned i = 0; i < once; i++)
                assert_int_equal(stook_cache_free_rcu(freed_inside,
                                                      stook_cache_alloc(freed_inside)), 0);
        assert_int_equal(errno, 0);
        on_call = NULL;
        assert_int_equal(deepest, 1);
        /* What was freed inside was deferred, and is not lost. */
        stook_cache_rcu_barrier(freed_inside);
        assert_int_equal(stats_of(freed_inside).objects_live, 0);
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_destroy(freed_inside), 0);
}

static void test_objects_are_charged_until_readers_have_left(void **state)
{
        enum { N = 300 };
        struct stook_cache *cache = new_cache(STOOK_CACHE_ACCOUNT);
        struct stook_group *group = stook_group_create("rcu", NULL, 0);
        uint64_t used;

        (void)state;
        assert_non_null(group);
        stook_group_enter(group);
        for (int i = 0; i < N; i++)
                assert_int_equal(stook_cache_free_rcu(cache, stook_cache_alloc(cache)), 0);
        used = stook_group_usage(group);
        assert_int_equal(used, N * stats_of(cache).stride);
        stook_cache_rcu_barrier(cache);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_enter(NULL);
        stook_group_destroy(group);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_call_is_not_entered_again),
                cmocka_unit_test(test_objects_are_charged_until_readers_have_left),
                cmocka_unit_test(test_full_sheaves_come_back_through_the_barn),
                cmocka_unit_test(test_type_stable_memory_waits_for_readers),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
