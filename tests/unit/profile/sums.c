/*
 * What this proves, on a clock and chances of the test's own: what each sum of a stack has, to the
 * sample: samples, variances, parts; the times of peak and mark; in which window of time a life
 * counts; pairs and their bound; what finds no room is lost and in use nowhere; which allocation
 * reaches the next point. What random lives come to is in lives.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/chance.h"
#include "os/os.h"
#include "pages/meta.h"
#include "process/process.h"
#include "profile/profile.h"
#include "stack/stack.h"

#define PART   (1 << STOOK_PROFILE_PART_BITS)
#define START  UINT64_C(5000000000)     /* ns */
#define WINDOW (UINT64_C(1) << STOOK_PROFILE_WINDOW_BITS)

/* ---- fakes ---- */

static uint64_t clock_ns = START, random_now;
static bool no_memory;
static size_t given;                    /* bytes of the last stook_os_zeroed() */
static uint32_t stack_now = 1;

uint64_t stook_os_clock_ns(void) { return clock_ns; }
uint64_t stook_os_random(void) { return random_now; }
uint32_t stook_process_thread_id(void) { return 5; }
uint32_t stook_stack_deep(unsigned skip) { return (void)skip, stack_now; }

void *stook_meta_bump(size_t bytes, size_t align)
{
        (void)align;
        return no_memory ? NULL : calloc(1, bytes);
}

void *stook_os_zeroed(size_t bytes)
{
        given = bytes;
        return no_memory ? NULL : calloc(1, bytes);
}

/* ---- lives ---- */

static uint32_t fresh_stack;            /* each test has stacks that no other has */

static struct stook_profile_life begin(uint32_t stack, double weight, uint64_t bytes, uint64_t born)
{
        struct stook_profile_life life = { .weight = weight, .bytes = bytes, .born = born,
                                           .stack = stack, .thread = 5 };

        assert_true(stook_profile_begin(&life));
        return life;
}

static struct stook_profile_value value_of(uint32_t stack, enum stook_profile_kind kind)
{
        struct stook_profile_value values[STOOK_PROFILE_KINDS];

        stook_profile_values(&stook_profile, stook_profile_bucket(stack), values);
        return values[kind];
}

static void assert_value(uint32_t stack, enum stook_profile_kind kind, int64_t objects,
                         int64_t bytes, uint64_t samples, double variance)
{
        struct stook_profile_value v = value_of(stack, kind);

        assert_int_equal(v.objects, objects);
        assert_int_equal(v.bytes, bytes);
        assert_int_equal(v.samples, samples);
        assert_true(v.objects_variance == variance);
}

static void every_sum_of_a_life(void **state)
{
        uint32_t stack = ++fresh_stack;
        struct stook_profile_life first = begin(stack, 3, 10, START), second;

        (void)state;
        second = begin(stack, 5, 100, START);
        assert_value(stack, STOOK_PROFILE_ALLOC, 8, 530, 2, 3 * 2 + 5 * 4);
        assert_true(value_of(stack, STOOK_PROFILE_ALLOC).bytes_variance ==
                    3 * 2 * 100. + 5 * 4 * 10000.);
        stook_profile_end(&first, 0, 5, START);
        assert_value(stack, STOOK_PROFILE_ALLOC, 8, 530, 2, 26);
        assert_value(stack, STOOK_PROFILE_INUSE, 5, 500, 1, 20);
        assert_true(value_of(stack, STOOK_PROFILE_INUSE).bytes_variance == 200000);
        stook_profile_end(&second, 0, 5, START);
        assert_value(stack, STOOK_PROFILE_INUSE, 0, 0, 0, 0);
        /* Parts are rounded, and so is what is shown of them. */
        stack = ++fresh_stack;
        begin(stack, 1.5, 1, START);
        assert_value(stack, STOOK_PROFILE_ALLOC, 2, 2, 1, 1.5 * .5);
        begin(stack, 1 + 0.6 / PART, 1, START);
        assert_int_equal(stook_profile_bucket(stack)->allocated.objects, 2.5 * PART + 1);
        assert_int_equal(stook_profile_bucket(stack)->allocated.bytes, 2.5 * PART + 1);
}

