/*
 * Proves what src/direct/direct.c says of the drop-in's direct sections. A thread that has not
 * enrolled uses them. While a vfork is under way no thread does, and afterwards all do again, with
 * the slots that became ready meanwhile. A child of fork begins without the vforks of its parent's
 * other threads, but not if it was forked by a child of vfork. On aarch64 vforks that are too many
 * turn direct sections off, and so does a start beside threads. Where direct sections are off, the
 * bound stays 0. Handlers find each thread registered, at any instruction of its life: that is
 * libc's promise. `stook_self->ready` tells which way a call went: the checked section of a thread
 * that has not enrolled misses, and the miss enrols it.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "os/os.h"
#include "direct/direct.h"
#include "slot/slot_regions.h"

#define SIZE 112
#define MANY 1000
#define THREADS 3000
#if defined(__aarch64__)
#define SIGNATURE 0xd428bc00
#else
#define SIGNATURE 0x53053053
#endif
#define UNREGISTER 1

static bool on_rseq, direct;

/* Without the area, which stays as it is. */
static uint64_t word(void)
{
        return __atomic_load_n(&stook_direct.ready, __ATOMIC_RELAXED) & ~STOOK_DIRECT_AREA;
}

static uint32_t bound(void)
{
        return stook_direct_bound_of(word());
}

static uint64_t open_word(void)
{
        return direct ? (uint64_t)stook_filled.ready << STOOK_DIRECT_BOUND_SHIFT : STOOK_DIRECT_OFF;
}

static void *pair(void *unused)
{
        uint32_t *seen = unused;
        void *volatile object = malloc(SIZE);

        if (object)
                memset(object, 1, SIZE);
        free(object);
        seen[0] = stook_self->ready;
        for (unsigned i = 0; i < 2; i++) {
                void *objects[MANY];

                for (unsigned k = 0; k < MANY; k++)
                        objects[k] = malloc(SIZE);
                for (unsigned k = 0; k < MANY; k++)
                        free(objects[k]);
        }
        seen[1] = stook_self->ready;
        return NULL;
}

