/*
 * Proves of the thread behind libstook-urcu's tables, with each flavour:
 *  - callbacks are called once, in order, after a grace period;
 *  - also by a barrier, where no thread can be had, and by the thread alone, where there is no
 *  barrier;
 *  - also after a grace period that the program tells of: those given before it, and no others;
 *  - also from many threads at once, and where the program handles forks itself;
 *  - a callback may fork, and so may handlers and other threads at any moment: children go on;
 *  - the thread keeps no process alive, and another one is made if it ended too early.
 *
 *      rcu_worker memb|mb|qsbr|bp
 */
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
#include "asleep.h"
#include "flavours.h"
#include "trap_flag.h"

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

/* This test is the first: there is no thread yet. */
static void test_without_a_thread_the_barrier_does_it(void **state)
{
        (void)state;
        refuse = N;
        call_all(all, N);
        assert_int_equal(refuse, 0);
        assert_int_equal(made, 0);
        assert_int_equal(called, 0);
        f->table->barrier();
        check_all();
}

/* Still without a thread: nobody else can have called them. */
static void test_what_the_program_tells_ends_them(void **state)
{
        static struct counted later;
        uint64_t first, second;

        (void)state;
        refuse = N + 1;
        call_all(all, N);
        first = stook_urcu_begin(f->table);
        later.number = N;
        f->table->call(&later.head, count);
        second = stook_urcu_begin(f->table);
        assert_int_equal(made, 0);
        assert_true(first && second > first);
        f->flavour->update_synchronize_rcu();
        stook_urcu_passed(f->table, 0);
        assert_int_equal(called, 0);
        stook_urcu_passed(f->table, first);
        assert_int_equal(called, N);            /* not the one that came later */
        stook_urcu_passed(f->table, first);
        assert_int_equal(later.calls, 0);
        stook_urcu_passed(f->table, second);
        stook_urcu_passed(f->table, first);
        assert_int_equal(later.calls, 1);
        assert_int_equal(called, N + 1);
        assert_int_equal(stook_urcu_begin(f->table), second);
        /* What was begun only, and told of never, is a barrier's. */
        refuse = N;
        call_all(all, N);
        assert_true(stook_urcu_begin(f->table) > second);
        f->table->barrier();
        check_all();
        assert_int_equal(stook_urcu_begin(&stook_rcu_epoch), 0);
        stook_urcu_passed(&stook_rcu_epoch, second);
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
static unsigned waits;                  /* atomic: the first thread is about to */
static pid_t waiter;                    /* atomic */

static void *stay(void *unused)
{
        f->flavour->register_thread();
        f->table->read_lock();
        __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
        while (!__atomic_load_n(&waits, __ATOMIC_SEQ_CST))
                usleep(100);
        wait_until_asleep(&waiter, &called);
        /* No callback was called that was given after this reader came in. */
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
        waits = 0;
        called = 0;
        f->flavour->thread_offline();
        assert_int_equal(pthread_create(&reader, NULL, stay, NULL), 0);
        while (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
                usleep(100);
        f->flavour->thread_online();
        call_all(all, N);
        tell_tid(&waiter);
        __atomic_store_n(&waits, 1, __ATOMIC_SEQ_CST);
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

/* Its grace periods end what the callers wait for, too. */
static int told_enough;                 /* atomic */

static void *tell(void *unused)
{
        f->flavour->register_thread();
        while (!__atomic_load_n(&told_enough, __ATOMIC_RELAXED)) {
                uint64_t begun = stook_urcu_begin(f->table);

                f->flavour->update_synchronize_rcu();
                stook_urcu_passed(f->table, begun);
        }
        f->flavour->unregister_thread();
        return unused;
}

static void test_barriers_of_many_threads(void **state)
{
        pthread_t threads[THREADS], teller;

        (void)state;
        called = 0;
        told_enough = 0;
        f->flavour->thread_offline();
        assert_int_equal(pthread_create(&teller, NULL, tell, NULL), 0);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, caller, theirs[i]), 0);
        for (unsigned i = 0; i < THREADS; i++) {
                void *wrong;

                pthread_join(threads[i], &wrong);
                assert_null(wrong);
        }
        __atomic_store_n(&told_enough, 1, __ATOMIC_RELAXED);
        pthread_join(teller, NULL);
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
        answers = f->table->may_wait() || stook_urcu_begin(f->table);
        child = fork();
        if (!child)
                _exit(7);
        __atomic_store_n(&called, 1, __ATOMIC_RELEASE);
}

static void count_theirs(struct rcu_head *head)
{
        (void)head;
        __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
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
                assert_int_equal(answers, 0);   /* in a callback no wait, and nothing begins */
        }
}

