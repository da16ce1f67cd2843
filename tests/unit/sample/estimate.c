/*
 * What this proves: for each way of allocating, and for small, medium and large objects, the sums
 * that samples stand for are the true ones within the interval that they state: |z| < 7, by at
 * least 200 samples. So it is with thinning, for sites that take turns by powers of two, and for
 * objects in use of malloc's. STOOK_SEED is of no use here: the library draws by itself. With 5
 * one run in some thousands would fail: there are a hundred sums, and the stated interval is drawn,
 * too.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "profile/profile.h"

#define LIVE 64                         /* objects of a batch */
#define ENOUGH 200                      /* samples */
#define Z_MOST 7

struct sums {
        double bytes, variance;
        uint64_t samples;
};

static void add(const struct stook_profile_bucket *bucket, void *data)
{
        struct stook_profile_value values[STOOK_PROFILE_KINDS];
        struct sums *sums = data;

        stook_profile_values(&stook_profile, bucket, values);
        for (unsigned kind = STOOK_PROFILE_ALLOC; kind <= STOOK_PROFILE_INUSE; kind++) {
                sums[kind].bytes += (double)values[kind].bytes;
                sums[kind].variance += values[kind].bytes_variance;
                sums[kind].samples += values[kind].samples;
        }
}

static void sum(struct sums sums[2])
{
        memset(sums, 0, 2 * sizeof *sums);
        stook_profile_for_each(add, sums);
}

static struct stook_cache *cache, *accounted, *readers;
static size_t size;
static void *objects[LIVE];

/* ---- ways: each allocates LIVE objects of `size` bytes, and frees them ---- */

static void each(void *(*get)(size_t), void (*put)(void *))
{
        for (unsigned i = 0; i < LIVE; i++)
                assert_non_null(objects[i] = get(size));
        for (unsigned i = 0; i < LIVE; i++)
                put(objects[i]);
}

static void *zeroed(size_t n) { return stook_calloc(1, n); }
static void *aligned(size_t n) { return stook_aligned_alloc(64, n); }
static void *resized(size_t n) { return stook_realloc(NULL, n); }
static void *of_cache(size_t n) { return (void)n, stook_cache_alloc(cache); }
static void *without_locks(size_t n) { return (void)n, stook_cache_alloc_nolock(cache); }
static void *charged(size_t n) { return (void)n, stook_cache_alloc(accounted); }
static void *for_readers(size_t n) { return (void)n, stook_cache_alloc(readers); }
static void to_cache(void *object) { stook_cache_free(cache, object); }
static void uncharged(void *object) { stook_cache_free(accounted, object); }
static void after_readers(void *object)
{
        assert_int_equal(stook_cache_free_rcu(readers, object), 0);
}


static void by_malloc(void) { each(stook_malloc, stook_free); }
static void by_calloc(void) { each(zeroed, stook_free); }
static void by_aligned(void) { each(aligned, stook_free); }
static void by_realloc(void) { each(resized, stook_free); }
static void by_cache(void) { each(of_cache, to_cache); }
static void by_nolock(void) { each(without_locks, to_cache); }
static void by_account(void) { each(charged, uncharged); }
static void by_rcu(void) { each(for_readers, after_readers); }

static void by_pairs(void)
{
        for (unsigned i = 0; i < LIVE; i++)
                stook_free(stook_malloc(size));
}

static void by_bulk(void)
{
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, LIVE, objects), 0);
        stook_cache_free_bulk(cache, LIVE, objects);
}

static void by_sheaf(void)
{
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, LIVE);

        assert_non_null(sheaf);
        for (unsigned i = 0; i < LIVE; i++)
                assert_non_null(objects[i] = stook_sheaf_alloc(cache, sheaf));
        stook_sheaf_return(cache, sheaf);
        for (unsigned i = 0; i < LIVE; i++)
                stook_cache_free(cache, objects[i]);
}

static void *hands_over(void *unused)
{
        for (unsigned i = 0; i < LIVE; i++)
                assert_non_null(objects[i] = stook_malloc(size));
        return unused;
}

static void by_another_thread(void)
{
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, hands_over, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        for (unsigned i = 0; i < LIVE; i++)
                stook_free(objects[i]);
}

/* ---- what comes of them ---- */

static double root(double x)
{
        double guess = x > 1 ? x : 1;

        for (int i = 0; i < 200; i++)
                guess = (guess + x / guess) / 2;
        return guess;
}

static void check(const char *what, const struct sums *before, const struct sums *after,
                  double truth)
{
        double got = after->bytes - before->bytes;
        double sd = root(after->variance - before->variance);
        uint64_t samples = after->samples - before->samples;

        if (samples < ENOUGH || got - truth > Z_MOST * sd || truth - got > Z_MOST * sd)
                fail_msg("%s, %zu bytes: %.0f instead of %.0f, sd %.0f, %llu samples", what, size,
                         got, truth, sd, (unsigned long long)samples);
}

