/*
 * What this proves, of prefilled sheaves (<stook/sheaf.h>): where more objects are wanted than a
 * sheaf of the cache holds, a sheaf is made to measure. So it is in caches without sheaves.
 */
#include "unit/cache/lent.h"

static void more_than_a_sheaf_holds_is_made_to_measure(void **state)
{
        static const size_t sizes[] = { CAPACITY + 1, 500, 5000, 65534 };
        static void *objects[65534];
        struct stook_cache *cache = cache_of("oversize", NULL);

        (void)state;
        for (unsigned i = 0; i < 4; i++) {
                struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, sizes[i]);
                size_t some = sizes[i] / 3;

                assert_non_null(sheaf);
                assert_int_equal(stook_sheaf_available(sheaf), sizes[i]);
                assert_int_equal(stats_of(cache).sheaf_prefill_oversize, i + 1);
                take(cache, sheaf, some, objects);
                stook_cache_free_bulk(cache, some, objects);
                assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, sizes[i]), 0);
                assert_int_equal(stook_sheaf_available(sheaf), sizes[i]);
                for (size_t k = 0; k < sizes[i]; k++)
                        assert_non_null(objects[k] = stook_sheaf_alloc(cache, sheaf));
                assert_null(stook_sheaf_alloc(cache, sheaf));
                stook_sheaf_return(cache, sheaf);
                stook_cache_free_bulk(cache, sizes[i], objects);
        }
        assert_int_equal(stats_of(cache).sheaf_return_slow, 4);
        assert_int_equal(stats_of(cache).sheaf_return_fast, 0);
        gone(cache);
}

static void caches_without_sheaves_lend_them_all_the_same(void **state)
{
        struct stook_cache *cache = cache_of("none", ARGS(.flags = STOOK_CACHE_NO_SHEAVES));
        void *objects[30];

        (void)state;
        for (unsigned round = 1; round <= 5; round++) {
                struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 30);

                assert_non_null(sheaf);
                assert_int_equal(stook_sheaf_available(sheaf), 30);
                take(cache, sheaf, 30, objects);
                assert_null(stook_sheaf_alloc(cache, sheaf));
                stook_cache_free_bulk(cache, 30, objects);
                stook_sheaf_return(cache, sheaf);
                assert_int_equal(stats_of(cache).sheaf_prefill_oversize, round);
                assert_int_equal(stats_of(cache).sheaf_return_slow, round);
                assert_int_equal(stats_of(cache).sheaves, 0);
        }
        gone(cache);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(more_than_a_sheaf_holds_is_made_to_measure),
                cmocka_unit_test(caches_without_sheaves_lend_them_all_the_same),
        };

        return cmocka_run_group_tests(tests, stay_on_this_cpu, NULL);
}
