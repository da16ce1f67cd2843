/*
 * What this proves: for random lives of sampled objects, with weights, over many stacks, what a
 * bucket has allocated, in use, at the peak and since the last mark is what a plain reference has
 * that copies every stack's sums at each peak and each mark; so are its variances, its windows of
 * time, and its pairs of stacks with their lifetimes. A claim that its thread left behind is void
 * after a second. STOOK_SEED repeats a run.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "pages/span.h"
#include "profile/profile.h"
#include "stack/stack.h"

#define STACKS 20
#define LIVES  2000
#define STEPS  40000
#define PARTS  (1 << STOOK_PROFILE_PART_BITS)

static uint64_t seed;
static uint32_t stacks[STACKS];

static uint64_t random_below(uint64_t n)
{
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        return (seed >> 33) % n;
}

struct value {
        uint64_t objects, bytes;        /* in parts */
        double   variance;              /* of bytes */
};
static struct reference {
        struct value allocated, in_use, peak, mark;
        uint64_t born_bytes, died_bytes;
} reference[STACKS];

static struct stook_profile_life lives[LIVES];
static bool is_live[LIVES];
static uint64_t in_use, peak, clock_ns, pairs[STACKS][STACKS], elsewhere, by_life[64];

static void start(void **unused)
{
        const char *wish = getenv("STOOK_SEED");

        (void)unused;
        seed = wish ? strtoull(wish, NULL, 10) : (uint64_t)time(NULL);
        print_message("STOOK_SEED=%llu\n", (unsigned long long)seed);
        assert_true(stook_pages_start());
        assert_true(stook_stack_table_start());
        assert_true(stook_profile_table_start(1000, true));
        clock_ns = stook_profile.started;
        for (uintptr_t i = 0; i < STACKS; i++) {
                uintptr_t frames[2] = { 0x1000 + i, 0x2000 };

                stacks[i] = stook_stack_number(frames, 2);
                assert_int_not_equal(stacks[i], 0);
        }
}

static struct value value_of(const struct stook_profile_life *life)
{
        double w = life->weight, bytes = (double)life->bytes;

        return (struct value){ (uint64_t)(w * PARTS + 0.5), (uint64_t)(w * bytes * PARTS + 0.5),
                               bytes * bytes * w * (w - 1) };
}

static void add(struct value *to, struct value v, int sign)
{
        to->objects += (uint64_t)sign * v.objects;
        to->bytes += (uint64_t)sign * v.bytes;
        to->variance += sign * v.variance;
}

static unsigned number_of(uint32_t stack)
{
        unsigned i = 0;

        while (stacks[i] != stack)
                i++;
        return i;
}

static void begin(unsigned i)
{
        unsigned at = (unsigned)random_below(STACKS);
        struct value v;

        lives[i] = (struct stook_profile_life){
                .weight = 1 + (double)random_below(1000) / 7, .bytes = 1 + random_below(5000),
                .born = clock_ns, .stack = stacks[at], .thread = 1 + (uint32_t)random_below(2),
        };
        v = value_of(&lives[i]);
        assert_true(stook_profile_begin(&lives[i]));
        is_live[i] = true;
        add(&reference[at].allocated, v, 1);
        add(&reference[at].in_use, v, 1);
        reference[at].born_bytes += v.bytes;
        in_use += v.bytes;
        if (in_use <= peak + peak / 64)
                return;
        peak = in_use;
        for (unsigned s = 0; s < STACKS; s++)
                reference[s].peak = reference[s].in_use;
}

static unsigned power_of(uint64_t ns)
{
        unsigned power = 0;

        while (ns >> power)
                power++;
        power = power > STOOK_PROFILE_LIFE_BITS ? power - STOOK_PROFILE_LIFE_BITS : 0;
        return power < STOOK_PROFILE_LIVES ? power : STOOK_PROFILE_LIVES - 1;
}

static void end(unsigned i)
{
        unsigned at = number_of(lives[i].stack), by = (unsigned)random_below(STACKS);
        struct value v = value_of(&lives[i]);
        uint32_t thread = 1 + (uint32_t)random_below(2);

        stook_profile_end(&lives[i], stacks[by], thread, clock_ns);
        is_live[i] = false;
        add(&reference[at].in_use, v, -1);
        reference[at].died_bytes += v.bytes;
        in_use -= v.bytes;
        pairs[at][by] += v.objects;
        elsewhere += thread != lives[i].thread ? v.objects : 0;
        by_life[power_of(clock_ns - lives[i].born)] += v.objects;
}

