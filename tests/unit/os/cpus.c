/*
 * What this proves: the CPUs that a process may run on are those of all its threads: with the first
 * thread pinned to one CPU, those of another thread still count; with all threads pinned, only that
 * one is left.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "process/process.h"

static struct stook_cpus cpus;
static cpu_set_t allowed, one;
static pthread_barrier_t pinned, looked, over;

static void *other_thread(void *unused)
{
        pthread_barrier_wait(&pinned);
        pthread_barrier_wait(&looked);
        sched_setaffinity(0, sizeof(one), &one);
        pthread_barrier_wait(&over);
        pthread_barrier_wait(&over);
        return unused;
}

static void all_threads_count(void **state)
{
        pthread_t thread;
        int first = 0;

        (void)state;
        while (!CPU_ISSET((size_t)first, &allowed))
                first++;
        CPU_ZERO(&one);
        CPU_SET((size_t)first, &one);
        stook_process_allowed_cpus(&cpus);
        assert_int_equal(cpus.count, CPU_COUNT(&allowed));

        pthread_barrier_init(&pinned, NULL, 2);
        pthread_barrier_init(&looked, NULL, 2);
        pthread_barrier_init(&over, NULL, 2);
        assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        pthread_barrier_wait(&pinned);
        stook_process_allowed_cpus(&cpus);
        assert_int_equal(cpus.count, CPU_COUNT(&allowed));
        for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
                assert_int_equal(cpus.mask[cpu / 64] >> cpu % 64 & 1,
                                 CPU_ISSET(cpu, &allowed) != 0);

        pthread_barrier_wait(&looked);
        pthread_barrier_wait(&over);
        stook_process_allowed_cpus(&cpus);
        assert_int_equal(cpus.count, 1);
        assert_true(cpus.mask[first / 64] >> first % 64 & 1);
        pthread_barrier_wait(&over);
        pthread_join(thread, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(all_threads_count) };

        if (sched_getaffinity(0, sizeof(allowed), &allowed) || CPU_COUNT(&allowed) < 2) {
                print_message("one CPU only\n");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
