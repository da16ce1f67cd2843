/*
 * Proves where options get their values: the program's own string, which names blanks in any number
 * and names in any case; the environment, which goes before it; neither where options are locked,
 * by the environment or by the string; in a set-user-ID process the string alone; and run time, for
 * those that can change, each of which does. Every refusal of the calls is made.
 * How it was compiled and its environment say what is to be expected.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>
#ifndef SHARED
#include "pages/purge.h"
#include "report/report.h"
#endif

#define TEN(x) x x x x x x x x x x
#ifdef LOCKS
const char *stook_options = "options=off decay_ms=77";
#elif defined(LONG)
const char *stook_options = "decay_ms=77 suppress=" TEN(TEN("abcdefghij")) " thp=never "
                            "symbolizer=" TEN(TEN("abcdefghij")) " capacity=7";
#elif !defined(PLAIN)
const char *stook_options = "  decay_ms=76\tTHP=never on_fault=log \n capacity=9 fraction=7 "
                            "DECAY_MS=77 ";
#endif

static bool locked, secure;

static unsigned source_of(const char *name);

static void check(const char *name, const char *value, unsigned source)
{
        char text[STOOK_OPTION_VALUE_BYTES];

        assert_int_equal(stook_option_get(name, text, sizeof(text)), 0);
        assert_string_equal(text, value);
        assert_int_equal(source_of(name), source);
}

static void test_sources(void **state)
{
        bool set = getenv("STOOK_DECAY_MS") && !secure && !locked;

        (void)state;
#ifdef PLAIN
        if (set)
                check("decay_ms", getenv("STOOK_DECAY_MS"), STOOK_OPTION_ENVIRONMENT);
        else
                assert_int_equal(source_of("decay_ms"), STOOK_OPTION_DEFAULT);
        check("capacity", "", STOOK_OPTION_DEFAULT);
        check("thp", "auto", STOOK_OPTION_DEFAULT);
#else
        if (set)
                check("decay_ms", getenv("STOOK_DECAY_MS"), STOOK_OPTION_ENVIRONMENT);
        else
                check("decay_ms", "77", STOOK_OPTION_PROGRAM);
#ifdef LONG
        check("thp", "never", STOOK_OPTION_PROGRAM);
        check("capacity", "", STOOK_OPTION_DEFAULT);            /* it had no room */
#elif !defined(LOCKS)
        check("thp", "never", STOOK_OPTION_PROGRAM);
        check("on_fault", "log", STOOK_OPTION_PROGRAM);
        check("Capacity", "9", STOOK_OPTION_PROGRAM);
        assert_int_equal(stook_option_get("fraction", (char[8]){ 0 }, 8), -ENOENT);
#endif
#endif
#ifndef SHARED
        assert_int_equal(stook_pages_decay_ms(), set ? 88 : source_of("decay_ms") ? 77 : 1000);
#endif
        check("harden", getenv("STOOK_HARDEN") && !secure && !locked ? "0" : "",
              getenv("STOOK_HARDEN") && !secure && !locked ? STOOK_OPTION_ENVIRONMENT
                                                           : STOOK_OPTION_DEFAULT);
}

/* ---- each ---- */

struct walk {
        const char *wanted;
        unsigned seen, found, may_change;
        char last[STOOK_OPTION_NAME_BYTES];
};

static int look(const struct stook_option *option, void *data)
{
        struct walk *walk = data;

        assert_true(strcmp(walk->last, option->name) < 0);
        strcpy(walk->last, option->name);
        walk->seen++;
        walk->may_change += option->may_change;
        if (walk->wanted && !strcasecmp(walk->wanted, option->name)) {
                walk->found = option->source + 1;
                return 7;
        }
        return 0;
}

static unsigned source_of(const char *name)
{
        struct walk walk = { .wanted = name };

        assert_int_equal(stook_option_for_each(look, &walk), 7);
        return walk.found - 1;
}

static void test_each(void **state)
{
        struct walk walk = { 0 };

        (void)state;
        assert_int_equal(stook_option_for_each(look, &walk), 0);
        assert_true(walk.seen > 20);
        assert_int_equal(walk.may_change, 6);
        assert_int_equal(stook_option_for_each(NULL, NULL), -EINVAL);
}

/* ---- set ---- */

static void changes(const char *name, const char *from, const char *to)
{
        char before[STOOK_OPTION_VALUE_BYTES], text[STOOK_OPTION_VALUE_BYTES];

        assert_int_equal(stook_option_get(name, before, sizeof(before)), 0);
        if (locked) {
                assert_int_equal(stook_option_set(name, from), -EPERM);
                assert_int_equal(stook_option_get(name, text, sizeof(text)), 0);
                assert_string_equal(text, before);
                return;
        }
        assert_int_equal(stook_option_set(name, from), 0);
        check(name, from, STOOK_OPTION_SET);
        assert_int_equal(stook_option_set(name, to), 0);
        check(name, to, STOOK_OPTION_SET);
        assert_int_equal(stook_option_set(name, "neither"), -EINVAL);
        assert_int_equal(stook_option_set(name, ""), -EINVAL);
        check(name, to, STOOK_OPTION_SET);
}

