/*
 * Proves that the backend fits the process, whatever the C library and the kernel offer:
 *  - the C library registers rseq, or it does not, and then the library registers itself;
 *  - the kernel refuses rseq or membarrier with ENOSYS or EPERM;
 *  - STOOK_SLOTS has each of its values.
 * Each case is a process of its own that allocates in several threads. Another case is a membarrier
 * that stops working later: evacuations fail then, and everything else works.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>
#include "cache/cache.h"
#include "evacuate/evacuate.h"
#include "os/os.h"

#ifndef SYS_rseq
#if defined(__x86_64__)
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif

static const char *self;

static void refuse(int number, int error)
{
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = 4, .filter = filter };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
                _exit(77);
}

/* ---- in the child ---- */

static void *work(void *cache)
{
        void *kept[200];

        for (unsigned round = 0; round < 50; round++) {
                for (unsigned i = 0; i < 200; i++) {
                        kept[i] = stook_cache_alloc(cache);
                        if (!kept[i])
                                return "no memory";
                        if (*(void **)kept[i] == cache)
                                return "handed out twice";
                        *(void **)kept[i] = cache;
                }
                for (unsigned i = 0; i < 200; i++) {
                        *(void **)kept[i] = NULL;
                        stook_cache_free(cache, kept[i]);
                }
        }
        return NULL;
}

static const char *work_in_threads(struct stook_cache *cache)
{
        pthread_t threads[4];
        void *answer, *worst = work(cache);

        for (unsigned i = 0; i < 4; i++)
                if (pthread_create(&threads[i], NULL, work, cache))
                        return "no thread";
        for (unsigned i = 0; i < 4; i++) {
                pthread_join(threads[i], &answer);
                worst = worst ? worst : answer;
        }
        return worst;
}

static int child(const char *backend, const char *registration)
{
        struct stook_mode mode = { .mode_size = sizeof(mode) };
        struct stook_cache *cache = stook_cache_create("modes", 64, NULL);
        const char *trouble = cache ? work_in_threads(cache) : "no cache";
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        if (!trouble && stook_get_mode(&mode))
                trouble = "no mode";
        if (!trouble && (strcmp(mode.backend, backend) || strcmp(mode.registration, registration)))
                trouble = "another mode than expected";
        if (!trouble && (stook_cache_get_stats(cache, &stats) || stats.objects_live))
                trouble = "objects are live";
        if (!trouble && (stook_thread_v1.ready != 0) != !strcmp(backend, "rseq"))
                trouble = "on the hot path, or not, against expectation";
        if (!trouble && stook_cache_destroy(cache))
                trouble = "the cache could not be destroyed";
        if (!trouble)
                return 0;
        fprintf(stderr, "%s (%s, %s; wanted %s, %s)\n", trouble, mode.backend, mode.registration,
                backend, registration);
        return 1;
}

/* ---- in the parent ---- */

struct refusal { int number, error; };

