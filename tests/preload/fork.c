/*
 * Proves when the drop-in registers its handlers for fork: not at start, nor for forks of a process
 * with one thread, but before the first fork beside other threads, also before that of forkpty, and
 * before handlers of others, so that none of theirs runs while the heap is locked.
 * Each case is a program of its own, this one again, with the drop-in preloaded and behind it
 * fork_recorder.c.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "fork_recorder.h"

#define FORKS   100
#define OBJECTS 300

static const char *recorder;

/* Ends with the number of the line of what is not true. */
#define MUST(truth) ((truth) ? (void)0 : _exit(__LINE__ % 255 + 1))

static void allocate(void)
{
        static _Thread_local void *held[OBJECTS];

        for (unsigned i = 0; i < OBJECTS; i++)
                MUST((held[i] = malloc(64 + i % 8 * 512)));
        for (unsigned i = 0; i < OBJECTS; i++)
                free(held[i]);
}

static void wait_for(pid_t child)
{
        int status;

        MUST(child > 0);
        MUST(waitpid(child, &status, 0) == child);
        MUST(status == 0);
}

static void fork_once(void)
{
        pid_t child = fork();

        if (!child) {
                allocate();
                _exit(0);
        }
        wait_for(child);
}

static void nothing(void)
{
}

static const struct recorded *seen(void)
{
        const struct recorded *found = dlsym(RTLD_DEFAULT, "recorded");

        MUST(found);
        return found;
}

static pthread_barrier_t ends;

static void *idle(void *unused)
{
        (void)unused;
        pthread_barrier_wait(&ends);
        return NULL;
}

/* Beside a second thread, which never allocates. */
static void do_beside_a_thread(void (*act)(void))
{
        pthread_t thread;

        MUST(!pthread_barrier_init(&ends, NULL, 2));
        MUST(!pthread_create(&thread, NULL, idle, NULL));
        act();
        pthread_barrier_wait(&ends);
        MUST(!pthread_join(thread, NULL));
}

/* ---- the cases ---- */

static void at_the_first_fork(void)
{
        allocate();
        fork_once();
        MUST(seen()->forks == 1 && seen()->count == 0);
        do_beside_a_thread(fork_once);
        MUST(seen()->forks == 2 && seen()->count == 1);
        fork_once();
        MUST(seen()->forks == 3 && seen()->count == 1);
}

static void before_handlers_of_others(void)
{
        MUST(!pthread_atfork(nothing, NULL, NULL));
        MUST(seen()->count == 2);
        MUST(seen()->prepare[0] && seen()->prepare[0] != nothing);
        MUST(seen()->prepare[1] == nothing);
        fork_once();
        MUST(seen()->count == 2);
}

static void fork_by_forkpty(void)
{
        int end;
        pid_t child = forkpty(&end, NULL, NULL, NULL);

        if (!child) {
                allocate();
                _exit(0);
        }
        if (child > 0)                          /* else there is no terminal to have */
                wait_for(child);
}

static void at_a_fork_of_forkpty(void)
{
        fork_by_forkpty();
        MUST(seen()->count == 0);
        do_beside_a_thread(fork_by_forkpty);
        MUST(seen()->count == 1);
}

/* It goes past the drop-in: its child has a whole heap, too. */
static void in_a_daemon(void)
{
        int ends[2];
        char answer = 0;
        pid_t child;

        MUST(!pipe(ends));
        child = vfork();                        /* which tells no handler */
        if (!child) {
                dup2(ends[1], STDOUT_FILENO);
                execl("/proc/self/exe", "fork", "daemon_itself", (char *)NULL);
                _exit(1);
        }
        wait_for(child);
        close(ends[1]);
        MUST(read(ends[0], &answer, 1) == 1 && answer == 'y');
}