static void what_was_in_use_at_the_peak(void **state)
{
        uint32_t stack = ++fresh_stack, other = ++fresh_stack;
        struct stook_profile_life life, more;
        uint64_t number = stook_profile.peak_number;

        (void)state;
        life = begin(stack, 2, 1 << 20, START + 7);
        assert_int_equal(stook_profile.peak_number, number + 1);
        assert_int_equal(stook_profile.peak_at, START + 7);
        assert_value(stack, STOOK_PROFILE_PEAK, 2, 2 << 20, 1, 2);
        /* Less than a 64th more is no new peak. */
        begin(other, 1, 1 << 14, START + 8);
        assert_int_equal(stook_profile.peak_number, number + 1);
        assert_int_equal(stook_profile.peak_at, START + 7);
        stook_profile_end(&life, 0, 5, START + 9);
        begin(stack, 1, 5, START + 10);
        assert_value(stack, STOOK_PROFILE_PEAK, 2, 2 << 20, 1, 2);
        assert_value(stack, STOOK_PROFILE_INUSE, 1, 5, 1, 0);
        more = begin(other, 1, 4 << 20, START + 11);
        assert_int_equal(stook_profile.peak_at, START + 11);
        assert_value(stack, STOOK_PROFILE_PEAK, 1, 5, 1, 0);
        begin(stack, 2, 5, START + 12);                 /* it saves what it had */
        assert_value(stack, STOOK_PROFILE_PEAK, 1, 5, 1, 0);
        assert_value(stack, STOOK_PROFILE_INUSE, 3, 15, 2, 2);
        stook_profile_end(&more, 0, 5, START + 12);
}

static void growth_since_a_mark(void **state)
{
        uint32_t stack = ++fresh_stack, later = ++fresh_stack;
        struct stook_profile_life life = begin(stack, 4, 10, START);

        (void)state;
        assert_int_equal(stook_profile.mark_number, 0);
        assert_value(stack, STOOK_PROFILE_GROWTH, 4, 40, 1, 12);        /* without a mark: all */
        clock_ns = START + 99;
        stook_profile_mark_growth();
        assert_int_equal(stook_profile.mark_at, START + 99);
        assert_value(stack, STOOK_PROFILE_GROWTH, 0, 0, 2, 24);
        stook_profile_end(&life, 0, 5, START);
        begin(stack, 2, 10, START);
        begin(later, 3, 7, START);
        assert_value(stack, STOOK_PROFILE_GROWTH, -2, -20, 2, 2 + 12);
        assert_true(value_of(stack, STOOK_PROFILE_GROWTH).bytes_variance == 100 * (2 + 12));
        assert_value(later, STOOK_PROFILE_GROWTH, 3, 21, 1, 6);
        clock_ns = START;
}

/* Sums that are read while they change: more was freed than allocated. */
static void nothing_in_use_is_below_0(void **state)
{
        uint32_t stack = ++fresh_stack;
        struct stook_profile_life life = begin(stack, 2, 10, START);

        (void)state;
        stook_profile_end(&life, 0, 5, START);
        stook_profile_end(&life, 0, 5, START);
        assert_int_equal(value_of(stack, STOOK_PROFILE_INUSE).objects, 0);
        assert_int_equal(value_of(stack, STOOK_PROFILE_INUSE).bytes, 0);
        assert_true(value_of(stack, STOOK_PROFILE_INUSE).objects_variance == 0);
}

