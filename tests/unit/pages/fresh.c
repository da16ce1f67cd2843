/*
 * Proves policy/dirty.c: memory taken from the pages moves the allocation clock, 256 KiB at a time.
 * Clean memory always does; dirty memory once in a 512th of the decay time.
 */
#include <sys/syscall.h>

#include "pages_env.h"
#include "pages/pages_node.h"

#define KIB   ((size_t)1 << 10)
#define MIB   ((size_t)1 << 20)
#define PIECE (64 * KIB)
#define TAKE  (256 * KIB)               /* policy/dirty.c */
#define DECAY 5120
#define APART (DECAY / 512)             /* milliseconds */

static uint64_t now_ms = 1000000;

/* In place of libc's: the clocks of ages are the test's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
        if (clock != CLOCK_MONOTONIC_COARSE && clock != CLOCK_MONOTONIC)
                return (int)syscall(SYS_clock_gettime, clock, now);
        now->tv_sec = (time_t)(now_ms / 1000);
        now->tv_nsec = (long)(now_ms % 1000) * 1000000;
        return 0;
}

/* One piece again and again, until so many bytes were taken. */
static void reuse(size_t bytes)
{
        for (size_t taken = 0; taken < bytes; taken += PIECE) {
                struct stook_span *span = stook_span_take(0, PIECE, 0);

                assert_non_null(span);
                assert_int_equal(span->state, STOOK_SPAN_DIRTY);
                stook_span_give(span);
        }
}

static void clean_memory_is_counted(void **state)
{
        struct stook_span *spans[8];
        uint32_t before = stook_fresh_clean();

        (void)state;
        for (unsigned i = 0; i < 8; i++)
                assert_non_null(spans[i] = stook_span_take(0, TAKE, 0));
        assert_int_equal(stook_fresh_clean(), before + 8);
        for (unsigned i = 0; i < 8; i++)
                stook_span_give(spans[i]);
        stook_pages_purge(0);
}

static void dirty_memory_is_counted_once_in_a_while(void **state)
{
        struct stook_span *span = stook_span_take(0, PIECE, 0);
        uint32_t before;

        (void)state;
        assert_non_null(span);
        stook_span_give(span);          /* it is dirty from here on */
        before = stook_fresh_dirty();
        now_ms += APART;
        reuse(TAKE - PIECE);
        assert_int_equal(stook_fresh_dirty(), before);
        reuse(PIECE);
        assert_int_equal(stook_fresh_dirty(), before + 1);
        now_ms += APART - 1;
        reuse(4 * TAKE);
        assert_int_equal(stook_fresh_dirty(), before + 1);
        now_ms++;
        reuse(TAKE);
        assert_int_equal(stook_fresh_dirty(), before + 2);
        assert_sound();
}

/* Where much is in use, a 256th of it is a take. */
static void a_take_is_a_part_of_what_is_in_use(void **state)
{
        struct stook_span *much[4], *span = stook_span_take(0, PIECE, 0);
        uint32_t before;

        (void)state;
        assert_non_null(span);
        for (unsigned i = 0; i < 4; i++)
                assert_non_null(much[i] = stook_span_take(0, 32 * MIB, 0));
        stook_span_give(span);
        before = stook_fresh_dirty();
        now_ms += APART;
        reuse(TAKE);
        assert_int_equal(stook_fresh_dirty(), before);
        reuse(TAKE);
        assert_int_equal(stook_fresh_dirty(), before + 1);
        for (unsigned i = 0; i < 4; i++)
                stook_span_give(much[i]);
        stook_pages_purge(0);
        assert_sound();
}

static int start(void **state)
{
        (void)state;
        stook_pages_set_decay_ms(DECAY);
        return stook_pages_start() ? 0 : -1;
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test(clean_memory_is_counted),
                cmocka_unit_test(dirty_memory_is_counted_once_in_a_while),
                cmocka_unit_test(a_take_is_a_part_of_what_is_in_use),
        };

        return cmocka_run_group_tests(all, start, NULL);
}