static void daemon_itself(void)
{
        allocate();
        MUST(!daemon(1, 1));
        allocate();
        fork_once();
        MUST(seen()->count == 0);
        MUST(write(STDOUT_FILENO, "y", 1) == 1);
}

/* ---- handlers that wait for a lock whose holders allocate ---- */

static pthread_mutex_t held_while_allocating = PTHREAD_MUTEX_INITIALIZER;
static bool stop;

static void take(void)
{
        pthread_mutex_lock(&held_while_allocating);
}

static void drop(void)
{
        pthread_mutex_unlock(&held_while_allocating);
}

static void *allocate_with_the_lock(void *unused)
{
        (void)unused;
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                take();
                allocate();
                malloc_trim(0);
                drop();
                sched_yield();
        }
        return NULL;
}

static void behind_a_lock_of_others(void)
{
        pthread_t thread;

        MUST(!pthread_atfork(take, drop, drop));
        MUST(!pthread_create(&thread, NULL, allocate_with_the_lock, NULL));
        for (unsigned i = 0; i < FORKS; i++)
                fork_once();
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        MUST(!pthread_join(thread, NULL));
}

/* Threads that all come to the first fork at once. */
static void *fork_in_thread(void *barrier)
{
        pthread_barrier_wait(barrier);
        fork_once();
        return NULL;
}

static void in_threads_at_once(void)
{
        pthread_t threads[4];
        pthread_barrier_t barrier;

        pthread_barrier_init(&barrier, NULL, 4);
        for (unsigned i = 0; i < 4; i++)
                MUST(!pthread_create(&threads[i], NULL, fork_in_thread, &barrier));
        for (unsigned i = 0; i < 4; i++)
                MUST(!pthread_join(threads[i], NULL));
        MUST(seen()->count == 1 && seen()->count_before_fork == 1);
}

static const struct {
        const char *name;
        void      (*run)(void);
} cases[] = {
        { "at_the_first_fork", at_the_first_fork },
        { "before_handlers_of_others", before_handlers_of_others },
        { "at_a_fork_of_forkpty", at_a_fork_of_forkpty },
        { "in_a_daemon", in_a_daemon },
        { "daemon_itself", daemon_itself },
        { "behind_a_lock_of_others", behind_a_lock_of_others },
        { "in_threads_at_once", in_threads_at_once },
};

static void run_as_program(const char *name)
{
        char setting[8192];
        int status;
        pid_t child;

#ifndef __GLIBC__
        skip();                                 /* there the constructor registers */
#endif
        snprintf(setting, sizeof(setting), "%.4000s/libstook-malloc.so:%.4000s",
                 getenv("STOOK_BUILD"), recorder);
        child = fork();
        assert_true(child >= 0);
        if (!child) {
                setenv("LD_PRELOAD", setting, 1);
                execl("/proc/self/exe", "fork", name, (char *)NULL);
                _exit(255);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status)
                fail_msg("%s: status %#x (an exit of %d is a line of this file, less one)", name,
                         (unsigned)status, WEXITSTATUS(status));
}

static void test_at_the_first_fork(void **state)
{
        (void)state;
        run_as_program("at_the_first_fork");
        run_as_program("in_threads_at_once");
}

static void test_before_handlers_of_others(void **state)
{
        (void)state;
        run_as_program("before_handlers_of_others");
        run_as_program("behind_a_lock_of_others");
}

static void test_forks_of_libc_itself(void **state)
{
        (void)state;
        run_as_program("at_a_fork_of_forkpty");
        run_as_program("in_a_daemon");
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_at_the_first_fork),
                cmocka_unit_test(test_before_handlers_of_others),
                cmocka_unit_test(test_forks_of_libc_itself),
        };

        for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(*cases); i++)
                if (!strcmp(argv[1], cases[i].name)) {
                        cases[i].run();
                        return 0;
                }
        recorder = argc == 2 ? argv[1] : NULL;
        if (!recorder || !getenv("STOOK_BUILD"))
                return 2;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