static void test_set(void **state)
{
        bool group = getenv("STOOK_GROUP_LIMIT") && !secure;
        struct stook_mode mode = { .mode_size = sizeof(mode) };
        char text[STOOK_OPTION_VALUE_BYTES];

        (void)state;
        changes("decay_ms", "5", "3600000");
        changes("THP", "always", "never");
        changes("on_fault", "isolate", "abort");
        changes("rcu_backlog", "4096", "1000000");
        changes("maintenance", "1", "0");
        if (locked)
                return;
        assert_int_equal(stook_option_set("rcu_backlog", "0"), 0);
        assert_int_equal(stook_option_get("rcu_backlog", text, sizeof(text)), 0);
        assert_true(strtoull(text, NULL, 10) > 1000000);        /* an eighth of what there is */
        stook_rcu_set_limit(4711, 1000);
        check("rcu_backlog", "4711", STOOK_OPTION_SET);
        stook_rcu_set_limit(0, 1000);
#ifndef SHARED
        assert_int_equal(stook_pages_decay_ms(), 3600000);
        assert_false(stook_report_goes_on());
#endif
        assert_int_equal(stook_get_mode(&mode), 0);
        assert_string_equal(mode.thp, "never");
        assert_int_equal(stook_option_set("decay_ms", "3600001"), -EINVAL);
        if (group) {
                check("group_limit", "1073741824", STOOK_OPTION_ENVIRONMENT);
                assert_int_equal(stook_option_set("group_limit", "2M"), 0);
                check("group_limit", "2097152", STOOK_OPTION_SET);
                assert_null(stook_malloc(3 << 20));
                assert_int_equal(stook_option_set("group_limit", "2X"), -EINVAL);
                assert_int_equal(stook_option_set("group_limit", "0"), 0);
        } else {
                assert_int_equal(stook_option_set("group_limit", "2M"), -ENOTSUP);
        }
}

static void test_refused(void **state)
{
        char text[8];
        struct rlimit before, none;

        (void)state;
        assert_int_equal(stook_option_get(NULL, text, sizeof(text)), -EINVAL);
        assert_int_equal(stook_option_get("thp", NULL, 0), -EINVAL);
        assert_int_equal(stook_option_get("th", text, sizeof(text)), -ENOENT);
        assert_int_equal(stook_option_get("thpp", text, sizeof(text)), -ENOENT);
        assert_int_equal(stook_option_get("", text, sizeof(text)), -ENOENT);
        strcpy(text, "kept");
        assert_int_equal(stook_option_get("thp", text, 4), -ERANGE);
        assert_int_equal(stook_option_get("thp", text, 0), -ERANGE);
        assert_string_equal(text, "kept");
        assert_int_equal(stook_option_set(NULL, "1"), -EINVAL);
        assert_int_equal(stook_option_set("thp", NULL), -EINVAL);
        assert_int_equal(stook_option_set("th", "never"), -ENOENT);
        assert_int_equal(stook_option_set("debug", "F"), locked ? -EPERM : -ENOTSUP);
        if (locked)
                return;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        return;                         /* a sanitizer needs memory to make a thread, and ends */
#endif
        /* No thread was started yet, so libc keeps no stack for one. */
        assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
        none = (struct rlimit){ 0, before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
        assert_int_equal(stook_option_set("maintenance", "1"), -EAGAIN);
        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
        check("maintenance", "0", STOOK_OPTION_DEFAULT);
}

/* ---- set-user-ID ---- */

/* A copy of this program that belongs to another user, with the set-user-ID bit. */
static void test_set_user_id(void **state)
{
        char path[] = "/tmp/stook-options-XXXXXX", bytes[65536];
        int from = open("/proc/self/exe", O_RDONLY), to = mkstemp(path), code = -1;
        ssize_t n;
        pid_t pid;

        (void)state;
        assert_true(from >= 0 && to >= 0);
        while ((n = read(from, bytes, sizeof(bytes))) > 0)
                assert_int_equal(write(to, bytes, (size_t)n), n);
        close(from);
#ifdef __SANITIZE_ADDRESS__
        close(to);
        unlink(path);
        skip();                         /* its leak check refuses to run in such a program */
#endif
        if (geteuid() || fchown(to, 65534, 65534) || fchmod(to, 04755)) {
                close(to);
                unlink(path);
                skip();                 /* root makes a set-user-ID program */
        }
        close(to);
        pid = fork();
        if (!pid) {
                setenv("STOOK_DECAY_MS", "88", 1);
                setenv("STOOK_HARDEN", "0", 1);
                execl(path, path, "set-user-ID", NULL);
                _exit(1);
        }
        assert_int_equal(waitpid(pid, &code, 0), pid);
        unlink(path);
        assert_true(WIFEXITED(code));
        /* 127: the loader does not look for libstook.so beside a set-user-ID program. */
        if (WEXITSTATUS(code) == 77 || WEXITSTATUS(code) == 127)
                skip();
        assert_int_equal(WEXITSTATUS(code), 0);
}

int main(int argc, char **argv)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sources),
                cmocka_unit_test(test_each),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_set),
                cmocka_unit_test(test_set_user_id),
        };
        static const struct CMUnitTest of_secure[] = {
                cmocka_unit_test(test_sources),
                cmocka_unit_test(test_set),
        };

        secure = argc > 1 && !strcmp(argv[1], "set-user-ID");
        locked = getenv("STOOK_OPTIONS") && !secure;
#if defined(LOCKS) || STOOK_OPTIONS_LOCKED
        locked = true;
#endif
        if (secure && !getauxval(AT_SECURE))
                return 77;              /* mounted without set-user-ID programs */
        return secure ? cmocka_run_group_tests_name("set-user-ID", of_secure, NULL, NULL)
                      : cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
