/*
 * Proves of the thread behind libstook-urcu's tables, with each flavour: callbacks are called once, in order, after a grace period, also
 * where no thread can be had, by the barrier; by the thread alone, with no barrier; many threads at once; where the
 * program handles forks itself; and a callback may fork.
 *
 *      rcu_worker memb|mb|qsbr|bp
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "flavours.h"

static const struct flavour *f;

/* ---- threads refused ---- */

static int refuse;                      /* atomic: pthread_create fails so often */
static unsigned made;

/* Instead of libc's. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
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

/* First of all tests: there is no thread yet. */
static void test_without_a_thread_the_barrier_does_it(void **state)
{
        (void)state;
        refuse = N;
        call_all(all, N);
        assert_int_equal(refuse, 0);
        assert_int_equal(made, 0);
        usleep(30000);
        assert_int_equal(called, 0);
        f->table->barrier();
        check_all();
}

static void test_the_thread_does_it_alone(void **state)
{
        static struct counted one;

        (void)state;
        call_all(all, N);
        assert_int_equal(made, 1);
        wait_for_all(N);
        check_all();
        called = 0;
        f->table->call(&one.head, count);
        wait_for_all(1);
        assert_int_equal(one.calls, 1);
        assert_int_equal(made, 1);
}

/* ---- a grace period it is ---- */

static int inside;                      /* atomic */

static void *stay(void *unused)
{
        f->flavour->register_thread();
        f->table->read_lock();
        __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
        usleep(50000);
        /* nothing given after we came in was called */
        inside = __atomic_load_n(&called, __ATOMIC_SEQ_CST) ? 3 : 2;
        f->table->read_unlock();
        f->flavour->unregister_thread();
        return unused;
}

static void test_readers_are_waited_for(void **state)
{
        pthread_t reader;

        (void)state;
        inside = 0;
        called = 0;
        f->flavour->thread_offline();
        assert_int_equal(pthread_create(&reader, NULL, stay, NULL), 0);
        while (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
                usleep(100);
        f->flavour->thread_online();
        call_all(all, N);
        f->table->barrier();
        check_all();
        f->flavour->thread_offline();
        pthread_join(reader, NULL);
        f->flavour->thread_online();
        assert_int_equal(inside, 2);
}

/* ---- from many threads, with barriers between ---- */

enum { THREADS = 4, EACH = 5000 };
static struct counted theirs[THREADS][EACH];

static void count_only(struct stook_rcu_head *head)
{
        __atomic_fetch_add(&((struct counted *)head)->calls, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
}

static void *caller(void *mine)
{
        struct counted *c = mine;

        f->flavour->register_thread();
        for (unsigned i = 0; i < EACH; i++) {
                f->table->call(&c[i].head, count_only);
                if (i % 1024 == 500) {
                        f->table->barrier();
                        for (unsigned k = 0; k <= i; k++)
                                if (__atomic_load_n(&c[k].calls, __ATOMIC_RELAXED) != 1)
                                        return mine;
                }
                f->table->quiescent();
        }
        f->flavour->unregister_thread();
        return NULL;
}

static void test_barriers_of_many_threads(void **state)
{
        pthread_t threads[THREADS];

        (void)state;
        called = 0;
        f->flavour->thread_offline();
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, caller, theirs[i]), 0);
        for (unsigned i = 0; i < THREADS; i++) {
                void *wrong;

                pthread_join(threads[i], &wrong);
                assert_null(wrong);
        }
        f->flavour->thread_online();
        f->table->barrier();
        assert_int_equal(called, THREADS * EACH);
}

/* ---- forks ---- */

static pid_t child;
static int answers;

static void fork_here(struct stook_rcu_head *head)
{
        (void)head;
        answers = f->table->may_wait();
        child = fork();
        if (!child)
                _exit(7);
        __atomic_store_n(&called, 1, __ATOMIC_RELEASE);
}

static void test_a_callback_may_fork(void **state)
{
        static struct stook_rcu_head head;

        (void)state;
        for (unsigned by_barrier = 0; by_barrier < 2; by_barrier++) {
                int status;

                called = 0;
                f->table->call(&head, fork_here);
                if (by_barrier)
                        f->table->barrier();
                else
                        wait_for_all(1);
                assert_true(child > 0);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(WEXITSTATUS(status), 7);
                assert_int_equal(answers, 0);           /* in a callback nobody waits */
        }
}

/* What waits at a fork is called in both, though nobody asks for it; also where it is the thread's turn just then. */
static void test_both_sides_of_a_fork_go_on(void **state)
{
        (void)state;
        for (unsigned round = 0; round < 20; round++) {
                int status;

                call_all(all, N);
                if (round % 2)
                        f->table->quiescent();
                child = fork();
                assert_true(child >= 0);
                if (!child) {
                        alarm(60);
                        wait_for_all(N);
                        call_all(all, N);
                        f->table->barrier();
                        _exit(called != N || !in_order);
                }
                wait_for_all(N);
                check_all();
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
        }
}

/* Last: liburcu's own threads from here on. */
static void test_where_the_program_handles_forks(void **state)
{
        unsigned before = made;

        (void)state;
        stook_urcu_handle_forks(0);
        call_all(all, N);
        f->table->barrier();
        check_all();
        assert_true(made > before);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_without_a_thread_the_barrier_does_it),
                cmocka_unit_test(test_the_thread_does_it_alone),
                cmocka_unit_test(test_readers_are_waited_for),
                cmocka_unit_test(test_barriers_of_many_threads),
                cmocka_unit_test(test_a_callback_may_fork),
                cmocka_unit_test(test_both_sides_of_a_fork_go_on),
                cmocka_unit_test(test_where_the_program_handles_forks),
        };
        int failed;

        f = flavour_of(argc > 1 ? argv[1] : NULL);
        if (!f)
                return 2;
        f->flavour->register_thread();
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        f->flavour->unregister_thread();
        return failed;
}