static int64_t whole(uint64_t parts)
{
        return ((int64_t)parts + PARTS / 2) >> STOOK_PROFILE_PART_BITS;
}

static void assert_near(double value, double expected)
{
        double scale = expected > 1e9 ? expected * 1e-6 : 1e6;

        assert_true(value - expected < scale && expected - value < scale);
}

static uint64_t checked;

static void compare(const struct stook_profile_bucket *bucket, void *data)
{
        const struct reference *r = &reference[number_of(bucket->stack)];
        struct stook_profile_value v[STOOK_PROFILE_KINDS];
        const struct stook_profile_windows *w = &bucket->windows;
        uint64_t born = 0, died = 0, gone = 0;

        (void)data;
        stook_profile_values(&stook_profile, bucket, v);
        assert_int_equal(v[STOOK_PROFILE_ALLOC].objects, whole(r->allocated.objects));
        assert_int_equal(v[STOOK_PROFILE_ALLOC].bytes, whole(r->allocated.bytes));
        assert_int_equal(v[STOOK_PROFILE_INUSE].objects, whole(r->in_use.objects));
        assert_int_equal(v[STOOK_PROFILE_INUSE].bytes, whole(r->in_use.bytes));
        assert_int_equal(v[STOOK_PROFILE_PEAK].objects, whole(r->peak.objects));
        assert_int_equal(v[STOOK_PROFILE_PEAK].bytes, whole(r->peak.bytes));
        assert_int_equal(v[STOOK_PROFILE_GROWTH].objects,
                         whole(r->in_use.objects) - whole(r->mark.objects));
        assert_int_equal(v[STOOK_PROFILE_GROWTH].bytes,
                         whole(r->in_use.bytes) - whole(r->mark.bytes));
        assert_near(v[STOOK_PROFILE_ALLOC].bytes_variance, r->allocated.variance);
        assert_near(v[STOOK_PROFILE_INUSE].bytes_variance, r->in_use.variance);
        assert_near(v[STOOK_PROFILE_PEAK].bytes_variance, r->peak.variance);
        for (unsigned i = 0; i < STOOK_PROFILE_WINDOWS; i++) {
                born += w->born[i];
                died += w->died[i];
                gone += w->gone[i];
        }
        assert_int_equal(born, r->born_bytes);
        assert_int_equal(died, r->died_bytes);
        assert_int_equal(gone, r->died_bytes);
        checked++;
}

static void mark(void)
{
        stook_profile_mark_growth();
        for (unsigned s = 0; s < STACKS; s++)
                reference[s].mark = reference[s].in_use;
}

static void test_against_a_reference(void **unused)
{
        (void)unused;
        for (unsigned step = 0; step < STEPS; step++) {
                unsigned i = (unsigned)random_below(step % 10000 < 5000 ? LIVES : LIVES / 8);

                clock_ns += random_below(UINT64_C(1) << random_below(31));
                if (is_live[i])
                        end(i);
                else
                        begin(i);
                if (!random_below(5000))
                        mark();
                if (!random_below(50))
                        stook_profile_for_each(compare, NULL);
        }
        assert_true(checked > 1000);
        assert_int_equal(stook_profile.in_use, in_use);
        assert_int_equal(stook_profile.peak_bytes, peak);
        assert_int_equal(stook_profile_lost(), 0);
}

static uint64_t sum_elsewhere, sum_by_life[STOOK_PROFILE_LIVES];

static void compare_pair(const struct stook_profile_pair *pair, void *data)
{
        uint64_t sum = 0;

        (void)data;
        assert_int_equal(pair->objects, pairs[number_of(pair->born)][number_of(pair->died)]);
        for (unsigned i = 0; i < STOOK_PROFILE_LIVES; i++) {
                sum += pair->lives[i];
                sum_by_life[i] += pair->lives[i];
        }
        assert_int_equal(sum, pair->objects);
        sum_elsewhere += pair->elsewhere;
}

static void test_pairs(void **unused)
{
        (void)unused;
        stook_profile_for_each_pair(compare_pair, NULL);
        assert_int_equal(sum_elsewhere, elsewhere);
        assert_true(elsewhere > 0);
        for (unsigned i = 0; i < STOOK_PROFILE_LIVES; i++)
                assert_int_equal(sum_by_life[i], by_life[i]);
        assert_int_equal(stook_profile.pairs_lost, 0);
}