static void try_way(const char *what, void (*way)(void), double each_bytes)
{
        struct sums before[2], after[2];
        double truth = 0;

        sum(before);
        do {
                for (unsigned i = 0; i < 64; i++)
                        way();
                truth += 64.0 * LIVE * each_bytes;
                sum(after);
        } while (after[0].samples - before[0].samples < 4 * ENOUGH);
        check(what, &before[0], &after[0], truth);
}

static void start(uint64_t interval, uint64_t most)
{
        struct stook_sampling_args args = { .args_size = sizeof args, .interval = interval,
                                            .most = most };

        assert_int_equal(stook_sampling_start(&args), 0);
}

static void every_way_is_seen_as_often_as_it_is_taken(void **state)
{
        static const size_t sizes[] = { 100, 1000, 10000, 60000 };

        (void)state;
        start(65536, 1000000);
        for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                size = sizes[s];
                try_way("malloc", by_malloc, (double)size);
                try_way("pairs", by_pairs, (double)size);
                try_way("calloc", by_calloc, (double)size);
                try_way("aligned_alloc", by_aligned, (double)size);
                try_way("realloc", by_realloc, (double)size);
                cache = stook_cache_create("estimate", size, NULL);
                accounted = stook_cache_create("charged", size, STOOK_CACHE_ARGS(
                                                       .flags = STOOK_CACHE_ACCOUNT));
                readers = stook_cache_create("readers", size, STOOK_CACHE_ARGS(
                                                     .rcu = &stook_rcu_epoch));
                assert_true(cache && accounted && readers);
                try_way("cache", by_cache, (double)size);
                try_way("nolock", by_nolock, (double)size);
                try_way("bulk", by_bulk, (double)size);
                try_way("prefilled sheaf", by_sheaf, (double)size);
                try_way("accounted cache", by_account, (double)size);
                if (size <= 10000)              /* larger ones have no sheaves to wait in */
                        try_way("cache with readers", by_rcu, (double)size);
                stook_cache_destroy(cache);
                stook_cache_destroy(accounted);
                stook_cache_rcu_barrier(readers);
                assert_int_equal(stook_cache_destroy(readers), 0);
                if (size <= 1000)
                        try_way("another thread", by_another_thread, (double)size);
        }
        size = 300000;
        try_way("large", by_malloc, (double)size);
}

static void large_objects_that_grow(void **state)
{
        struct sums before[2], after[2];
        double truth = 0;

        (void)state;
        start(65536, 1000000);
        size = 200000;
        sum(before);
        for (unsigned i = 0; i < 400; i++) {
                void *object = stook_malloc(200000);

                object = stook_realloc(object, 900000);
                assert_non_null(object);
                truth += 1100000;               /* a resize is a free and an allocation */
                stook_free(object);
        }
        sum(after);
        check("resize", &before[0], &after[0], truth);
        assert_true(after[1].bytes - before[1].bytes == 0);
}

static void fewer_are_kept_and_stand_for_more(void **state)
{
        struct stook_sampling_stats was = { .stats_size = sizeof was }, now = was;

        (void)state;
        start(65536, 400);
        assert_int_equal(stook_sampling_get_stats(&was), 0);
        size = 1000;
        try_way("thinned", by_malloc, (double)size);
        try_way("thinned pairs", by_pairs, (double)size);
        assert_int_equal(stook_sampling_get_stats(&now), 0);
        assert_true(now.kept - was.kept < (now.marks - was.marks) / 2);
        assert_true(now.share < 1);
}

/* Two sites in turn, as a period that divides a count would meet only one of them. */
static void sites_that_take_turns(void **state)
{
        struct sums before[2], after[2];
        double truth = 0;

        (void)state;
        start(65536, 1000000);
        cache = stook_cache_create("turns", 512, NULL);
        assert_non_null(cache);
        for (unsigned period = 2; period <= 32; period *= 2) {
                size = 512;
                sum(before);
                for (unsigned i = 0; i < 400000; i++) {
                        stook_free(stook_malloc(512));
                        if (i % period == 0)
                                stook_cache_free(cache, stook_cache_alloc(cache));
                }
                truth = 400000.0 * 512 * (1 + 1.0 / period);
                sum(after);
                check("turns", &before[0], &after[0], truth);
        }
        stook_cache_destroy(cache);
}

static void what_is_in_use(void **state)
{
        static void *kept[40000];
        struct sums before[2], after[2];

        (void)state;
        start(65536, 1000000);
        size = 1000;
        sum(before);
        for (unsigned i = 0; i < 40000; i++)
                assert_non_null(kept[i] = stook_malloc(size));
        for (unsigned i = 0; i < 40000; i += 2)
                stook_free(kept[i]);
        sum(after);
        check("in use", &before[1], &after[1], 20000.0 * 1000);
        for (unsigned i = 1; i < 40000; i += 2)
                stook_free(kept[i]);
        sum(after);
        assert_true(after[1].bytes - before[1].bytes == 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_way_is_seen_as_often_as_it_is_taken),
                cmocka_unit_test(large_objects_that_grow),
                cmocka_unit_test(fewer_are_kept_and_stand_for_more),
                cmocka_unit_test(sites_that_take_turns),
                cmocka_unit_test(what_is_in_use),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
