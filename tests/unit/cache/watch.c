/*
 * What this proves: a watched cache (cache/cache_watch.h) does what every cache does, by single,
 * bulk and prefilled calls, though no call finds an object at the line of its index. One that is
 * debugged has no sheaves, and gets none; another one has them at its other line. No two parts of
 * the word that says how an object is wanted, or freed, share a bit.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache_slow.h"
#include "cache/cache_watch.h"
#include "profile/profile.h"
#include "slot/slot_hot.h"

#define N 200

static const uint32_t watches[] = { STOOK_WATCH_DEBUG, STOOK_WATCH_RECORD, STOOK_WATCH_PROFILE };

static struct stook_cache *create(uint32_t watch, uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };
        struct stook_cache *cache;

        stook_cache_options.watch = watch;
        cache = stook_cache_create("watched", 64, &args);
        stook_cache_options.watch = 0;
        assert_non_null(cache);
        assert_int_equal(cache->watch, watch);
        return cache;
}

static struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        return s;
}

/* No call inlined into a program finds anything there, or leaves anything there. */
static void expect_no_hot_path(struct stook_cache *cache)
{
        void *object = stook_cache_alloc(cache);

        assert_non_null(object);
        assert_null(stook_front_pop(&cache->front));
        assert_false(stook_front_push(&cache->front, object));
        stook_cache_free(cache, object);
        assert_null(stook_front_pop(&cache->front));
}

static void use(struct stook_cache *cache)
{
        struct stook_sheaf *sheaf;
        void *objects[N];
        char *object;

        expect_no_hot_path(cache);
        for (int i = 0; i < N; i++) {
                assert_non_null(objects[i] = stook_cache_alloc_nolock(cache));
                memset(objects[i], 0xff, 64);
        }
        for (int i = 0; i < N; i++)
                stook_cache_free_nolock(cache, objects[i]);
        assert_int_equal(stook_cache_alloc_bulk(cache, STOOK_ALLOC_ZERO | STOOK_ALLOC_THISNODE, N,
                                                objects), 0);
        for (int i = 0; i < N; i++)
                for (int k = 0; k < 64; k++)
                        assert_int_equal(((char *)objects[i])[k], 0);
        assert_int_equal(stats_of(cache).objects_live, N);
        stook_cache_free_bulk(NULL, N, objects);
        assert_non_null(sheaf = stook_sheaf_prefill(cache, STOOK_ALLOC_ZERO, 20));
        for (int i = 0; i < 20; i++) {
                assert_non_null(object = stook_sheaf_alloc(cache, sheaf));
                assert_int_equal(object[63], 0);
                stook_cache_free(cache, object);
        }
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
}

static void every_call_works(void **state)
{
        (void)state;
        assert_true(stook_profile_start(100, false));
        for (size_t i = 0; i < sizeof(watches) / sizeof(*watches); i++) {
                struct stook_cache *plain = create(watches[i], 0);
                struct stook_cache *accounted = create(watches[i], STOOK_CACHE_ACCOUNT);

                use(plain);
                use(accounted);
                assert_int_equal(stook_cache_destroy(plain), 0);
                assert_int_equal(stook_cache_destroy(accounted), 0);
        }
}

static void sheaves_are_at_the_other_line_or_nowhere(void **state)
{
        struct stook_tuning tuning = { .tuning_size = sizeof(tuning), .sheaf_capacity = 8 };
        struct stook_cache *debugged = create(STOOK_WATCH_DEBUG, 0);
        struct stook_cache *recorded = create(STOOK_WATCH_RECORD, 0);

        (void)state;
        for (int i = 0; i < N; i++) {
                stook_cache_free(debugged, stook_cache_alloc(debugged));
                stook_cache_free(recorded, stook_cache_alloc(recorded));
        }
        assert_int_equal(stats_of(debugged).sheaf_capacity, 0);
        assert_int_equal(stats_of(debugged).objects_cached, 0);
        assert_int_equal(stook_cache_tune(debugged, &tuning), -ENOTSUP);
        assert_true(stats_of(recorded).objects_cached > 0);
        assert_int_equal(stook_cache_tune(recorded, &tuning), 0);
        assert_int_equal(stats_of(recorded).sheaf_capacity, 8);
        assert_int_equal(stook_cache_destroy(debugged), 0);
        assert_int_equal(stook_cache_destroy(recorded), 0);
}

static void a_watched_cache_is_not_merged(void **state)
{
        struct stook_cache *one = create(STOOK_WATCH_DEBUG, STOOK_CACHE_MERGE);
        struct stook_cache *other = create(STOOK_WATCH_DEBUG, STOOK_CACHE_MERGE);

        (void)state;
        assert_ptr_not_equal(one, other);
        assert_int_equal(stook_cache_destroy(one), 0);
        assert_int_equal(stook_cache_destroy(other), 0);
}

/* One does, and has two names: a word is that of an allocation, or that of a free. */
static void no_two_parts_of_how_share_a_bit(void **state)
{
        static const uint64_t parts[] = {
                STOOK_HOW_ZERO, STOOK_HOW_THISNODE, STOOK_HOW_NOWAIT, STOOK_HOW_NOLOCK,
                STOOK_HOW_BY, STOOK_HOW_READERS, STOOK_HOW_ASKED, STOOK_HOW_NODE, STOOK_HOW_GROUP,
                STOOK_HOW_CHARGED, STOOK_HOW_ERRNO, STOOK_HOW_GUARDED, STOOK_HOW_SIZES,
                (uint64_t)UINT16_MAX << STOOK_HOW_GROUP_SHIFT,
                (uint64_t)UINT16_MAX << STOOK_HOW_NODE_SHIFT,
        };
        uint64_t seen = 0;

        (void)state;
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
                assert_int_equal(seen & parts[i], 0);
                seen |= parts[i];
        }
        assert_true(seen == UINT64_MAX);        /* a new part takes one of these, or is here */
        assert_int_equal(STOOK_HOW_ALIGNED, STOOK_HOW_READERS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_call_works),
                cmocka_unit_test(sheaves_are_at_the_other_line_or_nowhere),
                cmocka_unit_test(a_watched_cache_is_not_merged),
                cmocka_unit_test(no_two_parts_of_how_share_a_bit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
