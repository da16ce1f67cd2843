/*
 * What this proves: variables are found by their whole name, in no environment too; not in a
 * set-user-ID process, where spelling is not looked at, either; a refusal is one line and one
 * write; stderr that is gone costs nothing; errno survives.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "child.h"
#include "os/os.h"
#include "process/process.h"

static void found_by_its_whole_name(void **state)
{
        (void)state;
        setenv("STOOK_TEST_LONGER", "no", 1);
        setenv("TOOK_TEST", "no", 1);
        unsetenv("STOOK_TEST");
        assert_null(stook_os_env("STOOK_TEST"));
        setenv("STOOK_TEST", "yes=yes", 1);
        assert_string_equal(stook_os_env("STOOK_TEST"), "yes=yes");
        setenv("STOOK_TEST", "", 1);
        assert_string_equal(stook_os_env("STOOK_TEST"), "");
        assert_null(stook_os_env("STOOK_TES"));
}

static void no_environment(void)
{
        setenv("STOOK_TEST", "yes", 1);
        clearenv();
        CHECK(!stook_os_env("STOOK_TEST"));
}

static void none_found_in_none(void **state)
{
        (void)state;
        assert_child_fine(no_environment);
}

/* A copy of this program that belongs to another user, with the set-user-ID bit. */
static void run_set_user_id(void)
{
        char path[] = "/tmp/stook-env-XXXXXX", bytes[65536];
        int from = open("/proc/self/exe", O_RDONLY), to = mkstemp(path), code;
        ssize_t n;
        pid_t pid;

        CHECK(from >= 0 && to >= 0);
        while ((n = read(from, bytes, sizeof(bytes))) > 0)
                CHECK(write(to, bytes, (size_t)n) == n);
        if (geteuid() || fchown(to, 65534, 65534) || fchmod(to, 04755)) {
                unlink(path);
                NEEDS(!"root, to make a set-user-ID program");
        }
        close(to);
        setenv("STOOK_TEST", "yes", 1);
        pid = fork();
        if (!pid) {
                execl(path, path, "set-user-ID", NULL);
                _exit(CHILD_FAILED);
        }
        waitpid(pid, &code, 0);
        unlink(path);
        CHECK(WIFEXITED(code));
        _exit(WEXITSTATUS(code));
}

static int as_set_user_id(void)
{
        int ends[2];
        char byte;

        NEEDS(getauxval(AT_SECURE));
        CHECK(getenv("STOOK_TEST"));
        CHECK(!stook_os_env("STOOK_TEST"));
        CHECK(!pipe2(ends, O_NONBLOCK) && dup2(ends[1], 2) == 2);
        setenv("STOOK_SLOT", "rseq", 1);
        stook_env_check_spelling();
        CHECK(read(ends[0], &byte, 1) == -1 && errno == EAGAIN);
        return CHILD_FINE;
}

static void not_in_a_set_user_id_process(void **state)
{
        (void)state;
        assert_child_fine(run_set_user_id);
}

static void refuse_into_a_pipe(void)
{
        char text[256], value[10000] = { 0 };
        int ends[2];
        ssize_t n;

        /* Of a packet pipe, a read gives what one write put. */
        CHECK(!pipe2(ends, O_DIRECT) && dup2(ends[1], 2) == 2);
        errno = 4711;
        stook_os_env_refuse("STOOK_X", "many", "a number");
        CHECK(errno == 4711);
        n = read(ends[0], text, sizeof(text) - 1);
        CHECK(n > 0);
        text[n] = 0;
        CHECK(!strcmp(text, "stook: STOOK_X=many: takes a number\n"));
        stook_os_env_refuse("STOOK_X", "a\nb", "a number");
        n = read(ends[0], text, sizeof(text) - 1);
        CHECK(n > 0);
        text[n] = 0;
        CHECK(!strcmp(text, "stook: STOOK_X=a: takes a number\n"));
        memset(value, 'x', sizeof(value) - 1);
        stook_os_env_refuse("STOOK_X", value, "a number");
        n = read(ends[0], text, sizeof(text) - 1);
        CHECK(n > 100 && n < 200 && text[n - 1] == '\n');
}

static void a_refusal_is_one_write(void **state)
{
        (void)state;
        assert_child_fine(refuse_into_a_pipe);
}

static void write_to_a_full_pipe(void)
{
        static char bytes[1 << 20];
        int ends[2];

        memset(bytes, 'x', sizeof(bytes));
        CHECK(!pipe2(ends, O_NONBLOCK) && dup2(ends[1], 2) == 2);
        errno = 4711;
        stook_os_write(bytes, sizeof(bytes));
        close(2);
        stook_os_write("gone", 4);
        stook_os_env_refuse("STOOK_X", "many", "a number");
        CHECK(errno == 4711);
        CHECK(read(ends[0], bytes, sizeof(bytes)) >= 4096);
}

static void stderr_may_be_full_or_gone(void **state)
{
        (void)state;
        assert_child_fine(write_to_a_full_pipe);
}

static void interrupt(int signal)
{
        (void)signal;
}

/* Signals cut the write short while the reader is slow. */
static void write_in_pieces(void)
{
        static char bytes[300000], back[300000];
        const struct itimerval often = { { 0, 500 }, { 0, 500 } };
        const struct sigaction action = { .sa_handler = interrupt };
        int ends[2];
        size_t got = 0;
        ssize_t n;

        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (char)(i * 7 + i / 251);
        CHECK(!pipe(ends));
        if (!fork()) {
                dup2(ends[1], 2);
                sigaction(SIGALRM, &action, NULL);
                setitimer(ITIMER_REAL, &often, NULL);
                stook_os_write(bytes, sizeof(bytes));
                _exit(0);
        }
        close(ends[1]);
        while (got < sizeof(back)) {
                size_t left = sizeof(back) - got;

                n = read(ends[0], back + got, left < 4096 ? left : 4096);
                CHECK(n > 0);
                got += (size_t)n;
                /*
                 * now and then the pipe stays full for several signals: a write of nothing, EINTR
                 */
                usleep(got % (10 * 4096) ? 100 : 3000);
        }
        CHECK(got == sizeof(bytes) && !memcmp(bytes, back, got));
        CHECK(read(ends[0], back, 1) == 0);
}

static void all_is_written(void **state)
{
        (void)state;
        assert_child_fine(write_in_pieces);
}

static void abort_aborts(void **state)
{
        (void)state;
        assert_int_equal(run_child((void (*)(void))stook_os_abort), 128 + SIGABRT);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(found_by_its_whole_name),
                cmocka_unit_test(none_found_in_none),
                cmocka_unit_test(not_in_a_set_user_id_process),
                cmocka_unit_test(a_refusal_is_one_write),
                cmocka_unit_test(stderr_may_be_full_or_gone),
                cmocka_unit_test(all_is_written),
                cmocka_unit_test(abort_aborts),
        };

        if (argc > 1 && !strcmp(argv[1], "set-user-ID"))
                return as_set_user_id();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
