/*
 * Purpose: callbacks that count, for the tests of the thread behind libstook-urcu's tables; and
 * threads that are refused. Each test includes it once.
 */
#ifndef STOOK_TESTS_RCU_WORKER_H
#define STOOK_TESTS_RCU_WORKER_H

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#include <urcu/call-rcu.h>
#include "flavours.h"

static const struct flavour *f;

/* ---- threads refused ---- */

static int refuse;                      /* atomic: how often pthread_create fails */
static unsigned made;

/* Instead of libc's. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attr,
                                                          void *(*run)(void *), void *arg)
{
        int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

        if (refuse) {
                refuse--;
                return EAGAIN;
        }
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
        made++;
        return real(thread, attr, run, arg);
}

/* ---- callbacks ---- */

struct counted {
        struct stook_rcu_head head;     /* first */
        unsigned number, calls;
};

static unsigned called;                 /* atomic */
static bool in_order = true;

static void count(struct stook_rcu_head *head)
{
        struct counted *c = (struct counted *)head;

        c->calls++;
        if (c->number != __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE))
                in_order = false;
}

static void call_all(struct counted *all, unsigned n)
{
        called = 0;
        in_order = true;
        for (unsigned i = 0; i < n; i++) {
                all[i].number = i;
                all[i].calls = 0;
                f->table->call(&all[i].head, count);
        }
}

#define N 1000
static struct counted all[N];

static void check_all(void)
{
        assert_int_equal(__atomic_load_n(&called, __ATOMIC_ACQUIRE), N);
        assert_true(in_order);
        for (unsigned i = 0; i < N; i++)
                assert_int_equal(all[i].calls, 1);
}

static void wait_for_all(unsigned n)
{
        f->flavour->thread_offline();
        while (__atomic_load_n(&called, __ATOMIC_ACQUIRE) < n)
                usleep(1000);
        f->flavour->thread_online();
}

static void count_only(struct stook_rcu_head *head)
{
        __atomic_fetch_add(&((struct counted *)head)->calls, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
}

static int run_worker(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
        int failed;

        f = flavour_of(argc > 1 ? argv[1] : NULL);
        if (!f)
                return 2;
        f->flavour->register_thread();
        failed = _cmocka_run_group_tests(argv[0], tests, n, NULL, NULL);
        f->flavour->unregister_thread();
        return failed;
}

#endif