/* Runs the child; returns its exit status, and what it wrote to stderr in @said. */
static int run(const char *variable, const char *value, struct refusal refusal, const char *backend,
               const char *registration, char *said, size_t bytes)
{
        int pipe_fd[2], status;
        ssize_t n, all = 0;
        pid_t pid;

        assert_int_equal(pipe(pipe_fd), 0);
        pid = fork();
        if (!pid) {
                dup2(pipe_fd[1], 2);
                close(pipe_fd[0]);
                unsetenv("STOOK_SLOTS");
                if (variable)
                        setenv(variable, value, 1);
                if (refusal.error)
                        refuse(refusal.number, refusal.error);
                execl(self, self, "child", backend, registration, NULL);
                _exit(127);
        }
        close(pipe_fd[1]);
        while ((n = read(pipe_fd[0], said + all, bytes - 1 - (size_t)all)) > 0)
                all += n;
        said[all] = 0;
        close(pipe_fd[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status)
                print_message("%s=%s, %s: %s\n", variable ? variable : "-", value ? value : "",
                              backend, said);
        return status;
}

static const char no_libc[] = "glibc.pthread.rseq=0";
static bool have_rseq;
static const char *by_libc;

static void test_each_way_of_registration(void **state)
{
        static const struct refusal none, rseq[] = { { SYS_rseq, ENOSYS }, { SYS_rseq, EPERM } };
        static const struct refusal membarrier[] = { { SYS_membarrier, ENOSYS },
                                                     { SYS_membarrier, EPERM } };
        char said[500];

        (void)state;
        if (!have_rseq)
                skip();
        assert_int_equal(run(NULL, NULL, none, "rseq", by_libc, said, sizeof(said)), 0);
        assert_int_equal(run("GLIBC_TUNABLES", no_libc, none, "rseq", "own", said, sizeof(said)),
                         0);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(run(NULL, NULL, rseq[i], "locked", "none", said, sizeof(said)), 0);
                assert_int_equal(run("GLIBC_TUNABLES", no_libc, rseq[i], "locked", "none", said,
                                     sizeof(said)),
                                 0);
                assert_int_equal(
                        run(NULL, NULL, membarrier[i], "locked", "none", said, sizeof(said)), 0);
        }
}

static void test_each_value_of_the_variable(void **state)
{
        static const struct refusal none;
        const char *usual = have_rseq ? "rseq" : "locked";
        char said[500];

        (void)state;
        assert_int_equal(run("STOOK_SLOTS", "locked", none, "locked", "none", said, sizeof(said)),
                         0);
        assert_string_equal(said, "");
        assert_int_equal(run("STOOK_SLOTS", "rseq", none, usual, have_rseq ? by_libc : "none", said,
                             sizeof(said)),
                         0);
        assert_string_equal(said, "");
        assert_int_equal(run("STOOK_SLOTS", "rseqs", none, usual, have_rseq ? by_libc : "none",
                             said, sizeof(said)),
                         0);
        assert_non_null(strstr(said, "STOOK_SLOTS"));
        assert_non_null(strstr(said, "rseqs"));
        assert_non_null(strstr(said, "locked"));
}

static int lose_membarrier(void)
{
        struct stook_cache *cache = stook_cache_create("loser", 64, NULL);
        void *a = stook_cache_alloc(cache), *b = stook_cache_alloc(cache);
        size_t before;

        stook_cache_free(cache, a);
        before = stook_slot_objects(&cache->front);
        if (!before || stook_slot_ops() != &stook_section_rseq)
                return 77;
        refuse(SYS_membarrier, EPERM);
        if (stook_evacuate_cache(&cache->front))
                return 1;               /* claims to have evacuated */
        if (stook_slot_objects(&cache->front) != before)
                return 2;               /* touched what it may not touch */
        for (unsigned i = 0; i < 1000; i++) {
                a = stook_cache_alloc(cache);
                if (!a || a == b)
                        return 3;
                stook_cache_free(cache, a);
        }
        return stook_thread_v1.ready ? 0 : 4;
}

static void test_losing_membarrier_costs_evacuations_only(void **state)
{
        int status;
        pid_t pid;

        (void)state;
        if (!have_rseq)
                skip();
        pid = fork();
        if (!pid)
                _exit(lose_membarrier());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_way_of_registration),
                cmocka_unit_test(test_each_value_of_the_variable),
                cmocka_unit_test(test_losing_membarrier_costs_evacuations_only),
        };

        self = argv[0];
        if (argc == 4 && !strcmp(argv[1], "child"))
                return child(argv[2], argv[3]);
        unsetenv("STOOK_SLOTS");
        stook_os_rseq_detect();
        have_rseq = stook_os_rseq_owner() != STOOK_RSEQ_NONE && stook_os_membarrier_register();
        by_libc = stook_os_rseq_owner() == STOOK_RSEQ_OWN ? "own" : "libc";
        return cmocka_run_group_tests(tests, NULL, NULL);
}
