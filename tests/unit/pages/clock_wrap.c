/*
 * Proves that memory ages whatever the machine's uptime is: the clock of ages is the low 32 bits of
 * milliseconds, which wrap after 49.7 days. What lies free stays for the decay time and is purged
 * soon after it. So it is in a process that starts after 25 days, when the clock is far from the
 * zero of the first step, and in one that runs while the clock wraps. And a decay time that becomes
 * shorter has its effect at once, though the next step was due in an hour.
 *
 *   clock_wrap MS           the process starts when the clock is at MS
 */
#include <sys/syscall.h>

#include "pages_env.h"
#include "pages/pages_node.h"

#define KIB     ((size_t)1 << 10)
#define BYTES   (64 * KIB)
#define DECAY   800
#define HOUR    3600000
#define LATE    (3 * DECAY)             /* what recurs is kept for two decay times and a step */

static uint64_t now_ms;

/* In place of libc's: the coarse clock is the test's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
        if (clock != CLOCK_MONOTONIC_COARSE)
                return (int)syscall(SYS_clock_gettime, clock, now);
        now->tv_sec = (time_t)(now_ms / 1000);
        now->tv_nsec = (long)(now_ms % 1000) * 1000000;
        return 0;
}

static size_t dirty(void)
{
        return stook_pages_nodes[0].bins[STOOK_SET_DIRTY].bytes;
}

static void leave_dirty(void)
{
        struct stook_span *span = stook_span_take(0, BYTES, 0);

        assert_non_null(span);
        memset((void *)span->start, 1, BYTES);
        stook_span_give(span);
        assert_int_equal(dirty(), BYTES);
}

/* A step every 10 ms. Return: after how many ms all of it was purged; @ms: it was not. */
static unsigned purged_within(unsigned ms)
{
        for (unsigned passed = 0; passed < ms; passed += 10) {
                stook_pages_step();
                if (!dirty())
                        return passed;
                now_ms += 10;
        }
        return ms;
}

static void what_lies_free_ages(void **state)
{
        (void)state;
        stook_pages_set_decay_ms(DECAY);
        for (unsigned times = 0; times < 8; times++) {
                leave_dirty();
                assert_in_range(purged_within(LATE), DECAY, LATE - 1);
                assert_sound();
        }
}

static void a_shorter_decay_has_effect_at_once(void **state)
{
        (void)state;
        stook_pages_set_decay_ms(HOUR);
        now_ms += HOUR;
        leave_dirty();
        assert_int_equal(purged_within(2 * DECAY), 2 * DECAY);
        stook_pages_set_decay_ms(DECAY);
        assert_int_equal(purged_within(DECAY), 0);
        assert_sound();
}

static int start(void **state)
{
        (void)state;
        return stook_pages_start() ? 0 : -1;
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_lies_free_ages),
                cmocka_unit_test(a_shorter_decay_has_effect_at_once),
        };

        now_ms = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
        return cmocka_run_group_tests(tests, start, NULL);
}