/* The first thread has ended, and the worker after it, or not: it does so in less than a second. */
static void *call_late(void *ms)
{
        static struct counted one;

        f->flavour->register_thread();
        f->flavour->thread_offline();
        usleep((useconds_t)(uintptr_t)ms * 1000);
        f->flavour->thread_online();
        called = 0;
        f->table->call(&one.head, count_only);
        wait_for_all(1);
        f->flavour->unregister_thread();
        return NULL;
}

static void tell_end(void)
{
        _exit(made == 1 ? 7 : 8);
}

static void test_a_process_ends_with_its_last_thread(void **state)
{
        (void)state;
        for (uintptr_t ms = 0; ms <= 1500; ms += 1500) {
                int status, tries = 0;

                f->table->barrier();
                child = fork();
                if (!child) {
                        pthread_t thread;

                        call_all(all, N);
                        wait_for_all(N);
                        atexit(tell_end);
                        made = 0;
                        pthread_create(&thread, NULL, call_late, (void *)ms);
                        f->flavour->unregister_thread();
                        pthread_exit(NULL);
                }
                while (!waitpid(child, &status, WNOHANG) && tries++ < 1000)
                        usleep(10000);
                if (tries >= 1000)
                        kill(child, SIGKILL);
                assert_true(tries < 1000);
                assert_true(WIFEXITED(status));
                assert_true(WEXITSTATUS(status) == 8 || (!ms && WEXITSTATUS(status) == 7));
        }
}

/*
 * Callbacks that wait at a fork are called in both processes, though no barrier asks for them. So
 * are they if it is the thread's turn just then.
 */
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

/*
 * Another thread forks and waits for a callback to end. Meanwhile the callback does what takes
 * something that forks take, too: it has another thread made (@may_start), or forks.
 */
static int forks_now;                   /* atomic */
static bool forks_too;

static void *fork_and_wait(void *unused)
{
        pid_t it;
        int status;

        __atomic_store_n(&forks_now, 1, __ATOMIC_RELEASE);
        it = fork();
        if (!it)
                _exit(0);
        return waitpid(it, &status, 0) == it && !status ? NULL : unused;
}

static void meet_a_fork(struct stook_rcu_head *head)
{
        static struct counted again;

        (void)head;
        while (!__atomic_load_n(&forks_now, __ATOMIC_ACQUIRE))
                usleep(1000);
        usleep(20000);                  /* it is on its way, or proves nothing this time */
        if (forks_too)
                fork_here(&again.head);
        else
                f->table->call(&again.head, count_only);
}

