/*
 * Proves: while huge faults take longer than as many bytes in small faults, no more huge pages are
 * asked for, and after a time one of them is tried again. One that is dear among others, or is not
 * known, changes nothing, and where they are cheap all is as if no fault was timed. How long a
 * fault takes is the test's to say, and so is the time that passes between them. Nothing is timed
 * in a process that asks for no huge pages, or for as many as it can.
 */
#include <sys/syscall.h>

#include "base/inject.h"
#include "huge_env.h"

#define MIB      ((size_t)1 << 20)
#define PIECE    ((size_t)100 << 10)
#define SMALL_NS 1000                   /* a small fault */
#define CHEAP    (512 * SMALL_NS)
#define AGAIN_MS 10000                  /* advice.c */

static uint64_t now_ms = 4294960000u;   /* the low 32 bits wrap while the tests run */
static uint64_t huge_ns = CHEAP;        /* the next huge faults; 0: not known */
static bool every_other;                /* of the next huge faults is cheap */
static unsigned huge_faults, small_timings;

/* In place of libc's: the coarse clock is the test's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
        if (clock != CLOCK_MONOTONIC_COARSE)
                return (int)syscall(SYS_clock_gettime, clock, now);
        now->tv_sec = (time_t)(now_ms / 1000);
        now->tv_nsec = (long)(now_ms % 1000) * 1000000;
        return 0;
}

static uint64_t fault_ns(unsigned pages)
{
        if (pages > 1) {
                small_timings++;
                return (uint64_t)pages * SMALL_NS;
        }
        huge_faults++;
        return every_other && huge_faults % 2 ? CHEAP : huge_ns;
}

static size_t held, huge_pieces;

/* More pieces, all written, until so many bytes are taken. Return: bytes of them that are huge. */
static size_t grow_to(size_t until)
{
        size_t before = huge_pieces;

        stook_inject.fault_ns = fault_ns;
        while (held < until) {
                struct stook_span *span = stook_span_take(0, PIECE, 0);

                assert_non_null(span);
                span->kind = STOOK_SPAN_LARGE;
                for (size_t at = 0; at < span->bytes; at += 4096)
                        assert_int_equal(*(uint64_t *)(span->start + at), 0);
                memset((void *)span->start, 7, span->bytes);
                held += span->bytes;
                huge_pieces += stook_huge_is_advised(span->start);
        }
        return (huge_pieces - before) * PIECE;
}

static void cheap_ones_go_on(void **state)
{
        (void)state;
        grow_to(30 * MIB);
        assert_int_equal(huge_faults + small_timings, 0);
        assert_in_range(grow_to(200 * MIB), 150 * MIB, 170 * MIB);
        assert_in_range(huge_faults, 4, 85);
        assert_int_equal(small_timings, 1);
        assert_true(stook_huge_dear < STOOK_HUGE_DEAR);
}

static void dear_ones_end(void **state)
{
        (void)state;
        huge_ns = CHEAP + 1;
        assert_in_range(grow_to(200 * MIB), 3 * 2 * MIB, 20 * MIB);
        assert_int_equal(huge_faults, 3);
        assert_int_equal(stook_huge_dear, STOOK_HUGE_DEAR);
        now_ms += AGAIN_MS - 1;
        assert_int_equal(grow_to(250 * MIB), 0);
        assert_int_equal(huge_faults, 3);
}

/* One that is dear again ends it again. Cheap ones go on, which is told, too. */
static void they_are_tried_again(void **state)
{
        size_t at = 200 * MIB;

        (void)state;
        huge_ns = CHEAP + 1;
        grow_to(at);
        for (unsigned i = 0; i < 3; i++) {
                now_ms += AGAIN_MS;
                assert_true(grow_to(at += 100 * MIB) > 0);
                assert_int_equal(huge_faults, 4 + i);
                assert_int_equal(small_timings, 2 + i);
        }
        now_ms += AGAIN_MS;
        huge_ns = CHEAP;
        assert_true(grow_to(at + 200 * MIB) > 150 * MIB);
        assert_true(stook_huge_dear < STOOK_HUGE_DEAR);
}

static void a_few_dear_ones_change_nothing(void **state)
{
        (void)state;
        huge_ns = CHEAP + 1;
        every_other = true;
        assert_true(grow_to(200 * MIB) > 150 * MIB);
        assert_true(huge_faults > 6);
}

static void what_is_not_known_changes_nothing(void **state)
{
        (void)state;
        huge_ns = 0;
        assert_true(grow_to(200 * MIB) > 150 * MIB);
        assert_true(huge_faults > 3);
}

static void a_child_knows_what_its_parent_knows(void **state)
{
        pid_t child;
        int status = -1;

        (void)state;
        huge_ns = CHEAP + 1;
        grow_to(100 * MIB);
        assert_int_equal(huge_faults, 3);
        child = fork();
        if (!child) {
                grow_to(200 * MIB);
                _exit(huge_faults != 3);
        }
        assert_true(child > 0 && waitpid(child, &status, 0) == child);
        assert_int_equal(status, 0);
}

static void nothing_is_timed_with(enum stook_thp policy)
{
        stook_pages_set_thp(policy);
        huge_ns = CHEAP + 1;
        grow_to(200 * MIB);
        assert_int_equal(huge_faults + small_timings, 0);
}

static void always_is_always(void **state)
{
        (void)state;
        nothing_is_timed_with(STOOK_THP_ALWAYS);
        assert_true(huge_pieces * PIECE > 150 * MIB);
}

static void never_is_never(void **state)
{
        (void)state;
        nothing_is_timed_with(STOOK_THP_NEVER);
        assert_int_equal(huge_pieces, 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(cheap_ones_go_on),
                cmocka_unit_test(dear_ones_end),
                cmocka_unit_test(they_are_tried_again),
                cmocka_unit_test(a_few_dear_ones_change_nothing),
                cmocka_unit_test(what_is_not_known_changes_nothing),
                cmocka_unit_test(a_child_knows_what_its_parent_knows),
                cmocka_unit_test(always_is_always),
                cmocka_unit_test(never_is_never),
        };
        int failed = 0;

        if (!has_huge_pages())
                return 77;
        for (unsigned i = 0; i < sizeof(tests) / sizeof(*tests); i++)
                failed |= alone(&tests[i]);
        return failed;
}
