/*
 * What this proves: a guarded sample is an object as any other to its user, but that reads and
 * writes beyond its ends and after its free stop at the instruction, and are reported with the
 * stacks of fault, allocation and free; where reports do not abort the program goes on; at most 64
 * are alive; as many are guarded as the interval predicts; stook_describe says what the header
 * says.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "off_by.h"

#define BYTES 100                       /* no multiple of 16: slack behind it */
#define TRIES 40                        /* each lies at either end, by a coin */
#define MOST  1000000

static uint64_t guarded(void)
{
        struct stook_sampling_stats stats = { .stats_size = sizeof stats };

        assert_int_equal(stook_sampling_get_stats(&stats), 0);
        return stats.guarded;
}

/* Each allocation is a sample, and is guarded as long as there is room. */
static void guard_each(uint64_t interval)
{
        assert_int_equal(stook_sampling_start(&(struct stook_sampling_args){
                .args_size = sizeof(struct stook_sampling_args), .interval = interval,
                .most = MOST, .guard = MOST }), 0);
}

/* ---- bugs, each at an object of BYTES bytes ---- */

static volatile char sink;

static void read_after_free(volatile char *p) { stook_free((void *)p); sink = p[0]; }
static void write_after_free(volatile char *p) { stook_free((void *)p); p[BYTES - 1] = 1; }
static void read_overrun(volatile char *p) { sink = p[BYTES + 100]; stook_free((void *)p); }
static void write_overrun(volatile char *p) { p[BYTES + 100] = 1; stook_free((void *)p); }
static void write_slack(volatile char *p) { p[BYTES] = 1; stook_free((void *)p); }
static void read_underrun(volatile char *p) { sink = p[-1]; stook_free((void *)p); }
static void write_underrun(volatile char *p) { p[-1] = 1; stook_free((void *)p); }
static void double_free(volatile char *p) { stook_free((void *)p); stook_free((void *)p); }

static const struct bug {
        void (*have)(volatile char *object);
        int  signal;
        const char *says, *access;      /* NULL: no access stopped */
        bool freed;                     /* the report has the stack of the free */
} bugs[] = {
        { read_after_free, SIGSEGV, "use after free", "it was read at ", true },
        { write_after_free, SIGSEGV, "use after free", "it was written at ", true },
        { read_overrun, SIGSEGV, "overrun", "it was read at ", false },
        { write_overrun, SIGSEGV, "overrun", "it was written at ", false },
        { write_slack, SIGABRT, "overrun", NULL, true },
        { read_underrun, SIGSEGV, "underrun", "it was read at ", false },
        { write_underrun, SIGSEGV, "underrun", "it was written at ", false },
        { double_free, SIGABRT, "double free", NULL, true },
};