static void test_callbacks_beside_a_fork(void **state)
{
        static struct stook_rcu_head head;
        static char wrong;
        int status;

        (void)state;
        child = fork();
        if (!child) {
                alarm(60);
                for (unsigned i = 0; i < 2; i++) {
                        pthread_t thread;
                        void *answer;

                        forks_too = i;
                        forks_now = 0;
                        called = 0;
                        if (pthread_create(&thread, NULL, fork_and_wait, &wrong))
                                _exit(1);
                        refuse = N;
                        f->table->call(&head, meet_a_fork);
                        f->table->barrier();
                        f->flavour->thread_offline();
                        pthread_join(thread, &answer);
                        f->flavour->thread_online();
                        refuse = 0;
                        f->table->barrier();
                        if (answer || !called)
                                _exit(2);
                        if (forks_too &&
                            (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7))
                                _exit(3);
                }
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

/*
 * liburcu's own thread waits for this thread, which is a reader merely by being online. This thread
 * waits for that one to stop.
 */
static void test_a_fork_beside_liburcus_thread(void **state)
{
        static struct rcu_head head;
        int status;

        (void)state;
        stook_urcu_handle_forks(1);
        call_all(all, N);
        f->table->barrier();
        called = 0;
        f->flavour->update_call_rcu(&head, count_theirs);
        usleep(50000);
        child = fork();
        if (!child)
                _exit(7);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 7 << 8);
        wait_for_all(1);
}

/*
 * A handler forks, on top of forks and of everything else. (Not on top of liburcu's threads, which
 * stop for forks.)
 */
static int handled;                     /* atomic */
static volatile sig_atomic_t in_fork;   /* by this thread alone: not in its handler's forks */

/* glibc's fork takes a lock between the handlers that it calls, and must not be entered there. */
static bool is_in_c_library(const ucontext_t *context)
{
#if defined(__x86_64__)
        void *at = (void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
        void *at = (void *)context->uc_mcontext.pc;
#else
        void *at = (void *)context->uc_mcontext.__gregs[REG_PC];
#endif
        Dl_info interrupted, its_own;

        return dladdr(at, &interrupted) && dladdr((void *)waitpid, &its_own) &&
               interrupted.dli_fbase == its_own.dli_fbase;
}

static void fork_in_handler(int signal, siginfo_t *info, void *context)
{
        pid_t it;

        (void)info;
        if (in_fork && is_in_c_library(context))
                return;
        it = fork();
        if (!it)
                _exit(0);
        waitpid(it, NULL, 0);
        handled++;
        (void)signal;
}

static void test_handlers_fork_on_top_of_forks(void **state)
{
        struct sigaction on = { .sa_sigaction = fork_in_handler,
                                .sa_flags = SA_RESTART | SA_SIGINFO }, before;
        struct itimerval never = { 0 };

        (void)state;
        handled = 0;
        sigaction(SIGALRM, &on, &before);
        for (unsigned i = 0; i < 20 || handled < 10; i++) {
                /* Once in a round: a handler may take longer than any time between signals. */
                struct itimerval once = { .it_value = { .tv_usec = 1 + i * 137 % 2000 } };
                pid_t it;

                setitimer(ITIMER_REAL, &once, NULL);
                f->table->call(&all[i % 2].head, count_only);
                in_fork = 1;
                it = fork();
                if (!it)
                        _exit(0);
                in_fork = 0;
                waitpid(it, NULL, 0);
                f->table->barrier();
        }
        setitimer(ITIMER_REAL, &never, NULL);
        sigaction(SIGALRM, &before, NULL);
}

/* ---- forks while a thread that the child does not have is at any instruction of a call ---- */

#if defined(__x86_64__)
enum { RUNS, STOPPED, OVER };
static int stepped;                     /* atomic */

static void stop_here(int signal)
{
        (void)signal;
        __atomic_store_n(&stepped, STOPPED, __ATOMIC_RELEASE);
        while (__atomic_load_n(&stepped, __ATOMIC_ACQUIRE) == STOPPED)
                sched_yield();
}

static void *call_step_by_step(void *head)
{
        TRAP_FLAG_ON();
        f->table->call(head, count_only);
        TRAP_FLAG_OFF();
        __atomic_store_n(&stepped, OVER, __ATOMIC_RELEASE);
        return NULL;
}

static void test_forks_at_every_instruction_of_a_call(void **state)
{
        struct sigaction on = { .sa_handler = stop_here }, before;
        static struct counted one;
        unsigned steps = 0, wrong = 0;
        pthread_t thread;
        int now;

        (void)state;
        alarm(120);
        called = 0;
        sigaction(SIGTRAP, &on, &before);
        assert_int_equal(pthread_create(&thread, NULL, call_step_by_step, &one), 0);
        do {
                int status;

                while ((now = __atomic_load_n(&stepped, __ATOMIC_ACQUIRE)) == RUNS)
                        sched_yield();
                if (now == OVER)
                        break;
                steps++;
                child = fork();
                if (!child) {
                        alarm(60);
                        f->table->barrier();
                        call_all(all, N);
                        f->table->barrier();
                        _exit(called != N || !in_order);
                }
                wrong += waitpid(child, &status, 0) != child || status;
                __atomic_store_n(&stepped, RUNS, __ATOMIC_RELEASE);
        } while (1);
        sigaction(SIGTRAP, &before, NULL);
        alarm(0);
        pthread_join(thread, NULL);
        assert_int_equal(wrong, 0);
        assert_true(steps > 20);
        wait_for_all(1);
}
#else
static void test_forks_at_every_instruction_of_a_call(void **state)
{
        (void)state;
        skip();
}
#endif

/* liburcu's own threads from here on. */
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
                cmocka_unit_test(test_what_the_program_tells_ends_them),
                cmocka_unit_test(test_the_thread_does_it_alone),
                cmocka_unit_test(test_readers_are_waited_for),
                cmocka_unit_test(test_barriers_of_many_threads),
                cmocka_unit_test(test_a_callback_may_fork),
                cmocka_unit_test(test_a_process_ends_with_its_last_thread),
                cmocka_unit_test(test_both_sides_of_a_fork_go_on),
                cmocka_unit_test(test_callbacks_beside_a_fork),
                cmocka_unit_test(test_handlers_fork_on_top_of_forks),
                cmocka_unit_test(test_forks_at_every_instruction_of_a_call),
                cmocka_unit_test(test_where_the_program_handles_forks),
                cmocka_unit_test(test_a_fork_beside_liburcus_thread),
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
