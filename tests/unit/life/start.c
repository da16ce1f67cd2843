/*
 * What this proves: options are read, nonsense is refused in one line and the default used; the
 * mode is told; start answers once it is up.
 * Options are read at start, so each case is this program run again with its environment.
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
#include <stook/stook.h>

#include "cache/cache.h"
#include "gate/gate.h"
#include "pages/advice.h"
#include "policy/constants.h"

/* What a run of this program with @variable=@value says: facts on stdout, refusals on stderr. */
static void run_with(const char *variable, const char *value, char *out, char *err)
{
        int o[2], e[2], status;
        ssize_t n;
        pid_t pid;

        assert_int_equal(pipe(o), 0);
        assert_int_equal(pipe(e), 0);
        pid = fork();
        if (!pid) {
                dup2(o[1], 1);
                dup2(e[1], 2);
                setenv(variable, value, 1);
                execl("/proc/self/exe", "start", "facts", (char *)NULL);
                _exit(127);
        }
        close(o[1]);
        close(e[1]);
        n = read(o[0], out, 499);
        out[n > 0 ? n : 0] = 0;
        n = read(e[0], err, 499);
        err[n > 0 ? n : 0] = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close(o[0]);
        close(e[0]);
}

static int facts(void)
{
        struct stook_cache *a = stook_cache_create("a", 64, NULL),
                           *b = stook_cache_create("b", 64, NULL);
        struct stook_cache_stats s = { .stats_size = sizeof(s) };
        struct stook_mode mode = { .mode_size = sizeof(mode) };

        stook_cache_free(a, stook_cache_alloc(a));
        stook_cache_get_stats(a, &s);
        stook_get_mode(&mode);
        printf("capacity=%lu slabs=%lu merged=%d thp=%s backend=%s", s.sheaf_capacity, s.slabs,
               a == b, mode.thp, mode.backend);
        return 0;
}

static void option(const char *variable, const char *value, const char *fact)
{
        char out[500], err[500];

        run_with(variable, value, out, err);
        assert_string_equal(err, "");
        if (!strstr(out, fact))
                fail_msg("%s=%s gives %s", variable, value, out);
}

static void nonsense(const char *variable, const char *value, const char *fact)
{
        char out[500], err[500];

        run_with(variable, value, out, err);
        assert_non_null(strstr(err, variable));
        assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);     /* one line */
        if (!strstr(out, fact))
                fail_msg("%s=%s gives %s", variable, value, out);
}

static void options_are_obeyed(void **state)
{
        (void)state;
        option("STOOK_CAPACITY", "5", "capacity=5 ");
        option("STOOK_CAPACITY", "0", "capacity=0 slabs=1 ");
        option("STOOK_CAPACITY", "65534", "capacity=65534 ");
        option("STOOK_TINY", "1", "capacity=0 slabs=0 ");
        option("STOOK_TINY", "0", "capacity=64 slabs=1 ");
        option("STOOK_MERGE", "1", "merged=1");
        option("STOOK_MERGE", "0", "merged=0");
        option("STOOK_MAP_NAMES", "1", "capacity=64");
        option("STOOK_THP", "never", "thp=never");
        option("STOOK_THP", "system", "thp=system");
        option("STOOK_THP", "always", "thp=always");
        option("STOOK_SLOTS", "locked", "backend=locked");
        option("STOOK_DECAY_MS", "0", "capacity=64");
        option("STOOK_ON_FAULT", "report", "capacity=64");
}

static void nonsense_is_refused(void **state)
{
        (void)state;
        nonsense("STOOK_CAPACITY", "65535", "capacity=64");
        nonsense("STOOK_CAPACITY", "-1", "capacity=64");
        nonsense("STOOK_CAPACITY", "", "capacity=64");
        nonsense("STOOK_CAPACITY", "12x", "capacity=64");
        nonsense("STOOK_CAPACITY", "99999999999999999999999", "capacity=64");
        nonsense("STOOK_TINY", "2", "capacity=64");
        nonsense("STOOK_MERGE", "2", "merged=0");
        nonsense("STOOK_MAP_NAMES", "yes", "capacity=64");
        nonsense("STOOK_THP", "sometimes", "thp=auto");
        nonsense("STOOK_SLOTS", "fast", "capacity=64");
        nonsense("STOOK_DECAY_MS", "1h", "capacity=64");
        nonsense("STOOK_ON_FAULT", "ignore", "capacity=64");
}

static void the_mode_is_told(void **state)
{
        struct stook_mode mode = { .mode_size = sizeof(mode) };

        (void)state;
        assert_true(stook_gate_start());
        assert_int_equal(stook_get_mode(&mode), 0);
        assert_true(!strcmp(mode.backend, "rseq") || !strcmp(mode.backend, "locked"));
        assert_int_equal(mode.page_bytes, sysconf(_SC_PAGESIZE));
        assert_string_equal(mode.thp, "auto");
        stook_huge_dear = STOOK_HUGE_DEAR;
        assert_int_equal(stook_get_mode(&mode), 0);
        assert_string_equal(mode.thp, "auto-dear");
        stook_huge_dear = 0;
        assert_true(mode.slots >= mode.slots_ready);
        assert_true(mode.nodes >= 1);
        mode.mode_size = 1;
        assert_int_not_equal(stook_get_mode(&mode), 0);
        assert_int_not_equal(stook_get_mode(NULL), 0);
}

/* So few that all of them may lie free, whatever was purged before. */
#define TRIMMED 900

static void trim_gives_memory_back(void **state)
{
        struct stook_cache *cache = stook_cache_create("trim", 1000, NULL);
        static void *objects[TRIMMED];

        (void)state;
        for (int i = 0; i < TRIMMED; i++)
                memset(objects[i] = stook_cache_alloc(cache), 1, 1000);
        for (int i = 0; i < TRIMMED; i++)
                stook_cache_free(cache, objects[i]);
        assert_true(stook_trim(0) > (1 << 19));
        stook_maintain();
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test(options_are_obeyed),
                cmocka_unit_test(nonsense_is_refused),
                cmocka_unit_test(the_mode_is_told),
                cmocka_unit_test(trim_gives_memory_back),
        };

        if (argc > 1 && !strcmp(argv[1], "facts"))
                return facts();
        return cmocka_run_group_tests(all, NULL, NULL);
}
