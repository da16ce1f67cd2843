/*
 * What this proves: what a sample of malloc's is to its user and to the profile: its usable bytes
 * are those of its class, malloc(0) stands for a byte, an object of a cache or one for which there
 * is no span is a sample in place, a life ends once though its object grew, and what samples need
 * serves again when they have ended or came to nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "one_cpu.h"
#include "pages/span.h"
#include "profile/profile.h"

#define ARGS(...) (&(struct stook_sampling_args){ .args_size = sizeof(struct stook_sampling_args), \
                                                  __VA_ARGS__ })

static struct stook_sampling_stats stats(void)
{
        struct stook_sampling_stats stats = { .stats_size = sizeof stats };

        assert_int_equal(stook_sampling_get_stats(&stats), 0);
        return stats;
}

struct sums {
        uint64_t bytes, samples, ended;
};

static void add(const struct stook_profile_bucket *bucket, void *data)
{
        struct sums *sums = data;

        sums->bytes += bucket->allocated.bytes;
        sums->samples += bucket->allocated.samples;
        sums->ended += bucket->freed.samples;
}

static struct sums sums_now(void)
{
        struct sums sums = { 0 };

        stook_profile_for_each(add, &sums);
        return sums;
}

/* Each object is a sample, of which each stands for nearly one. */
static void sample_each(uint64_t guard)
{
        assert_int_equal(stook_sampling_start(ARGS(.interval = 1, .most = 1000000,
                                                   .guard = guard)), 0);
}

static void usable_bytes_are_those_of_the_class(void **state)
{
        static const size_t sizes[] = { 0, 1, 100, 112, 1000, 4096, 5000, 100000 };

        (void)state;
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                void *usual = stook_malloc(sizes[i]), *sampled;
                uint64_t kept;

                sample_each(0);
                kept = stats().kept;
                sampled = stook_malloc(sizes[i]);
                assert_int_equal(stats().kept, kept + 1);
                assert_int_equal(stook_sampling_stop(), 0);
                assert_int_equal(stook_usable_size(sampled), stook_usable_size(usual));
                memset(sampled, 1, stook_usable_size(sampled));
                stook_free(sampled);
                stook_free(usual);
        }
}

static void nothing_is_a_byte(void **state)
{
        struct sums before, after;

        (void)state;
        sample_each(0);
        before = sums_now();
        for (unsigned i = 0; i < 4; i++)        /* each is none once in nine million */
                stook_free(stook_malloc(0));
        after = sums_now();
        assert_int_equal(after.samples - before.samples, 4);
        assert_int_equal(after.ended - before.ended, 4);
        assert_int_equal((after.bytes - before.bytes) >> STOOK_PROFILE_PART_BITS, 4);
        assert_int_equal(stook_sampling_stop(), 0);
}

static void objects_of_caches_are_in_place(void **state)
{
        struct stook_cache *cache = stook_cache_create("in place", 60, NULL);
        struct sums before, after;
        uint64_t in_place;
        void *objects[50];

        (void)state;
        assert_non_null(cache);
        sample_each(0);
        in_place = stats().in_place;
        before = sums_now();
        for (unsigned i = 0; i < 50; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        after = sums_now();
        assert_int_equal(stats().in_place - in_place, after.samples - before.samples);
        assert_true(after.samples - before.samples >= 49);      /* the first may find a count */
        assert_int_equal(after.ended - before.ended, after.samples - before.samples);
        assert_int_equal((after.bytes - before.bytes) >> STOOK_PROFILE_PART_BITS,
                         60 * (after.samples - before.samples));
        assert_int_equal(stook_sampling_stop(), 0);
        stook_cache_free_bulk(cache, 50, objects);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* No span is to be had. The class has objects. */
static void without_a_span_it_is_in_place(void **state)
{
        uint64_t in_place, guarded;
        void *object;

        (void)state;
        for (unsigned i = 0; i < 200; i++)
                stook_free(stook_malloc(48));
        sample_each(1000000);
        in_place = stats().in_place;
        for (unsigned i = 0; i < 200; i++) {
                stook_inject.span_fail_from = 1;
                object = stook_malloc(48);
                stook_inject.span_fail_from = 0;
                assert_non_null(object);
                assert_int_equal(stook_usable_size(object), 48);
                stook_free(object);
        }
        assert_int_equal(stats().in_place - in_place, 200);
        /* Each was to be guarded, and took no place of those that are. */
        guarded = stats().guarded;
        stook_free(stook_malloc(48));
        assert_int_equal(stats().guarded, guarded + 1);
        assert_int_equal(stook_sampling_stop(), 0);
}

/* The object outlives the session, and grows: its life has ended then, and ends no second time. */
static void a_life_ends_once(void **state)
{
        struct sums before = sums_now(), after;
        char *object;

        (void)state;
        sample_each(0);
        object = stook_malloc(300000);
        assert_int_equal(stook_sampling_stop(), 0);
        assert_int_equal(sums_now().samples, before.samples + 1);
        assert_int_equal(sums_now().ended, before.ended);
        object = stook_realloc(object, 900000);
        assert_non_null(object);
        assert_int_equal(sums_now().ended, before.ended + 1);
        object = stook_realloc(object, 990000);
        stook_free(object);
        after = sums_now();
        assert_int_equal(after.samples - before.samples, 1);
        assert_int_equal(after.ended - before.ended, 1);
}

static uint64_t metadata(void)
{
        struct stook_totals totals = { .totals_size = sizeof totals };

        assert_int_equal(stook_get_totals(&totals), 0);
        return totals.metadata_bytes;
}

static void pairs(unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                stook_free(stook_malloc(100));
}

/* Ended samples serve again: many more of them need no more memory. */
static void what_ended_serves_again(void **state)
{
        uint64_t before;

        (void)state;
        sample_each(0);
        pairs(1000);
        before = metadata();
        pairs(20000);
        assert_in_range(metadata() - before, 0, 100000);
        assert_int_equal(stook_sampling_stop(), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(usable_bytes_are_those_of_the_class),
                cmocka_unit_test(nothing_is_a_byte),
                cmocka_unit_test(objects_of_caches_are_in_place),
                cmocka_unit_test(without_a_span_it_is_in_place),
                cmocka_unit_test(a_life_ends_once),
                cmocka_unit_test(what_ended_serves_again),
        };

        stay_on_one_cpu();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
