/*
 * Proves which system calls the drop-in needs.
 *  - Once started, in any number of threads, only mmap, mremap, madvise, mprotect, munmap and
 *    futex: everything else kills the process, as in the sandboxes of OpenSSH and of browsers. With
 *    musl rseq as well, once for each thread.
 *  - At start none of rseq, membarrier and mbind: each may answer EPERM or ENOSYS, and so may all
 *    of them.
 * The filters are raw BPF: no library besides.
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
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "work.h"

#define THREADS 4
#define LOAD_NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))

/*
 * A filter answers @matched for the calls in @numbers, and @others for the rest. All threads of the
 * process.
 */
static void install(const int *numbers, unsigned count, uint32_t matched, uint32_t others)
{
        struct sock_filter filter[64] = {LOAD_NUMBER};
        struct sock_fprog  program = {.filter = filter};
        unsigned short     n = 1;

        for (unsigned i = 0; i < count; i++) {
                filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                           (uint32_t)numbers[i], 0, 1);
                filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, matched);
        }
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
        program.len = n;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
                _exit(77);
}

static void allow_only_ours(void)
{
        static const int allowed[] = {
                SYS_mmap,   SYS_mremap,         SYS_madvise,         SYS_mprotect,
                SYS_munmap, SYS_futex,          SYS_exit_group, /* ours to end */
                /* libc's, at the end of a thread */
                SYS_exit,   SYS_rt_sigprocmask, SYS_set_robust_list,
#ifndef __GLIBC__
                SYS_rseq,       /* ours, for each thread: this C library does not register any */
#endif
        };

        install(allowed, sizeof(allowed) / sizeof(*allowed), SECCOMP_RET_ALLOW,
                SECCOMP_RET_KILL_PROCESS);
}

/* Exit status of a child that runs @body; 1000 + signal for a killed one. */
static int in_child(void (*body)(void))
{
        pid_t child = fork();
        int   status;

        assert_true(child >= 0);
        if (!child) {
                setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
                body();
                _exit(99);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                skip();                                         /* no filters here */
        return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void one_thread(void)
{
        allow_only_ours();
        _exit(work(1, 30000) != 0);
}

static pthread_barrier_t started, go;
static unsigned faults;

static void *work_when_told(void *argument)
{
        pthread_barrier_wait(&started); /* libc's own start of a thread is behind it */
        pthread_barrier_wait(&go);
        __atomic_fetch_add(&faults, work((uint64_t)(uintptr_t)argument, 20000), __ATOMIC_RELAXED);
        return NULL;
}

static void many_threads(void)
{
        pthread_t threads[THREADS];

        pthread_barrier_init(&started, NULL, THREADS + 1);
        pthread_barrier_init(&go, NULL, THREADS + 1);
        for (uintptr_t i = 0; i < THREADS; i++)
                if (pthread_create(&threads[i], NULL, work_when_told, (void *)(i + 5)))
                        _exit(98);
        pthread_barrier_wait(&started);
        allow_only_ours();              /* before any of them has allocated */
        pthread_barrier_wait(&go);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        _exit(faults != 0);
}

/* The filter is real: a call that is not on the list does kill. */
static void forbidden(void)
{
        allow_only_ours();
        syscall(SYS_getppid);
        _exit(0);
}

static void test_filter_kills(void **state)
{
        (void)state;
        assert_true(in_child(forbidden) > 1000);
}

static void test_one_thread_under_the_filter(void **state)
{
        (void)state;
        assert_int_equal(in_child(one_thread), 0);
}

static void test_many_threads_under_the_filter(void **state)
{
        (void)state;
        assert_int_equal(in_child(many_threads), 0);
}

static const int refusable[] = {SYS_rseq, SYS_membarrier, SYS_mbind};
static unsigned refused_mask;
static int refused_error;

static void start_refused(void)
{
        int      numbers[4];
        unsigned n = 0;

        for (unsigned i = 0; i < 3; i++)
                if (refused_mask & 1u << i)
                        numbers[n++] = refusable[i];
        install(numbers, n, SECCOMP_RET_ERRNO | (uint32_t)refused_error, SECCOMP_RET_ALLOW);
        execl("/proc/self/exe", "system_calls", "work", (char *)NULL);
        _exit(97);
}

static void test_start_without_rseq_membarrier_mbind(void **state)
{
        static const int errors[] = {EPERM, ENOSYS};

        (void)state;
        for (int e = 0; e < 2; e++)
                for (refused_mask = 1; refused_mask < 8; refused_mask++) {
                        refused_error = errors[e];
                        assert_int_equal(in_child(start_refused), 0);
                }
}

static void *work_at_once(void *argument)
{
        return (void *)(uintptr_t)work((uint64_t)(uintptr_t)argument, 10000);
}

/* What runs after the exec: threads of all kinds, in a process that never had the calls. */
static int refused_main(void)
{
        pthread_t threads[THREADS];
        unsigned  sum = work(3, 10000);

        for (uintptr_t i = 0; i < THREADS; i++)
                if (pthread_create(&threads[i], NULL, work_at_once, (void *)(i + 9)))
                        return 96;
        for (int i = 0; i < THREADS; i++) {
                void *result;

                pthread_join(threads[i], &result);
                sum += (unsigned)(uintptr_t)result;
        }
        return sum != 0;
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_filter_kills),
                cmocka_unit_test(test_one_thread_under_the_filter),
                cmocka_unit_test(test_many_threads_under_the_filter),
                cmocka_unit_test(test_start_without_rseq_membarrier_mbind),
        };

        if (argc > 1 && !strcmp(argv[1], "work"))
                return refused_main();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
