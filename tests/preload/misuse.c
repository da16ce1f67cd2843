/*
 * Proves what the drop-in reports when a program errs. A pointer into the drop-in's memory that is
 * no live object is reported by name, in one line. Then the process aborts, or goes on where
 * STOOK_ON_FAULT=report. A foreign pointer goes to the next allocator, which decides.
 */
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "one_cpu.h"

static void *volatile sink;             /* hides from the compiler what it would warn of */

static void *hidden(void *object)
{
        sink = object;
        return sink;
}

static void twice(void)
{
        char *volatile object = malloc(100);

        free(hidden(object));
        free(hidden(object));
}

static void twice_large(void)
{
        char *volatile object = malloc(1000000);

        free(hidden(object));
        free(hidden(object));
}

/* Not the last one freed: found when its sheaf goes back to the slabs. */
static void twice_deep(void)
{
        static void *objects[1000];

        for (int i = 0; i < 1000; i++)
                objects[i] = malloc(64);
        for (int i = 0; i < 1000; i++)
                free(objects[i]);
        free(hidden(objects[10]));
        malloc_trim(0);
}

static void interior(void)
{
        free(hidden((char *)malloc(100) + 16));
}

static void misaligned(void)
{
        free(hidden((char *)malloc(100) + 1));
}

static void interior_large(void)
{
        free(hidden((char *)malloc(1000000) + 4096));
}

static void interior_resize(void)
{
        sink = realloc(hidden((char *)malloc(100) + 48), 10);
}

static void resize_after_free(void)
{
        char *volatile object = malloc(3000000);

        free(object);
        sink = realloc(hidden(object), 10);
}

/* Far behind everything that was ever handed out, but in our range. */
static void never_handed_out(void)
{
        char *volatile object = malloc(5000000);

        free(hidden(object + ((size_t)1 << 30)));
}

static void of_the_stack(void)
{
        /*
         * As glibc sees it: of size 0, which is no object's. Volatile: no compiler thinks that free
         * reads it.
         */
        volatile char local[64] = { 0 };
        uintptr_t addr = (uintptr_t)local;

        free(hidden((void *)(addr + 16 - addr % 16)));
}

static void sized_and_aligned(void)
{
        void free_aligned_sized(void *, size_t, size_t);
        char *volatile object = malloc(100);

        free_aligned_sized(hidden(object), 64, 100);    /* wrong, and harmless */
        free_aligned_sized(hidden(object), 64, 100);
}

/* What a child that does @fault, or with a policy all of again(), prints, and how it ends. */
static int outcome(void (*fault)(void), const char *policy, char *text, size_t bytes)
{
        int   ends[2], status;
        pid_t child;
        size_t got = 0;
        ssize_t n;

        assert_int_equal(pipe(ends), 0);
        child = fork();
        assert_true(child >= 0);
        if (!child) {
                setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
                signal(SIGABRT, SIG_DFL);
                dup2(ends[1], STDERR_FILENO);
                stay_on_one_cpu();
                if (policy) {                           /* read once, at start: a fresh process */
                        setenv("STOOK_ON_FAULT", policy, 1);
                        execl("/proc/self/exe", "misuse", "again", (char *)NULL);
                        _exit(97);
                }
                fault();
                _exit(0);
        }
        close(ends[1]);
        while (got < bytes - 1 && (n = read(ends[0], text + got, bytes - 1 - got)) > 0)
                got += (size_t)n;
        text[got] = '\0';
        close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        return status;
}

static void reported(void (*fault)(void), const char *words)
{
        char text[4096];
        int  status = outcome(fault, NULL, text, sizeof(text));
        char *line = strchr(text, '\n');

        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
                fail_msg("status 0x%x, not an abort; text: %s", status, text);
        if (strncmp(text, "stook: ", 7) || !strstr(text, words))
                fail_msg("no report of \"%s\": %s", words, text);
        /* One report: the lines behind its first one are indented. */
        assert_non_null(line);
        for (; line && line[1]; line = strchr(line + 1, '\n'))
                assert_int_equal(line[1], ' ');
}

static void test_double_frees(void **state)
{
        (void)state;
        reported(twice, "double free");
        reported(twice_large, "no live object");
        reported(twice_deep, "double free");
        reported(sized_and_aligned, "double free");
}

static void test_pointers_into_objects(void **state)
{
        (void)state;
        reported(interior, "interior");
        reported(misaligned, "interior");
        reported(interior_large, "no live object");
        reported(interior_resize, "interior");
}

static void test_pointers_to_nothing(void **state)
{
        (void)state;
        reported(resize_after_free, "no live object");
        reported(never_handed_out, "no live object");
}

static void test_foreign_pointers_are_not_ours_to_judge(void **state)
{
        char text[4096];
        int  status = outcome(of_the_stack, NULL, text, sizeof(text));

        (void)state;
#ifdef __GLIBC__
        assert_true(WIFSIGNALED(status));               /* its verdict; musl may find no fault */
#else
        (void)status;
#endif
        assert_null(strstr(text, "stook:"));
}

/* What "again" runs: several faults, and a heap that works after them. */
static int again(void)
{
        twice();
        interior();
        twice_large();
        for (int i = 0; i < 100000; i++) {
                char *object = malloc((size_t)i % 3000);

                if (!object)
                        return 1;
                free(object);
        }
        return 0;
}

static void test_going_on_after_a_report(void **state)
{
        char text[4096];
        int  status = outcome(twice, "report", text, sizeof(text));
        int  lines = 0;

        (void)state;
        assert_int_equal(status, 0);
        for (char *at = text; (at = strstr(at, "stook: ")); at++)
                lines++;
        assert_int_equal(lines, 3);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_double_frees),
                cmocka_unit_test(test_pointers_into_objects),
                cmocka_unit_test(test_pointers_to_nothing),
                cmocka_unit_test(test_foreign_pointers_are_not_ours_to_judge),
                cmocka_unit_test(test_going_on_after_a_report),
        };

        if (argc > 1 && !strcmp(argv[1], "again"))
                return again();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
