/*
 * Proves of the thread behind libstook-urcu's tables, with each flavour: a callback may fork, and
 * so may handlers and other threads at any moment: children go on; so it is where the program
 * handles forks itself; the thread keeps no process alive, and another one is made if it ended too
 * early.
 *
 *      rcu_worker_forks memb|mb|qsbr|bp
 */
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <urcu/call-rcu.h>
#include "asleep.h"
#include "rcu_worker.h"
#include "trap_flag.h"

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

/* The first one stays among them after its end. */
static unsigned threads_now(void)
{
        struct stat tasks;

        return stat("/proc/self/task", &tasks) ? 0 : (unsigned)tasks.st_nlink - 2;
}

/* The first thread has ended, and the worker after it (@late), or not. */
static void *call_then(void *late)
{
        static struct counted one;

        f->flavour->register_thread();
        f->flavour->thread_offline();
        while (late && threads_now() > 2)
                usleep(1000);
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
        for (uintptr_t late = 0; late < 2; late++) {
                int status;

                f->table->barrier();
                child = fork();
                if (!child) {
                        pthread_t thread;

                        alarm(60);
                        call_all(all, N);
                        wait_for_all(N);
                        atexit(tell_end);
                        made = 0;
                        pthread_create(&thread, NULL, call_then, (void *)late);
                        f->flavour->unregister_thread();
                        pthread_exit(NULL);
                }
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_true(WIFEXITED(status));
                assert_true(WEXITSTATUS(status) == 8 || (!late && WEXITSTATUS(status) == 7));
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
static pid_t forks_now;                 /* atomic */
static unsigned forked;                 /* atomic: the fork is over, and waited for nothing */
static bool forks_too;

static void *fork_and_wait(void *unused)
{
        pid_t it;
        int status;

        tell_tid(&forks_now);
        it = fork();
        if (!it)
                _exit(0);
        __atomic_store_n(&forked, 1, __ATOMIC_RELEASE);
        return waitpid(it, &status, 0) == it && !status ? NULL : unused;
}

static void meet_a_fork(struct stook_rcu_head *head)
{
        static struct counted again;

        (void)head;
        wait_until_asleep(&forks_now, &forked);
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
                        forked = 0;
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
        usleep(50000);                  /* it is about to stop, or proves nothing this time */
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
                cmocka_unit_test(test_a_callback_may_fork),
                cmocka_unit_test(test_a_process_ends_with_its_last_thread),
                cmocka_unit_test(test_both_sides_of_a_fork_go_on),
                cmocka_unit_test(test_callbacks_beside_a_fork),
                cmocka_unit_test(test_handlers_fork_on_top_of_forks),
                cmocka_unit_test(test_forks_at_every_instruction_of_a_call),
                cmocka_unit_test(test_where_the_program_handles_forks),
                cmocka_unit_test(test_a_fork_beside_liburcus_thread),
        };

        return run_worker(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
