/*
 * What this proves: the grammar of STOOK_DEBUG. Each text is read in a child of its own, as a
 * process reads one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "debug/debug_modes.h"

#define F STOOK_CACHE_CHECK
#define Z STOOK_CACHE_RED_ZONE
#define P STOOK_CACHE_POISON
#define U STOOK_CACHE_STORE_USER
#define Q STOOK_CACHE_QUARANTINE
#define REFUSED (UINT64_C(1) << 63)

static const struct {
        const char *text, *name;
        uint64_t wanted;                /* REFUSED: by one line */
} cases[] = {
        { "", "conn", 0 },
        { "F", "conn", F },
        { "fzpu", "conn", F | Z | P | U },
        { "FZ,conn", "conn", F | Z },
        { "FZ,conn", "connection", 0 },
        { "FZ,conn*", "connection", F | Z },
        { "FZ,*", "anything", F | Z },
        { "FZ,a,b,c*", "b", F | Z },
        { "FZ,a,b,c*", "cc", F | Z },
        { "FZ,a,b,c*", "d", 0 },
        { ",conn", "conn", F | Z | P | U },
        { ",conn", "other", 0 },
        { "P,conn;U,malloc-*", "malloc-64", U },
        { "P,conn;U,conn*", "conn", P },        /* the first block that names it */
        { "P;U,conn", "conn", U },              /* whatever comes before */
        { "P;U,conn", "other", P },
        { "P;U", "other", U },                  /* the last block without names */
        { "-,conn;FZ", "conn", 0 },
        { "-,conn;FZ", "other", F | Z },
        { "T;", "x", STOOK_CACHE_TRACE },
        { "AO", "x", STOOK_CACHE_MAY_FAIL | STOOK_DEBUG_O },
        { "Q", "x", Q },
        { "ZC", "x", Z | STOOK_DEBUG_C },
        { "Z=64Q=4K", "x", Z | Q },
        { "Q=4096", "x", Q },
        { "FZ=guardU,x", "x", F | Z | U },
        { "Z=guards", "x", REFUSED },
        { "Z=guar", "x", REFUSED },
        { "Q=guard", "x", REFUSED },
        { "PQ=16M,x", "x", P | Q },
        { "FX", "x", REFUSED },
        { "F Z", "x", REFUSED },
        { "-F", "x", REFUSED },
        { "F,", "x", REFUSED },
        { "F,a,,b", "x", REFUSED },
        { "Q=", "x", REFUSED },
        { "Q=0", "x", REFUSED },
        { "Q=1X", "x", REFUSED },
        { "Q=99999999999999", "x", REFUSED },
        { "F=1", "x", REFUSED },
        { "Z=", "x", REFUSED },
        { "Z=0", "x", REFUSED },
        { "Z=5K", "x", REFUSED },
};

/* In a child. What it writes goes to @out. */
static uint64_t answer(const char *text, const char *name, int out)
{
        dup2(out, STDERR_FILENO);
        setenv("STOOK_DEBUG", text, 1);
        stook_debug_read_options();
        return stook_debug_wanted(name);
}

static void ask(const char *text, const char *name, uint64_t *wanted, char *line, size_t bytes)
{
        int out[2], result[2], status;
        ssize_t n;
        pid_t pid;

        assert_int_equal(pipe(out), 0);
        assert_int_equal(pipe(result), 0);
        pid = fork();
        if (!pid) {
                *wanted = answer(text, name, out[1]);
                _exit(write(result[1], wanted, sizeof(*wanted)) != sizeof(*wanted));
        }
        close(out[1]);
        close(result[1]);
        assert_int_equal(read(result[0], wanted, sizeof(*wanted)), sizeof(*wanted));
        n = read(out[0], line, bytes - 1);
        line[n > 0 ? n : 0] = '\0';
        close(out[0]);
        close(result[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void the_grammar(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                char line[1000], expected[1000] = "";
                uint64_t wanted;

                ask(cases[i].text, cases[i].name, &wanted, line, sizeof(line));
                if (cases[i].wanted == REFUSED)
                        snprintf(expected, sizeof(expected), "stook: STOOK_DEBUG=%s: takes "
                                 "LETTERS[,CACHE...][;...], letters of FZ[=BYTES|=guard]PUTAOC "
                                 "and Q[=BYTES], or -\n", cases[i].text);
                if (wanted != (cases[i].wanted & ~REFUSED))
                        fail_msg("%s of %s", cases[i].name, cases[i].text);
                assert_string_equal(line, expected);
        }
}

static void a_text_that_is_too_long(void **state)
{
        char text[2000], line[3000];
        uint64_t wanted;

        (void)state;
        memset(text, 'F', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        ask(text, "x", &wanted, line, sizeof(line));
        assert_int_equal(wanted, 0);
        assert_memory_equal(line, "stook: STOOK_DEBUG=FFF", 22);
}

static void bytes_of_the_quarantine(void **state)
{
        (void)state;
        setenv("STOOK_DEBUG", "Q=3M,a;FQ=16K", 1);
        stook_debug_read_options();
        assert_int_equal(stook_debug_quarantine_bytes(), 16 << 10);     /* the last one */
        assert_true(stook_debug_is_asked());
        assert_int_equal(stook_debug_wanted("a"), Q);
}

static void bytes_of_red_zones(void **state)
{
        (void)state;
        assert_int_equal(stook_debug_zone_bytes(), 16);
        setenv("STOOK_DEBUG", "Z=3,a;FZ=100", 1);
        stook_debug_read_options();
        assert_int_equal(stook_debug_zone_bytes(), 112);                /* the last one */
        assert_int_equal(stook_debug_wanted("a"), Z);
}

static void guards(void **state)
{
        (void)state;
        assert_false(stook_debug_guards());
        setenv("STOOK_DEBUG", "F,a;FZ=guard", 1);
        stook_debug_read_options();
        assert_true(stook_debug_guards());
        assert_int_equal(stook_debug_wanted("b"), F | Z);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_grammar),
                cmocka_unit_test(a_text_that_is_too_long),
                cmocka_unit_test(bytes_of_the_quarantine),
                cmocka_unit_test(bytes_of_red_zones),
                cmocka_unit_test(guards),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