/* All on one CPU: the slot has an object, and room for one. */
static void run_thread(uint32_t seen[2])
{
        void *volatile a = malloc(SIZE), *volatile b = malloc(SIZE);
        pthread_t thread;

        free(a);
        assert_int_equal(pthread_create(&thread, NULL, pair, seen), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        free(b);
}

static void test_a_thread_that_has_not_enrolled_hits(void **state)
{
        uint32_t seen[2] = { 0, 0 };
        unsigned hits = 0;

        (void)state;
        assert_int_equal(word(), open_word());
        for (unsigned i = 0; i < 50; i++) {             /* a preemption aborts a section */
                run_thread(seen);
                hits += !seen[0];
                assert_int_equal(seen[1] != 0, on_rseq);
        }
        assert_int_equal(hits > 0, direct || !on_rseq);
}

static void test_no_thread_does_while_a_vfork_is_under_way(void **state)
{
        uint32_t seen[2] = { 0, 0 };

        (void)state;
        stook_direct_begin_vfork();
        stook_direct_begin_vfork();
        assert_int_equal(bound(), 0);
        run_thread(seen);
        assert_int_equal(seen[0] != 0, on_rseq);
        stook_direct_end_vfork();
        assert_int_equal(bound(), 0);
        run_thread(seen);
        assert_int_equal(seen[0] != 0, on_rseq);
        stook_direct_end_vfork();
        assert_int_equal(word(), open_word());
}

static void test_slots_that_become_ready_are_known_afterwards(void **state)
{
        uint32_t before = stook_filled.ready;

        (void)state;
        if (stook_regions.rseq_slots < before + 2)
                skip();
        assert_int_equal(stook_regions_ready(before), before + 1);
        stook_direct_raise();
        assert_int_equal(word(), open_word());
        stook_direct_begin_vfork();
        assert_int_equal(stook_regions_ready(before + 1), before + 2);
        stook_direct_raise();
        assert_int_equal(bound(), 0);
        stook_direct_end_vfork();
        assert_int_equal(word(), open_word());
}

/* What the child of a fork finds: 0, or 1: direct sections are closed. */
static int in_child(void)
{
        pid_t child = fork();
        int status;

        if (!child) {
                free(malloc(SIZE));
                _exit(word() == open_word() ? 0 : bound() ? 2 : 1);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void test_a_child_has_no_vforks_of_others(void **state)
{
        (void)state;
        assert_int_equal(in_child(), 0);
        stook_direct_begin_vfork();
        assert_int_equal(in_child(), 0);
        assert_int_equal(bound(), 0);
        stook_direct_end_vfork();
        assert_int_equal(word(), open_word());
}

static void test_a_child_of_vfork_is_off_them(void **state)
{
        volatile uint64_t seen = 1;
        volatile uint32_t ready = 1;
        int status;
        pid_t child = vfork();

        (void)state;
        if (!child) {
                void *volatile object = malloc(SIZE);
                pid_t grandchild;

                seen = word();
                ready = stook_self->ready;
                free(object);
                grandchild = fork();            /* it has no registration either */
                if (!grandchild) {
                        free(malloc(SIZE));
                        _exit(bound() || stook_self->ready);
                }
                if (grandchild < 0 || waitpid(grandchild, &status, 0) != grandchild)
                        _exit(9);
                _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(stook_direct_bound_of(seen), 0);
        assert_int_not_equal(seen, 0);
        assert_int_equal(ready, 0);
        assert_int_equal(stook_self_is_barred(), 0);
        assert_int_equal(word(), open_word());
}

/* Takes this thread's registration away before its first call. An area is 32 bytes or more. */
static void *unregister(void *enrolled)
{
        char *area = (char *)__builtin_thread_pointer() + stook_direct_area();
        unsigned bytes = 32;

        while (bytes < 512 && syscall(SYS_rseq, area, bytes, UNREGISTER, SIGNATURE))
                bytes += 4;
        *(bool *)enrolled = stook_slot_enrol();
        return NULL;
}

static void test_a_thread_without_registration_turns_them_off(void **state)
{
        int status;
        pid_t child = fork();

        (void)state;
        if (!child) {
                uint32_t seen[2] = { 0, 0 };
                bool enrolled = false;
                pthread_t thread;

                if (direct && (pthread_create(&thread, NULL, unregister, &enrolled) ||
                               pthread_join(thread, NULL) || enrolled))
                        _exit(2);
                stook_direct_begin_vfork();
                stook_direct_end_vfork();
                stook_direct_raise();
                stook_direct_fork_child();
                run_thread(seen);
                _exit(word() != STOOK_DIRECT_OFF || (seen[0] != 0) != on_rseq);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

static void *wait_for_ever(void *unused)
{
        pause();
        return unused;
}

/*
 * One vfork more than there is room for, and a start beside another thread (D4), turn direct
 * sections off for ever: 0.
 */
static int turned_off(bool by_start)
{
        uint64_t most = STOOK_DIRECT_OFF / STOOK_DIRECT_VFORK;
        pthread_t thread;

        if (by_start) {
                if (pthread_create(&thread, NULL, wait_for_ever, NULL))
                        return 2;
                stook_direct_duties.start((char *)__builtin_thread_pointer() + stook_direct_area());
        } else {
                for (uint64_t i = 0; i < most - 1; i++)
                        stook_direct_begin_vfork();
                if (word() != (direct ? (most - 1) * STOOK_DIRECT_VFORK : STOOK_DIRECT_OFF))
                        return 3;
                for (uint64_t i = 0; i < 3; i++)
                        stook_direct_begin_vfork();
                for (uint64_t i = 0; i < most + 2; i++)
                        stook_direct_end_vfork();
        }
        free(malloc(SIZE));
        return word() != STOOK_DIRECT_OFF;
}

static void test_too_many_vforks_and_a_late_start_turn_them_off(void **state)
{
        (void)state;
#if !defined(__aarch64__)
        skip();
#endif
        for (int by_start = 0; by_start < 2; by_start++) {
                pid_t child = fork();
                int status;

                if (!child)
                        _exit(turned_off(by_start));
                assert_true(child > 0);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
        }
}

static unsigned handlers, unregistered;         /* atomic */

static void on_alarm(int signal)
{
        const char *area = (char *)__builtin_thread_pointer() + stook_direct_area();

        (void)signal;
        free(malloc(SIZE));
        __atomic_fetch_add(&handlers, 1, __ATOMIC_RELAXED);
        if (__atomic_load_n((const int32_t *)(area + STOOK_RSEQ_CPU_ID), __ATOMIC_RELAXED) < 0)
                __atomic_fetch_add(&unregistered, 1, __ATOMIC_RELAXED);
}

static void *nothing(void *unused)
{
        return unused;
}

/* The timer's signals are the process's: any thread gets them, young and old. */
static void test_each_thread_is_registered_when_a_handler_runs(void **state)
{
        struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
        sigset_t alarm;

        (void)state;
        if (!direct)
                skip();
        sigemptyset(&alarm);
        sigaddset(&alarm, SIGALRM);
        signal(SIGALRM, on_alarm);
        setitimer(ITIMER_REAL, &often, NULL);
        for (unsigned i = 0; i < THREADS; i++) {
                pthread_t thread;
                bool made = !pthread_create(&thread, NULL, nothing, NULL);

                pthread_sigmask(SIG_BLOCK, &alarm, NULL);       /* the other thread gets them */
                if (made)
                        pthread_join(thread, NULL);
                pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
        }
        setitimer(ITIMER_REAL, &never, NULL);
        assert_int_equal(unregistered, 0);
        assert_int_not_equal(handlers, 0);
}

static bool stay(void)
{
        int cpu = sched_getcpu();
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET((size_t)cpu, &one);
        return cpu >= 0 && !sched_setaffinity(0, sizeof(one), &one);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_thread_that_has_not_enrolled_hits),
                cmocka_unit_test(test_no_thread_does_while_a_vfork_is_under_way),
                cmocka_unit_test(test_slots_that_become_ready_are_known_afterwards),
                cmocka_unit_test(test_a_child_has_no_vforks_of_others),
                cmocka_unit_test(test_a_child_of_vfork_is_off_them),
                cmocka_unit_test(test_a_thread_without_registration_turns_them_off),
                cmocka_unit_test(test_too_many_vforks_and_a_late_start_turn_them_off),
                cmocka_unit_test(test_each_thread_is_registered_when_a_handler_runs),
        };

#if !defined(__x86_64__) && !defined(__aarch64__)
        puts("there are no direct sections");
        return 77;
#endif
        if (!stay())
                return 77;
        free(malloc(SIZE));
        on_rseq = stook_self->ready != 0;
        direct = on_rseq && stook_os_rseq_owner() == STOOK_RSEQ_LIBC &&
                 stook_regions.index_offset == STOOK_RSEQ_MM_CID;
        printf("direct sections are %s\n", direct ? "on" : "off");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
