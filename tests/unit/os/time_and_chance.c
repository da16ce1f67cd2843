/*
 * What this proves: futex waits end by a wake, by the time and by another value, and leave errno
 * alone; the clock runs with the system's; random numbers are spread, and threads draw different
 * ones.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "os/os.h"

static void the_clock_runs_with_the_systems(void **state)
{
        struct timespec before, after;
        uint64_t ms;

        (void)state;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &before);
        ms = stook_os_clock_ms();
        clock_gettime(CLOCK_MONOTONIC_COARSE, &after);
        assert_true(ms >= (uint64_t)before.tv_sec * 1000 + (uint64_t)before.tv_nsec / 1000000);
        assert_true(ms <= (uint64_t)after.tv_sec * 1000 + (uint64_t)after.tv_nsec / 1000000);
}

static void a_wait_ends_by_itself(void **state)
{
        uint32_t word = 1;

        (void)state;
        errno = 4711;
        stook_os_futex_wait(&word, 2, UINT64_C(3600) * 1000000000);     /* another value: at once */
        stook_os_futex_wait(&word, 1, 1000);                            /* in time */
        assert_int_equal(errno, 4711);
        assert_int_equal(word, 1);
}

static uint32_t said;

static void *say(void *unused)
{
        (void)unused;
        __atomic_store_n(&said, 1, __ATOMIC_RELEASE);
        stook_os_futex_wake(&said);
        return NULL;
}

/* An hour's wait: without the wake, the test's time is over first. */
static void a_wake_wakes(void **state)
{
        pthread_t thread;

        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, say, NULL), 0);
        while (!__atomic_load_n(&said, __ATOMIC_ACQUIRE))
                stook_os_futex_wait(&said, 0, UINT64_C(3600) * 1000000000);
        pthread_join(thread, NULL);
        assert_int_equal(said, 1);
}

#define DRAWS   20000
#define THREADS 4
static uint64_t drawn[THREADS][DRAWS];

static void *draw(void *row)
{
        for (unsigned i = 0; i < DRAWS; i++)
                ((uint64_t *)row)[i] = stook_os_random();
        return NULL;
}

static int order(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

static void no_number_twice_and_no_bit_preferred(void **state)
{
        uint64_t *all = drawn[0];
        unsigned ones[64] = { 0 };
        pthread_t threads[THREADS];

        (void)state;
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, draw, drawn[i]), 0);
        for (unsigned i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        qsort(all, THREADS * DRAWS, sizeof(*all), order);
        for (unsigned i = 0; i < THREADS * DRAWS; i++) {
                assert_true(i == 0 || all[i] != all[i - 1]);
                for (unsigned bit = 0; bit < 64; bit++)
                        ones[bit] += all[i] >> bit & 1;
        }
        /* 14 standard deviations to each side */
        for (unsigned bit = 0; bit < 64; bit++)
                assert_in_range(ones[bit], THREADS * DRAWS / 2 - 2000, THREADS * DRAWS / 2 + 2000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_clock_runs_with_the_systems),
                cmocka_unit_test(a_wait_ends_by_itself),
                cmocka_unit_test(a_wake_wakes),
                cmocka_unit_test(no_number_twice_and_no_bit_preferred),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
