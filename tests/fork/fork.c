/*
 * What this proves: however a process is forked while its threads are inside the allocator, the
 * child's heap is whole: it validates, allocates, frees, and starts threads that do. By fork(), by _Fork and
 * by a raw clone that libc does not know of; and by fork() in a handler on top of the allocator, which must
 * not hang.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#define FORKS 300
#define THREADS 3
#define KINDS 4

static const size_t sizes[KINDS] = { 32, 200, 1000, 5000 };
static struct stook_cache *caches[KINDS];
static uint32_t stop;
static uint32_t churning;

static void *churn(void *arg)
{
        uint64_t random = (uintptr_t)arg;
        void *held[64] = { NULL };
        uint8_t kind[64] = { 0 };

        __atomic_fetch_add(&churning, 1, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
                unsigned i = (unsigned)(random >> 58), k = (unsigned)(random >> 50) % (KINDS + 1);

                if (held[i]) {
                        if (kind[i] == KINDS)
                                stook_free(held[i]);
                        else
                                stook_cache_free(caches[kind[i]], held[i]);
                }
                kind[i] = (uint8_t)k;
                held[i] = k == KINDS ? stook_malloc(1 + (random >> 40) % 40000) : stook_cache_alloc(caches[k]);
                if ((random >> 30 & 1023) == 0)
                        stook_cache_shrink(caches[k % KINDS]);
        }
        for (unsigned i = 0; i < 64; i++) {
                if (kind[i] == KINDS)
                        stook_free(held[i]);
                else
                        stook_cache_free(caches[kind[i]], held[i]);
        }
        return NULL;
}

static void *use(void *arg)
{
        void *objects[200];

        for (int round = 0; round < 5; round++) {
                for (int i = 0; i < 200; i++) {
                        objects[i] = i & 1 ? stook_cache_alloc(caches[i % KINDS]) : stook_malloc((size_t)i * 50);
                        if (!objects[i])
                                return "no memory";
                        memset(objects[i], (int)(uintptr_t)arg, i & 1 ? sizes[i % KINDS] : (size_t)i * 50);
                }
                for (int i = 0; i < 200; i++)
                        if (i & 1)
                                stook_cache_free(caches[i % KINDS], objects[i]);
                        else
                                stook_free(objects[i]);
        }
        return NULL;
}

/* The child's exit status: 0, or which of its steps went wrong. */
static int child(bool threads)
{
        pthread_t t[2];
        void *said;

        alarm(20);
        if (use((void *)1))
                return 2;
        for (int k = 0; k < KINDS; k++)
                if (stook_cache_validate(caches[k]))
                        return 3;
        if (threads) {
                for (int i = 0; i < 2; i++)
                        if (pthread_create(&t[i], NULL, use, (void *)2))
                                return 4;
                for (int i = 0; i < 2; i++)
                        if (pthread_join(t[i], &said) || said)
                                return 5;
        }
        for (int k = 0; k < KINDS; k++)
                stook_cache_shrink(caches[k]);
        for (int k = 0; k < KINDS; k++)
                if (stook_cache_validate(caches[k]))
                        return 6;
        return use((void *)3) ? 7 : 0;
}

enum how { BY_FORK, BY_UNDERSCORE_FORK, BY_CLONE };

static pid_t split(enum how how)
{
        switch (how) {
        case BY_FORK:
                return fork();
        case BY_UNDERSCORE_FORK:
                return _Fork();
        default:
                return (pid_t)syscall(SYS_clone, SIGCHLD, 0, NULL, NULL, 0);
        }
}

static pthread_t threads[THREADS];

/*
 * Returns when all threads churn: a sanitizer's runtime takes locks of its own while a thread starts, and does
 * not give them back in the child of a fork.
 */
static void start_threads(void)
{
        stop = 0;
        churning = 0;
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i * 1234567 + 1)), 0);
        while (__atomic_load_n(&churning, __ATOMIC_ACQUIRE) != THREADS)
                sched_yield();
}

static void stop_threads(void)
{
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        for (int k = 0; k < KINDS; k++) {
                struct stook_cache_stats s = { .stats_size = sizeof(s) };

                assert_int_equal(stook_cache_validate(caches[k]), 0);
                assert_int_equal(stook_cache_stats(caches[k], &s), 0);
                assert_int_equal(s.objects_live, 0);
        }
}

static void forks(enum how how, int times)
{
        int status = 0, i;

        start_threads();
        for (i = 0; i < times && !status; i++) {
                pid_t pid = split(how);

                if (!pid)
                        _exit(child(how == BY_FORK));
                if (pid < 0 || waitpid(pid, &status, 0) != pid)
                        status = -1;
        }
        stop_threads();
        if (status)
                fail_msg("child %d: status 0x%x", i, (unsigned)status);
}

static void a_child_of_fork_is_whole(void **state)
{
        (void)state;
        forks(BY_FORK, FORKS);
}

static void a_child_of_underscore_fork_repairs_itself(void **state)
{
        (void)state;
        forks(BY_UNDERSCORE_FORK, FORKS / 3);
}

static void a_child_of_clone_repairs_itself(void **state)
{
        (void)state;
        forks(BY_CLONE, FORKS / 3);
}

static int forked, bad;                 /* atomic */

static void fork_in_handler(int sig)
{
        pid_t pid;
        int status;

        (void)sig;
        if (__atomic_load_n(&forked, __ATOMIC_RELAXED) >= 60)
                return;
        pid = fork();
        if (!pid) {
                alarm(20);
                /* What it interrupted may hold the registry (a shrink): only signal-safe calls, as in any handler. */
                _exit(use((void *)1) != NULL);
        }
        if (waitpid(pid, &status, 0) != pid || status)
                __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&forked, 1, __ATOMIC_RELAXED);
}

static void a_handler_may_fork(void **state)
{
        struct sigaction action = { .sa_handler = fork_in_handler, .sa_flags = SA_RESTART };
        struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };

        (void)state;
        sigaction(SIGPROF, &action, NULL);
        start_threads();
        setitimer(ITIMER_PROF, &every, NULL);
        for (int i = 0; i < 600 && __atomic_load_n(&forked, __ATOMIC_RELAXED) < 60; i++)
                nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        setitimer(ITIMER_PROF, &never, NULL);
        stop_threads();
        assert_int_equal(bad, 0);
        assert_true(forked >= 60);
}

static int setup(void **state)
{
        (void)state;
        for (int k = 0; k < KINDS; k++)
                if (!(caches[k] = stook_cache_create("fork", sizes[k], NULL)))
                        return -1;
        return 0;
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test(a_child_of_fork_is_whole),
                cmocka_unit_test(a_child_of_underscore_fork_repairs_itself),
                cmocka_unit_test(a_child_of_clone_repairs_itself),
                cmocka_unit_test(a_handler_may_fork),
        };

        return cmocka_run_group_tests(all, setup, NULL);
}