/* The bug in a child, until it is found. What the child said on standard error is in @said. */
static int child_with(const struct bug *bug, char *said, size_t room)
{
        char rest[4096];
        size_t at = 0;
        int ends[2], status;
        ssize_t n;
        pid_t pid;

        assert_int_equal(pipe(ends), 0);
        pid = fork();
        if (!pid) {
                dup2(ends[1], STDERR_FILENO);
                signal(SIGSEGV, SIG_DFL);       /* cmocka's is left alone */
                guard_each(1);
                for (unsigned i = 0; i < TRIES; i++)
                        bug->have(stook_malloc(BYTES));
                _exit(0);
        }
        close(ends[1]);
        while (at < room - 1 && (n = read(ends[0], said + at, room - 1 - at)) > 0)
                at += (size_t)n;
        said[at] = '\0';
        while (read(ends[0], rest, sizeof rest) > 0)    /* or the child waits for room */
                ;
        close(ends[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

/* Not every processor, nor every emulator, tells what an access was. */
static bool says_access(const char *said, const char *access)
{
#ifndef __x86_64__
        if (strstr(said, "it was read or written at "))
                return true;
#endif
        return !access || strstr(said, access);
}

static void bugs_are_found(void **state)
{
        static char said[1 << 16];

        (void)state;
        for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
                int status = child_with(&bugs[i], said, sizeof said);

                if (!WIFSIGNALED(status) || WTERMSIG(status) != bugs[i].signal)
                        fail_msg("bug %zu: status %x, %s", i, status, said);
                assert_non_null(strstr(said, bugs[i].says));
                assert_true(says_access(said, bugs[i].access));
                assert_non_null(strstr(said, "allocated"));
                assert_int_equal(strstr(said, "freed") != NULL, bugs[i].freed);
                assert_non_null(strstr(said, "#0 "));
        }
}

static void goes_on(void **state)
{
        static char said[1 << 16];

        (void)state;
        assert_int_equal(stook_option_set("on_fault", "log"), 0);
        for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
                assert_int_equal(child_with(&bugs[i], said, sizeof said), 0);
                assert_non_null(strstr(said, bugs[i].says));
        }
        assert_int_equal(stook_option_set("on_fault", "abort"), 0);
}

/* ---- objects ---- */

static void guarded_are_objects(void **state)
{
        uint64_t before;

        (void)state;
        guard_each(1);
        before = guarded();
        for (size_t i = 0; i < 600; i++) {
                size_t size = 1 + i * 7 % 4000, align = i % 5 ? 16 : 64;
                unsigned char *p = i % 5 == 0 ? stook_aligned_alloc(align, size)
                                   : i % 3   ? stook_malloc(size) : stook_calloc(1, size);

                assert_non_null(p);
                assert_int_equal(off_by(p, align), 0);
                assert_true(stook_owns(p));
                assert_true(stook_usable_size(p) >= size);
                for (size_t b = 0; i % 5 && i % 3 == 0 && b < size; b++)
                        assert_int_equal(p[b], 0);
                memset(p, (int)i | 1, size);
                p = stook_realloc(p, size * 2);
                assert_non_null(p);
                for (size_t b = 0; b < size; b++)
                        assert_int_equal(p[b], (unsigned char)(i | 1));
                p = stook_realloc(p, size / 3 + 1);
                assert_non_null(p);
                assert_int_equal(p[0], (unsigned char)(i | 1));
                stook_free(p);
        }
        assert_true(guarded() - before >= 600);
        assert_int_equal(stook_sampling_stop(), 0);
        assert_int_equal(stook_validate_all(), 0);
}

static void at_most_64(void **state)
{
        static void *objects[300];
        uint64_t before = guarded();

        (void)state;
        guard_each(1);
        for (size_t i = 0; i < 300; i++)
                assert_non_null(objects[i] = stook_malloc(BYTES));
        assert_true(guarded() - before <= 64);
        assert_true(guarded() - before >= 32);          /* then one call has two at most */
        for (size_t i = 0; i < 300; i++)
                stook_free(objects[i]);
        assert_int_equal(stook_sampling_stop(), 0);
}

/*
 * The class has 112 bytes, and one in 200 * 112 bytes is sampled: p = 1 - exp(-1 / 200). A bug of a
 * call is found after 1 / p calls in the mean. Of n calls n p are guarded, with a variance of
 * n p (1 - p); seven deviations are allowed for.
 */
static void as_many_as_predicted(void **state)
{
        const double n = 40000, p = 0.00498752;
        double off = n * p + (double)guarded();

        (void)state;
        guard_each(200 * 112);
        for (int i = 0; i < (int)n; i++)
                stook_free(stook_malloc(BYTES));
        off -= (double)guarded();
        assert_true(off * off < 7 * 7 * n * p * (1 - p));
        assert_int_equal(stook_sampling_stop(), 0);
}

static void describes(void **state)
{
        static char text[1 << 14];
        char none[2];
        char *p;

        (void)state;
        assert_int_equal(stook_describe(text, NULL, 10), -EINVAL);
        assert_int_equal(stook_describe(text, text, 0), -EINVAL);
        assert_int_equal(stook_describe(none, text, sizeof text), 0);
        assert_string_equal(text, "");
        p = stook_malloc(BYTES);
        assert_true(stook_describe(p + 3, text, sizeof text) > 0);
        assert_non_null(strstr(text, "3 bytes from the start of an object of 112 bytes at 0x"));
        assert_non_null(strstr(text, "of cache malloc-112\n"));
        stook_free(p);
        p = stook_malloc(1 << 20);
        assert_true(stook_describe(p, text, sizeof text) > 0);
        assert_non_null(strstr(text, "0 bytes from the start of a large object of "));
        stook_free(p);
        guard_each(1);
        p = stook_malloc(BYTES);
        assert_true(stook_describe(p - 1, text, sizeof text) > 0);
        assert_ptr_equal(strstr(text, "1 bytes before an object of 100 bytes at 0x"), text);
        assert_non_null(strstr(text, "\n  allocated by thread "));
        assert_null(strstr(text, "freed"));
        stook_free(p);
        assert_int_equal(stook_describe(p + BYTES, text, 30), 29);
        assert_int_equal(strlen(text), 29);
        assert_true(stook_describe(p + BYTES, text, sizeof text) > 0);
        assert_ptr_equal(strstr(text, "0 bytes behind a freed object of 100 bytes at 0x"), text);
        assert_non_null(strstr(text, "\n  freed by thread "));
        assert_int_equal(stook_sampling_stop(), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(describes),
                cmocka_unit_test(bugs_are_found),
                cmocka_unit_test(goes_on),
                cmocka_unit_test(guarded_are_objects),
                cmocka_unit_test(at_most_64),
                cmocka_unit_test(as_many_as_predicted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
