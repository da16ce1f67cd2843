/*
 * What this proves: a helper gets the request and its answer comes back, also a long one; it is no
 * child of this program, gives it no SIGCHLD, runs none of its signal handlers, and has none of its
 * files; what cannot be executed, answers nothing or does not end in time gives no bytes. A file
 * that is added to is made, and keeps what it has.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "process/process.h"

#define PATIENCE_MS 60000               /* for machines under load; never waited for */

static struct stook_helper helper;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
        (void)number;
        signals++;
}

static size_t ask(const char *script, const char *request, size_t bytes, char *answer, size_t room)
{
        char *argv[] = { "/bin/sh", "-c", (char *)(uintptr_t)script, NULL };

        return stook_process_ask_helper(&helper, argv, request, bytes, answer, room, PATIENCE_MS);
}

static void test_answer(void **unused)
{
        char answer[64] = "";

        (void)unused;
        signal(SIGCHLD, on_signal);
        assert_int_equal(ask("read a; echo \"<$a>\"", "question\n", 9, answer, sizeof(answer)), 11);
        assert_memory_equal(answer, "<question>\n", 11);
        assert_int_equal(signals, 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        assert_int_equal(ask("echo 0123456789", "", 0, answer, 4), 4);
        assert_memory_equal(answer, "0123", 4);
}

static void test_long_answer(void **unused)
{
        static char request[1 << 20], answer[1 << 20];

        (void)unused;
        memset(request, 'x', sizeof(request));
        request[sizeof(request) - 1] = 'y';
        /* More than a socket holds: all of it is read first. */
        assert_int_equal(ask("a=$(cat); printf %s \"$a\"", request, sizeof(request), answer,
                             sizeof(answer)), sizeof(request));
        assert_memory_equal(request, answer, sizeof(request));
}

static void test_files_and_signals(void **unused)
{
        char answer[300] = "";
        int fd = open("/dev/null", O_RDONLY);
        size_t n;

        (void)unused;
        assert_true(fd > 2);
        setenv("STOOK_HELPER_TEST", "1", 1);
        n = ask("ls /proc/$$/fd | tr '\\n' ' '; echo \"e$STOOK_HELPER_TEST\"", "", 0, answer,
                sizeof(answer) - 1);
        answer[n] = '\0';
        close(fd);
        /* A shell may keep a file of its own open at 10 or above. */
        assert_memory_equal(answer, "0 1 2 ", 6);
        if (!strstr(answer, "e\n"))
                print_message("%s", answer);
        assert_non_null(strstr(answer, "e\n"));
}

static void test_no_answer(void **unused)
{
        char *nothing[] = { "/nonexistent/stook", NULL };
        /* It is left alone: the test's own stderr must not stay open with it. */
        char *slow[] = { "/bin/sh", "-c", "exec 2>/dev/null; sleep 5", NULL };
        char answer[16];

        (void)unused;
        errno = 77;
        assert_int_equal(stook_process_ask_helper(&helper, nothing, "x", 1, answer, sizeof(answer),
                                             PATIENCE_MS), 0);
        assert_int_equal(ask("exit 1", "x", 1, answer, sizeof(answer)), 0);
        assert_int_equal(stook_process_ask_helper(&helper, slow, "x", 1, answer, sizeof(answer),
                                                  50), 0);
        assert_int_equal(errno, 77);
}

static void test_append(void **unused)
{
        char path[] = "/tmp/stook-append-XXXXXX", text[16] = "";
        int fd = mkstemp(path);

        (void)unused;
        assert_true(fd >= 0);
        unlink(path);
        stook_file_append(path, "one\n", 4);
        stook_file_append(path, "two\n", 4);
        close(fd);
        fd = open(path, O_RDONLY);
        assert_int_equal(read(fd, text, sizeof(text)), 8);
        assert_memory_equal(text, "one\ntwo\n", 8);
        close(fd);
        unlink(path);
        assert_int_equal(stook_file_append("/nonexistent/folder/file", "x", 1), -ENOENT);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answer),
                cmocka_unit_test(test_long_answer),
                cmocka_unit_test(test_files_and_signals),
                cmocka_unit_test(test_no_answer),
                cmocka_unit_test(test_append),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
