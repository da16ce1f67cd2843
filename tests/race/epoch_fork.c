/*
 * Proves of the library's own RCU (stook_rcu_epoch) and fork: children of fork and _Fork, also of a
 * fork in a callback and of a child's thread, go on with what waited, and wait for no reader of
 * their parent. A child that stook_validate_all asks goes on with nothing.
 */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "race/epoch_calls.h"

static const struct stook_rcu *const rcu = &stook_rcu_epoch;

static void assert_child_says(pid_t child, int wanted)
{
        int status;

        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), wanted);
}

/* In the child: with the thread that it makes, or by barriers alone. */
static int go_on(bool by_barrier)
{
        if (by_barrier)
                rcu->barrier();
        else
                wait_for(&called, N);
        if (!all_are_called())
                return 1;
        call_all();
        rcu->barrier();
        return !all_are_called();
}

/* The thread may have begun to call: then the child has the rest of them to call. */
static void test_both_sides_of_a_fork_go_on(void **state)
{
        (void)state;
#ifdef __SANITIZE_THREAD__
        skip();                         /* it lets no child make a thread */
#endif
#ifdef __SANITIZE_ADDRESS__
        /* A thread that starts takes locks of its allocator, which a child would find taken. */
        call_all();
        rcu->barrier();
#endif
        for (unsigned round = 0; round < 20; round++) {
                pid_t child;

                call_all();
                child = fork();
                if (!child) {
                        alarm(60);
                        _exit(go_on(round % 2));
                }
                rcu->barrier();
                assert_true(all_are_called());
                assert_child_says(child, 0);
        }
}

static pid_t forked;
static int answer;

static void fork_here(struct stook_rcu_head *head)
{
        (void)head;
        answer = rcu->may_wait();
        forked = fork();
        if (!forked) {
                alarm(60);
                _exit(rcu->may_wait() ? 8 : 7);
        }
        __atomic_store_n(&called, 1, __ATOMIC_RELEASE);
}

static void test_a_callback_may_fork(void **state)
{
        static struct stook_rcu_head head;

        (void)state;
        for (unsigned by_barrier = 0; by_barrier < 2; by_barrier++) {
                called = 0;
                rcu->call(&head, fork_here);
                if (by_barrier)
                        rcu->barrier();
                wait_for(&called, 1);
                assert_child_says(forked, 7);
                assert_int_equal(answer, 0);            /* no wait is allowed in a callback */
        }
}

/* The child has no other thread: a reader there in the parent holds nothing up. */
static void test_a_child_waits_for_no_reader_of_its_parent(void **state)
{
        pthread_t reader;
        pid_t child;

        (void)state;
        inside = leave = 0;
        assert_int_equal(pthread_create(&reader, NULL, stay, NULL), 0);
        wait_for(&inside, 1);
        child = fork();
        if (!child) {
                alarm(60);
                _exit(stook_epoch_synchronize() != 0);
        }
        assert_child_says(child, 0);
        __atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
        pthread_join(reader, NULL);
}

/*
 * A child's thread may lie where its parent's serving thread lay. A child of a fork by it has none
 * that serves.
 */
static void *fork_again(void *status)
{
        pid_t child = fork();

        if (!child) {
                alarm(60);
                call_all();
                wait_for(&called, N);
                _exit(!all_are_called());
        }
        *(int *)status = -1;
        if (child > 0)
                waitpid(child, status, 0);
        return NULL;
}

static void test_a_childs_child_is_served(void **state)
{
        pid_t child;
        int status;

        (void)state;
#ifdef __SANITIZE_THREAD__
        skip();                         /* it lets no child make a thread */
#endif
        called = 0;
        call_all();
        wait_for(&called, N);
        rcu->barrier();
        child = fork();
        if (!child) {
                pthread_t thread;

                alarm(60);
                if (pthread_create(&thread, NULL, fork_again, &status))
                        _exit(2);
                pthread_join(thread, NULL);
                _exit(status != 0);
        }
        assert_child_says(child, 0);
}

static unsigned count_threads(void)
{
        DIR *tasks = opendir("/proc/self/task");
        unsigned n = 0;

        for (const struct dirent *e; tasks && (e = readdir(tasks));)
                n += e->d_name[0] != '.';
        if (tasks)
                closedir(tasks);
        return n;
}

/* Of _Fork: another thread may have had the C library's locks, which a new thread needs. */
static void test_a_child_of__Fork_makes_no_thread(void **state)
{
        pid_t child;
        int status;

        (void)state;
#ifdef __SANITIZE_THREAD__
        skip();                         /* it knows nothing of such a child */
#endif
        rcu->barrier();
        child = _Fork();
        if (!child) {
                alarm(60);
                call_all();
                if (count_threads() > 1)
                        _exit(2);
                rcu->barrier();
                if (!all_are_called() || count_threads() > 1)
                        _exit(3);
                child = fork();
                if (!child) {
                        call_all();
                        rcu->barrier();
                        _exit(!all_are_called());
                }
                if (waitpid(child, &status, 0) != child || status)
                        _exit(4);
                _exit(0);
        }
        assert_child_says(child, 0);
}

/* Threads of the child of the last fork, at the end of its handlers. Shared with children. */
static unsigned *threads_of_child;

static void note_threads(void)
{
        if (threads_of_child)
                *threads_of_child = count_threads();
}

static void test_a_child_that_is_asked_makes_no_thread(void **state)
{
        pthread_t reader;
        pid_t child;

        (void)state;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
        skip();                         /* a child may make no thread, or one that hangs: above */
#endif
        threads_of_child = mmap(NULL, sizeof(*threads_of_child), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(threads_of_child, MAP_FAILED);
        inside = leave = 0;
        assert_int_equal(pthread_create(&reader, NULL, stay, NULL), 0);
        wait_for(&inside, 1);
        call_all();                     /* they wait for the reader */
        assert_int_equal(stook_validate_all(), 0);
        assert_int_equal(*threads_of_child, 1);
        child = fork();
        if (!child)
                _exit(0);
        assert_child_says(child, 0);
        assert_int_equal(*threads_of_child, 2);
        __atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
        pthread_join(reader, NULL);
        rcu->barrier();
        assert_true(all_are_called());
        threads_of_child = NULL;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_both_sides_of_a_fork_go_on),
                cmocka_unit_test(test_a_callback_may_fork),
                cmocka_unit_test(test_a_child_waits_for_no_reader_of_its_parent),
                cmocka_unit_test(test_a_childs_child_is_served),
                cmocka_unit_test(test_a_child_of__Fork_makes_no_thread),
                cmocka_unit_test(test_a_child_that_is_asked_makes_no_thread),
        };

        /* Behind the library's, which was registered by a constructor. */
        pthread_atfork(NULL, NULL, note_threads);

        return cmocka_run_group_tests(tests, NULL, NULL);
}
