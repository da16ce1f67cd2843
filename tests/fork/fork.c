/*
 * What this proves: a process may be forked while its threads are inside the allocator, and the
 * child's heap is whole. The child validates it, allocates, frees, and starts threads that do so.
 * The fork is fork(), _Fork or a raw clone that libc does not know of. Handlers that interrupt the
 * allocator fork in the same ways, and must not hang. A child forks again, and its child is whole,
 * too. Threads and handlers start programs by posix_spawn and system while the heap is busy.
 * STOOK_FORKS=1000 STOOK_FORK_THREADS=8: how many forks, among how many threads. The default is
 * less.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
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

#define THREADS_MAX 64
#define KINDS 4
/* Of a child. Many times longer than one takes on a slow and busy machine. */
#define HANG_SECONDS 60

static const size_t sizes[KINDS] = { 32, 200, 1000, 5000 };
static struct stook_cache *caches[KINDS];
static int fork_count = 200, thread_count = 3;
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
                held[i] = k == KINDS ? stook_malloc(1 + (random >> 40) % 40000)
                                     : stook_cache_alloc(caches[k]);
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
                        objects[i] = i & 1 ? stook_cache_alloc(caches[i % KINDS])
                                           : stook_malloc((size_t)i * 50);
                        if (!objects[i])
                                return "no memory";
                        memset(objects[i], (int)(uintptr_t)arg,
                               i & 1 ? sizes[i % KINDS] : (size_t)i * 50);
                }
                for (int i = 0; i < 200; i++)
                        if (i & 1)
                                stook_cache_free(caches[i % KINDS], objects[i]);
                        else
                                stook_free(objects[i]);
        }
        return NULL;
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

/*
 * The child's exit status: 0, or which of its steps went wrong. Libc's threads are whole after
 * fork() only.
 */
static int child(bool threads, enum how again)
{
        pthread_t t[2];
        void *said;
        pid_t pid;
        int status;

        alarm(HANG_SECONDS);
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
        pid = split(again);
        if (!pid)
                _exit(use((void *)4) ? 1 : 0);
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
                return 8;
        for (int k = 0; k < KINDS; k++)
                stook_cache_shrink(caches[k]);
        for (int k = 0; k < KINDS; k++)
                if (stook_cache_validate(caches[k]))
                        return 6;
        return use((void *)3) ? 7 : 0;
}

static pthread_t threads[THREADS_MAX];

/*
 * Returns when all threads churn: a sanitizer's runtime takes locks of its own while a thread
 * starts, and does not give them back in the child of a fork.
 */
static void start_threads(void)
{
        stop = 0;
        churning = 0;
        for (uintptr_t i = 0; i < (uintptr_t)thread_count; i++)
                assert_int_equal(
                        pthread_create(&threads[i], NULL, churn, (void *)(i * 1234567 + 1)), 0);
        while (__atomic_load_n(&churning, __ATOMIC_ACQUIRE) != (uint32_t)thread_count)
                sched_yield();
}

static void stop_threads(void)
{
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        for (int i = 0; i < thread_count; i++)
                pthread_join(threads[i], NULL);
        for (int k = 0; k < KINDS; k++) {
                struct stook_cache_stats s = { .stats_size = sizeof(s) };

                assert_int_equal(stook_cache_validate(caches[k]), 0);
                assert_int_equal(stook_cache_get_stats(caches[k], &s), 0);
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
                        _exit(child(how == BY_FORK, (enum how)(i % 3)));
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
        forks(BY_FORK, fork_count);
}

static void a_child_of_underscore_fork_repairs_itself(void **state)
{
        (void)state;
        forks(BY_UNDERSCORE_FORK, fork_count / 3);
}

static void a_child_of_clone_repairs_itself(void **state)
{
        (void)state;
        forks(BY_CLONE, fork_count / 3);
}

#define IN_HANDLERS 60
static int forked, bad;                 /* atomic */
static void (*in_handler)(int round);

static void on_signal(int sig)
{
        int round = __atomic_load_n(&forked, __ATOMIC_RELAXED);

        (void)sig;
        if (round >= IN_HANDLERS)
                return;
        in_handler(round);
        __atomic_add_fetch(&forked, 1, __ATOMIC_RELAXED);
}

static void expect_success(pid_t pid)
{
        int status;

        if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
                __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);
}

static void fork_once(int round)
{
        pid_t pid = split((enum how)(round % 3));

        if (!pid) {
                alarm(HANG_SECONDS);
                /*
                 * What it interrupted may hold the registry (a shrink): only signal-safe calls, as
                 * in any handler.
                 */
                _exit(use((void *)1) != NULL);
        }
        expect_success(pid);
}

static void spawn(int round)
{
        static char *const argv[] = { "true", NULL };
        pid_t pid = -1;

        (void)round;
        if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ))
                pid = -1;
        expect_success(pid);
}

static void from_handlers(void (*call)(int))
{
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
        struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };

        forked = bad = 0;
        in_handler = call;
        sigaction(SIGPROF, &action, NULL);
        start_threads();
        setitimer(ITIMER_PROF, &every, NULL);
        while (__atomic_load_n(&forked, __ATOMIC_RELAXED) < IN_HANDLERS)
                nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        setitimer(ITIMER_PROF, &never, NULL);
        stop_threads();
        assert_int_equal(bad, 0);
}

static void a_handler_may_fork(void **state)
{
        (void)state;
        from_handlers(fork_once);
}

static void a_handler_may_spawn(void **state)
{
        (void)state;
        from_handlers(spawn);
}

static void *start_programs(void *unused)
{
        for (int i = 0; i < 10; i++) {
                spawn(i);
                if (system("true"))
                        __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);
        }
        return unused;
}

static void threads_may_start_programs(void **state)
{
        pthread_t two[2];

        (void)state;
        bad = 0;
        start_threads();
        for (int i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&two[i], NULL, start_programs, NULL), 0);
        for (int i = 0; i < 2; i++)
                assert_int_equal(pthread_join(two[i], NULL), 0);
        stop_threads();
        assert_int_equal(bad, 0);
}

static int wish(const char *variable, int otherwise, int most)
{
        const char *value = getenv(variable);
        int n = value ? atoi(value) : 0;

        return n <= 0 ? otherwise : n < most ? n : most;
}

static int setup(void **state)
{
        (void)state;
        fork_count = wish("STOOK_FORKS", fork_count, 1000000);
        thread_count = wish("STOOK_FORK_THREADS", thread_count, THREADS_MAX);
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
                cmocka_unit_test(a_handler_may_spawn),
                cmocka_unit_test(threads_may_start_programs),
        };

        return cmocka_run_group_tests(all, setup, NULL);
}
