/*
 * Proves that what a grace period gives back at once stays in sheaves where the cache's users ask
 * for it again, and that nothing stays where they do not. Counts of the cache's own statistics.
 */
#include "unit/rcu/by_hand.h"

enum { N = 20000 };                     /* 1.4 MB: more than a barn keeps otherwise */
static void *objects[N];

static void take_all(struct stook_cache *cache)
{
        for (int i = 0; i < N; i++) {
                objects[i] = stook_cache_alloc(cache);
                assert_non_null(objects[i]);
        }
}

static void free_all(struct stook_cache *cache)
{
        for (int i = 0; i < N; i++)
                assert_int_equal(stook_cache_free_rcu(cache, objects[i]), 0);
        grace();
}

/* Of 100 objects that came back since @before, those that went to their slabs. */
static uint64_t flushed_percent(struct stook_cache *cache, const struct stook_cache_stats *before)
{
        struct stook_cache_stats now = stats_of(cache);

        return 100 * (now.sheaf_flush - before->sheaf_flush) /
               (now.free_rcu_sheaf - before->free_rcu_sheaf);
}

static void what_is_asked_for_again_stays_in_sheaves(void **state)
{
        struct stook_cache *cache = new_cache(0);
        struct stook_cache_stats before = stats_of(cache);

        (void)state;
        for (int round = 0; round < 8; round++) {
                if (round == 4)
                        before = stats_of(cache);
                take_all(cache);
                free_all(cache);
        }
        assert_in_range(flushed_percent(cache, &before), 0, 20);
        stook_cache_rcu_barrier(cache);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* The first burst finds no room. The barn keeps nothing, because nothing was asked of it. */
static void a_single_burst_goes_to_the_slabs(void **state)
{
        struct stook_cache *cache = new_cache(0);
        struct stook_cache_stats before = stats_of(cache);

        (void)state;
        take_all(cache);
        free_all(cache);
        assert_in_range(flushed_percent(cache, &before), 90, 100);
        stook_cache_rcu_barrier(cache);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_asked_for_again_stays_in_sheaves),
                cmocka_unit_test(a_single_burst_goes_to_the_slabs),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