static void windows_of_time(void **state)
{
        uint32_t stack = ++fresh_stack;
        struct stook_profile_life early = begin(stack, 1, 1, START - 1000);
        struct stook_profile_windows *w = &early.bucket->windows;

        (void)state;
        assert_int_equal(w->born[0], PART);             /* from before the start */
        begin(stack, 1, 2, START + 3 * WINDOW);
        begin(stack, 1, 4, START + 8 * WINDOW - 1);
        assert_int_equal(w->shift, 0);
        assert_int_equal(w->born[3], 2 * PART);
        assert_int_equal(w->born[7], 4 * PART);
        stook_profile_end(&early, 0, 5, START + 8 * WINDOW);
        assert_int_equal(w->shift, 1);
        assert_int_equal(w->born[0], PART);
        assert_int_equal(w->born[1], 2 * PART);
        assert_int_equal(w->born[3], 4 * PART);
        assert_int_equal(w->died[4], PART);
        assert_int_equal(w->gone[0], PART);
        /* A birth that this bucket's windows do not reach, as a clock behind may have it. */
        early.born = START + 1000 * WINDOW;
        stook_profile_end(&early, 0, 5, START + 9 * WINDOW);
        assert_int_equal(w->gone[7], PART);
        assert_int_equal(w->shift, 1);
}

static void pairs_of_stacks(void **state)
{
        uint32_t stack = ++fresh_stack;
        struct stook_profile_life life;
        const struct stook_profile_pair *found = NULL;
        uint64_t lost = stook_profile.pairs_lost;

        (void)state;
        clock_ns = START + 1;
        assert_true(stook_profile_table_start(1000, true));
        clock_ns = START;
        assert_true(stook_profile_has_lifetimes());
        life = begin(stack, 2, 10, START + 50);
        stook_profile_end(&life, 1000, 6, START);       /* by a clock that is behind */
        for (size_t i = 0; i < STOOK_PROFILE_CHAINS && !found; i++)
                for (found = stook_profile_pairs[i]; found && found->born != stack;)
                        found = found->next;
        assert_non_null(found);
        assert_int_equal(found->died, 1000);
        assert_int_equal(found->samples, 1);
        assert_int_equal(found->objects, 2 * PART);
        assert_int_equal(found->bytes, 20 * PART);
        assert_int_equal(found->elsewhere, 2 * PART);
        assert_int_equal(found->lives[0], 2 * PART);
        stook_profile_end(&life, 1000, 5, START + 50 + (1 << STOOK_PROFILE_LIFE_BITS));
        assert_int_equal(found->samples, 2);
        assert_int_equal(found->elsewhere, 2 * PART);
        assert_int_equal(found->lives[1], 2 * PART);
        for (uint32_t i = 1; i < 16384; i++)
                stook_profile_end(&life, 1000 + i, 5, START);
        assert_int_equal(stook_profile.pairs_lost, lost);
        for (uint32_t i = 0; i < 5; i++)
                stook_profile_end(&life, 20000 + i, 5, START);
        assert_int_equal(stook_profile.pairs_lost, lost + 5);
        stook_profile_end(&life, 1000, 5, START);       /* one that is there has its room */
        assert_int_equal(found->samples, 3);
        assert_true(stook_profile_table_start(1000, false));
        stook_profile_end(&life, 1000, 5, START);
        assert_int_equal(found->samples, 3);
        assert_true(stook_profile.started == START);    /* that of the first session */
}

static void what_has_no_bucket_is_lost(void **state)
{
        struct stook_profile_life life = { .weight = 1, .bytes = 1, .born = START,
                                           .stack = ++fresh_stack };
        uint64_t in_use = stook_profile.in_use;

        (void)state;
        no_memory = true;
        assert_false(stook_profile_begin(&life));
        no_memory = false;
        assert_int_equal(stook_profile_lost(), 1);
        assert_int_equal(stook_profile.in_use, in_use);
        assert_true(stook_profile_begin(&life));
        stook_profile_end(&life, 0, 5, START);
}

/* ---- profile_sample.c, profile_objects.c ---- */

static void tables_are_as_large_as_the_interval_wants(void **state)
{
        (void)state;
        no_memory = true;
        assert_false(stook_profile_objects_start(1));
        no_memory = false;
        assert_true(stook_profile_objects_start(STOOK_PROFILE_INTERVAL / 8));
        assert_int_equal(given, 4096);
        assert_true(stook_profile_objects_start(STOOK_PROFILE_INTERVAL / 8 - 1));
        assert_int_equal(given, 65536);
}

