/*
 * Proves that threads share the heap without ever sharing an object: each stamps what it holds;
 * objects are passed between threads and freed by others; threads come and go; handlers allocate on
 * top of all that; children forked in the middle of it go on.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "stamps.h"

#define THREADS 6
#define FORKS_MIN     20                        /* on a machine that needs more than */
#define FORKS_SECONDS 10                        /* for all of them */

static volatile int stop;
static uint64_t *mailbox[64];                   /* atomic: objects on their way to another thread */

static void pass_on(struct stamps *s)
{
        uint64_t  bytes = 16 + stamps_random(s) % 500, *object = stook_malloc(bytes + 8);
        uint64_t *other;

        if (!object) {
                s->failures++;
                return;
        }
        object[0] = bytes;
        memset(object + 1, (int)bytes, bytes);
        other = __atomic_exchange_n(&mailbox[stamps_random(s) % 64], object, __ATOMIC_ACQ_REL);
        if (!other)
                return;
        for (size_t i = 0; i < other[0]; i++)
                if (((unsigned char *)(other + 1))[i] != (unsigned char)other[0])
                        s->faults++;
        stook_free(other);
}

static void *work(void *argument)
{
        struct stamps *s = argument;

        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                for (int i = 0; i < 100; i++)
                        stamps_step(s);
                for (int i = 0; i < 20; i++)
                        pass_on(s);
        }
        stamps_end(s);
        return NULL;
}

static void *work_shortly(void *argument)
{
        struct stamps *s = argument;

        for (int i = 0; i < 50; i++) {
                stamps_step(s);
                pass_on(s);
        }
        stamps_end(s);
        return NULL;
}

static struct stamps of_thread[THREADS];
static pthread_t threads[THREADS];

static void start_threads(void)
{
        stop = 0;
        for (int i = 0; i < THREADS; i++) {
                memset(&of_thread[i], 0, sizeof(of_thread[i]));
                of_thread[i].random = (uint64_t)i << 40;
                assert_int_equal(pthread_create(&threads[i], NULL, work, &of_thread[i]), 0);
        }
}

static void stop_threads(void)
{
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        for (int i = 0; i < THREADS; i++) {
                assert_int_equal(pthread_join(threads[i], NULL), 0);
                assert_int_equal(of_thread[i].faults, 0);
                assert_int_equal(of_thread[i].failures, 0);
        }
}

static void sleep_ms(long ms)
{
        struct timespec left = {ms / 1000, ms % 1000 * 1000000};

        while (nanosleep(&left, &left) && errno == EINTR)
                ;
}

static time_t seconds_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec;
}

static void test_threads(void **state)
{
        (void)state;
        start_threads();
        sleep_ms(1000);
        stop_threads();
}

static void test_short_threads_among_long_ones(void **state)
{
        (void)state;
        start_threads();
        for (int i = 0; i < 1000; i++) {
                struct stamps s = {.random = (uint64_t)i << 20};
                pthread_t     thread;

                assert_int_equal(pthread_create(&thread, NULL, work_shortly, &s), 0);
                assert_int_equal(pthread_join(thread, NULL), 0);
                assert_int_equal(s.faults + s.failures, 0);
        }
        stop_threads();
}

#define HANDLERS 1000                           /* at least */

static struct stamps of_handler;
static int handler_busy;                        /* one at a time: its stamps are not shared */
static uint64_t handler_runs;                   /* atomic */

static void handler(int signal)
{
        int saved = errno;

        (void)signal;
        if (!__atomic_exchange_n(&handler_busy, 1, __ATOMIC_ACQUIRE)) {
                for (int i = 0; i < 4; i++)
                        stamps_step(&of_handler);
                __atomic_add_fetch(&handler_runs, 1, __ATOMIC_RELAXED);
                __atomic_store_n(&handler_busy, 0, __ATOMIC_RELEASE);
        }
        errno = saved;
}

static void test_handlers_on_top_of_busy_threads(void **state)
{
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
        struct itimerspec every = {{0, 100000}, {0, 100000}};   /* 10 kHz */
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
        timer_t timer;

        (void)state;
        memset(&of_handler, 0, sizeof(of_handler));
        assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
        start_threads();
        assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
        assert_int_equal(timer_settime(timer, 0, &every, NULL), 0);

        /*
         * Signals sent to the process go to this thread first: it works, too; the others get theirs
         * by name.
         */
        struct stamps  here = {.random = 77};
        time_t end = seconds_now() + 2;

        do {
                for (int i = 0; i < 200; i++)
                        stamps_step(&here);
                for (int i = 0; i < THREADS; i++)
                        pthread_kill(threads[i], SIGUSR1);
        } while (seconds_now() < end ||
                 __atomic_load_n(&handler_runs, __ATOMIC_RELAXED) <= HANDLERS);
        assert_int_equal(timer_delete(timer), 0);
        stop_threads();
        signal(SIGUSR1, SIG_IGN);
        stamps_end(&here);
        stamps_end(&of_handler);
        assert_int_equal(here.faults + here.failures, 0);
        assert_int_equal(of_handler.faults + of_handler.failures, 0);
}

static void forks(pid_t (*make_child)(void), int count)
{
#ifdef __SANITIZE_THREAD__
        skip();                         /* see `tsan` in tests/meson.build */
#endif
        time_t end = seconds_now() + FORKS_SECONDS;

        start_threads();
        for (int n = 0; n < count && (n < FORKS_MIN || seconds_now() < end); n++) {
                pid_t child = make_child();
                int   status;

                assert_true(child >= 0);
                if (!child) {
                        struct stamps s = {.random = (uint64_t)n};

                        alarm(60); /* a child that hangs is killed, and told of */
                        for (int i = 0; i < 3000; i++)
                                stamps_step(&s);
                        stamps_end(&s);
                        _exit(s.faults || s.failures ? 1 : 0);
                }
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
        }
        stop_threads();
}

static void test_fork_while_threads_allocate(void **state)
{
        (void)state;
        forks(fork, 120);
}

static pid_t raw_clone(void)
{
        return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* Without the hooks of fork: locks of threads that are gone stay held in the child. */
static void test_raw_clone_while_threads_allocate(void **state)
{
        (void)state;
        forks(raw_clone, 80);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_threads),
                cmocka_unit_test(test_short_threads_among_long_ones),
                cmocka_unit_test(test_handlers_on_top_of_busy_threads),
                cmocka_unit_test(test_fork_while_threads_allocate),
                cmocka_unit_test(test_raw_clone_while_threads_allocate),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