/* The time of a window is that of the births in it. */
static void test_windows(void **unused)
{
        uintptr_t frame = 0x5555;
        struct stook_profile_life life = { .weight = 1, .bytes = 100, .born = clock_ns };
        const struct stook_profile_windows *w;
        uint64_t at;

        (void)unused;
        life.stack = stook_stack_number(&frame, 1);
        assert_true(stook_profile_begin(&life));
        w = &life.bucket->windows;
        at = (clock_ns - stook_profile.started) >> (STOOK_PROFILE_WINDOW_BITS + w->shift);
        assert_in_range(at, STOOK_PROFILE_WINDOWS / 2, STOOK_PROFILE_WINDOWS - 1);
        for (unsigned i = 0; i < STOOK_PROFILE_WINDOWS; i++)
                assert_int_equal(w->born[i], i == at ? 100 * PARTS : 0);
        clock_ns += 8 * (clock_ns - stook_profile.started);
        stook_profile_end(&life, 0, 0, clock_ns);
        at = (clock_ns - stook_profile.started) >> (STOOK_PROFILE_WINDOW_BITS + w->shift);
        assert_in_range(at, STOOK_PROFILE_WINDOWS / 2, STOOK_PROFILE_WINDOWS - 1);
        for (unsigned i = 0; i < STOOK_PROFILE_WINDOWS; i++) {
                assert_int_equal(w->born[i], i ? 0 : 100 * PARTS);
                assert_int_equal(w->gone[i], i ? 0 : 100 * PARTS);
                assert_int_equal(w->died[i], i == at ? 100 * PARTS : 0);
        }
}

static void test_claim_left_behind(void **unused)
{
        uintptr_t frame = 0x6666;
        struct stook_profile_life life = { .weight = 1, .bytes = 100, .born = clock_ns };
        struct stook_profile_life other = life, later = life;
        uint64_t born = 0;

        (void)unused;
        life.stack = other.stack = later.stack = stook_stack_number(&frame, 1);
        assert_true(stook_profile_begin(&life));
        life.bucket->claim = clock_ns | 1;              /* a thread that never came back */
        other.born = clock_ns + 1000;
        assert_true(stook_profile_begin(&other));       /* counted, but in no window */
        assert_int_equal(life.bucket->allocated.objects, 2 * PARTS);
        for (unsigned i = 0; i < STOOK_PROFILE_WINDOWS; i++)
                born += life.bucket->windows.born[i];
        assert_int_equal(born, 100 * PARTS);
        later.born = clock_ns + 2000000000;
        assert_true(stook_profile_begin(&later));
        for (unsigned i = born = 0; i < STOOK_PROFILE_WINDOWS; i++)
                born += life.bucket->windows.born[i];
        assert_int_equal(born, 200 * PARTS);
        assert_int_equal(life.bucket->claim, 0);
}

/* Threads on one stack: nothing is lost of the sums, and each peak is a number once. */
static void *many(void *stack)
{
        struct stook_profile_life life = { .weight = 3, .bytes = 64, .born = clock_ns,
                                           .stack = *(uint32_t *)stack };

        for (unsigned i = 0; i < 20000; i++) {
                if (stook_profile_begin(&life))
                        stook_profile_end(&life, 0, 0, clock_ns);
        }
        stook_profile_begin(&life);
        return NULL;
}

static void test_threads(void **unused)
{
        uintptr_t frame = 0x7777;
        uint32_t stack = stook_stack_number(&frame, 1);
        struct stook_profile_value v[STOOK_PROFILE_KINDS];
        pthread_t threads[4];

        (void)unused;
        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, many, &stack), 0);
        for (unsigned i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        stook_profile_values(&stook_profile, stook_profile_bucket(stack), v);
        assert_int_equal(v[STOOK_PROFILE_ALLOC].objects, 4 * 20001 * 3);
        assert_int_equal(v[STOOK_PROFILE_INUSE].objects, 4 * 3);
        assert_int_equal(v[STOOK_PROFILE_INUSE].samples, 4);
        assert_near(v[STOOK_PROFILE_INUSE].objects_variance, 4 * 3 * 2);
}

static int group_start(void **state)
{
        start(state);
        return 0;
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_against_a_reference), cmocka_unit_test(test_pairs),
                cmocka_unit_test(test_windows), cmocka_unit_test(test_claim_left_behind),
                cmocka_unit_test(test_threads),
        };

        return cmocka_run_group_tests(tests, group_start, NULL);
}