/* A set has 16 places: the 17th object of it is lost, and in use nowhere. */
static void an_object_without_a_place_is_lost(void **state)
{
        struct stook_profile_life life = begin(++fresh_stack, 1, 10, START);
        uint64_t in_use, lost = stook_profile_lost();
        uintptr_t refused = 16;

        (void)state;
        random_now = 0;
        assert_true(stook_profile_start(1, false));
        while (stook_profile_enter((void *)refused, &life))
                refused += 16;
        in_use = stook_profile.in_use;
        stack_now = ++fresh_stack;
        stook_profile_stripes[0].left = 1;
        stook_profile_sample(&stook_profile_stripes[0], 1, (void *)refused, 100);
        assert_int_equal(stook_profile_lost(), lost + 1);
        assert_int_equal(stook_profile.in_use, in_use);
        assert_value(stack_now, STOOK_PROFILE_ALLOC, 1, 100, 1, 0);
        assert_value(stack_now, STOOK_PROFILE_INUSE, 0, 0, 0, 0);
        /* A place that is free again serves. */
        for (uintptr_t at = 16; at < refused; at += 16)
                stook_profile_free((void *)at);
        assert_true(stook_profile_enter((void *)refused, &life));
        stook_profile_free((void *)refused);
        in_use = stook_profile.in_use;
        stook_profile_free((void *)refused);
        assert_int_equal(stook_profile.in_use, in_use);
        for (unsigned i = 0; i < 600; i++) {            /* a set counts its objects in a byte */
                life = begin(life.stack, 1, 10, START);
                assert_true(stook_profile_enter((void *)refused, &life));
                stook_profile_free((void *)refused);
                assert_int_equal(stook_profile.in_use, in_use);
        }
}

static int64_t point_of(uint64_t random)
{
        return (int64_t)(stook_chance_exponential(random) * 1000) + 1;
}

static uint64_t samples_of(uint32_t stack)
{
        return stook_profile_bucket(stack)->allocated.samples;
}

static void the_next_point(void **state)
{
        struct stook_profile_stripe *stripe = &stook_profile_stripes[1];
        uint32_t stack = stack_now = ++fresh_stack;

        (void)state;
        random_now = UINT64_C(1) << 60;
        assert_true(stook_profile_start(1000, false));
        for (unsigned i = 0; i < STOOK_PROFILE_STRIPES; i++)
                assert_int_equal(stook_profile_stripes[i].left, point_of(random_now));
        /* Who reaches the point is a sample, and draws the next. */
        stripe->left = 0;
        random_now = UINT64_C(3) << 60;
        stook_profile_sample(stripe, 1, (void *)16, 50);
        assert_int_equal(samples_of(stack), 1);
        assert_int_equal(stripe->left, point_of(random_now));
        /* Who comes meanwhile draws for itself alone. */
        stripe->left = -7;
        stook_profile_sample(stripe, 0, (void *)32, (size_t)point_of(random_now) - 1);
        assert_int_equal(samples_of(stack), 1);
        stook_profile_sample(stripe, 0, (void *)32, (size_t)point_of(random_now));
        assert_int_equal(samples_of(stack), 2);
        assert_int_equal(stripe->left, -7);
        random_now = UINT64_MAX;                        /* the least there is */
        stook_profile_sample(stripe, 0, (void *)48, 1);
        assert_int_equal(samples_of(stack), 3);
}

static int start(void **state)
{
        (void)state;
        return !stook_profile_table_start(1000, false);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_sum_of_a_life),
                cmocka_unit_test(what_was_in_use_at_the_peak),
                cmocka_unit_test(growth_since_a_mark),
                cmocka_unit_test(nothing_in_use_is_below_0),
                cmocka_unit_test(windows_of_time),
                cmocka_unit_test(pairs_of_stacks),
                cmocka_unit_test(what_has_no_bucket_is_lost),
                cmocka_unit_test(tables_are_as_large_as_the_interval_wants),
                cmocka_unit_test(an_object_without_a_place_is_lost),
                cmocka_unit_test(the_next_point),
        };

        return cmocka_run_group_tests(tests, start, NULL);
}
