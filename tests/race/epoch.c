/*
 * Proves of the library's own RCU (stook_rcu_epoch), with callbacks and with objects of a cache:
 *  - callbacks are called once, in order, by the thread alone and by a barrier alone;
 *  - none is called before the readers have left that were there; nested sections count as one;
 *  - what readers look at is not freed while they do, though two writers replace it all the time;
 *  - children of fork and _Fork, also of a fork in a callback, go on with what waited;
 *  - ends of threads, cancelled ones too, hold nothing up, and give records away once;
 *  - a callback that is left by a jump, or ends its thread, is reported and recovered from;
 *  - what is misuse is reported.
 */
#include <dirent.h>
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
#include <stook/stook.h>

static const struct stook_rcu *const rcu = &stook_rcu_epoch;

/* ---- callbacks ---- */

struct counted {
        struct stook_rcu_head head;     /* first */
        unsigned number, calls;
};

enum { N = 1000 };
static struct counted all[N];
static unsigned called;                 /* atomic */
static bool in_order;

static void count(struct stook_rcu_head *head)
{
        struct counted *c = (struct counted *)head;

        memset(head, 0xee, sizeof(*head));      /* the words are free again */
        c->calls++;
        if (c->number != __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE))
                in_order = false;
}

static void call_all(void)
{
        __atomic_store_n(&called, 0, __ATOMIC_RELAXED);
        in_order = true;
        for (unsigned i = 0; i < N; i++) {
                all[i].number = i;
                all[i].calls = 0;
                rcu->call(&all[i].head, count);
        }
}

static bool all_are_called(void)
{
        bool good = in_order && __atomic_load_n(&called, __ATOMIC_ACQUIRE) == N;

        for (unsigned i = 0; i < N; i++)
                good = good && all[i].calls == 1;
        return good;
}

/* By the thread; a minute at most. */
static void wait_for(const unsigned *word, unsigned wanted)
{
        for (unsigned i = 0; i < 60000 && __atomic_load_n(word, __ATOMIC_ACQUIRE) < wanted; i++)
                usleep(1000);
}

static void test_the_thread_calls_all(void **state)
{
        (void)state;
        call_all();
        wait_for(&called, N);
        assert_true(all_are_called());
}

static void test_a_barrier_calls_all(void **state)
{
        (void)state;
        for (unsigned round = 0; round < 20; round++) {
                call_all();
                rcu->barrier();
                assert_true(all_are_called());
        }
        assert_int_equal(stook_epoch_synchronize(), 0);
}

/* ---- readers are waited for ---- */

static unsigned inside, leave, seen_inside;     /* atomic */

static void *stay(void *unused)
{
        stook_epoch_read_lock();
        stook_epoch_read_lock();
        stook_epoch_read_unlock();
        __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
        wait_for(&leave, 1);
        usleep(30000);                  /* in this time a grace period would end */
        __atomic_store_n(&seen_inside, __atomic_load_n(&called, __ATOMIC_SEQ_CST),
                         __ATOMIC_SEQ_CST);
        stook_epoch_read_unlock();
        return unused;
}

static void test_readers_are_waited_for(void **state)
{
        pthread_t reader;

        (void)state;
        rcu->barrier();
        inside = leave = 0;
        called = 0;
        assert_int_equal(pthread_create(&reader, NULL, stay, NULL), 0);
        wait_for(&inside, 1);
        call_all();
        __atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
        rcu->barrier();
        assert_true(all_are_called());
        pthread_join(reader, NULL);
        assert_int_equal(__atomic_load_n(&seen_inside, __ATOMIC_SEQ_CST), 0);
}

static void *read_once(void *unused)
{
        stook_epoch_read_lock();
        stook_epoch_read_unlock();
        return unused;
}

static void test_records_of_ended_threads_hold_nothing_up(void **state)
{
        (void)state;
        for (unsigned i = 0; i < 100; i++) {
                pthread_t reader;

                assert_int_equal(pthread_create(&reader, NULL, read_once, NULL), 0);
                pthread_join(reader, NULL);
        }
        assert_int_equal(stook_epoch_synchronize(), 0);
}

/* ---- objects beside readers ---- */

#define ALIVE UINT64_C(0x600d600d600d600d)
enum { READERS = 2, WRITERS = 2, ROUNDS = 10000 };

struct node {
        uint64_t alive, a[6], b[6];
};

static struct stook_cache *cache;
static struct node *shared[WRITERS];    /* atomic */
static unsigned stop, faults;           /* atomic */

static void *look(void *unused)
{
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                rcu->read_lock();
                for (unsigned i = 0; i < WRITERS; i++) {
                        struct node *n = __atomic_load_n(&shared[i], __ATOMIC_ACQUIRE);

                        for (unsigned k = 0; k < 12; k++)
                                if (n->alive != ALIVE || n->a[k % 6] != n->b[k % 6])
                                        __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
                }
                rcu->read_unlock();
        }
        return unused;
}

/* A reader that still reads what the node was before will notice. */
static struct node *new_node(uint64_t x)
{
        struct node *n = stook_cache_alloc(cache);

        if (n) {
                n->alive = 0;
                for (unsigned k = 0; k < 6; k++)
                        n->a[k] = x, n->b[k] = ~x;
                for (unsigned k = 0; k < 6; k++)
                        n->b[k] = x;
                n->alive = ALIVE;
        }
        return n;
}

static void *replace(void *place)
{
        struct node **at = place;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct node *n = new_node(i);

                if (!n)
                        break;
                n = __atomic_exchange_n(at, n, __ATOMIC_ACQ_REL);
                if (stook_cache_free_rcu(cache, n)) {
                        __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
                        break;
                }
        }
        return NULL;
}

static void test_nothing_is_freed_under_a_reader(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_RCU,
                                         .rcu = rcu };
        pthread_t readers[READERS], writers[WRITERS];

        (void)state;
        cache = stook_cache_create("nodes", sizeof(struct node), &args);
        assert_non_null(cache);
        for (unsigned i = 0; i < WRITERS; i++)
                shared[i] = new_node(i);
        for (unsigned i = 0; i < READERS; i++)
                assert_int_equal(pthread_create(&readers[i], NULL, look, NULL), 0);
        for (unsigned i = 0; i < WRITERS; i++)
                assert_int_equal(pthread_create(&writers[i], NULL, replace, &shared[i]), 0);
        for (unsigned i = 0; i < WRITERS; i++)
                pthread_join(writers[i], NULL);
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < READERS; i++)
                pthread_join(readers[i], NULL);
        assert_int_equal(faults, 0);
        for (unsigned i = 0; i < WRITERS; i++)
                stook_cache_free(cache, shared[i]);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* ---- forks ---- */

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

/* ---- ends of threads ---- */

static void take_the_cancellation(struct stook_rcu_head *head)
{
        (void)head;
        pthread_testcancel();
}

static void *wait_though_cancelled(void *unused)
{
        static struct stook_rcu_head head;

        pthread_cancel(pthread_self());
        rcu->call(&head, take_the_cancellation);
        stook_epoch_synchronize();
        pthread_testcancel();
        return unused;
}

static void test_a_cancelled_thread_holds_nothing_up(void **state)
{
        pthread_t thread;
        void *result;

        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, wait_though_cancelled, NULL), 0);
        pthread_join(thread, &result);
        assert_ptr_equal(result, PTHREAD_CANCELED);
        assert_int_equal(stook_epoch_synchronize(), 0);
}

/* ---- callbacks that do not return ---- */

static unsigned reports;                /* atomic */

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        if (report->fault == STOOK_FAULT_RCU)
                __atomic_fetch_add(&reports, 1, __ATOMIC_RELEASE);
}

static pthread_t caller;
static jmp_buf out;
static bool was_left;

/* In the thread that serves it returns: only in the caller there is a place to jump to. */
static void jump_out(struct stook_rcu_head *head)
{
        (void)head;
        if (!pthread_equal(pthread_self(), caller))
                return;
        was_left = true;
        longjmp(out, 1);
}

static void end_thread(struct stook_rcu_head *head)
{
        (void)head;
        if (!pthread_equal(pthread_self(), caller))
                return;
        was_left = true;
        pthread_exit(NULL);
}

static void *synchronize(void *unused)
{
        stook_epoch_synchronize();
        return unused;
}

/* Until this thread, not the one that serves, was the one that called the callback. */
static void leave_a_callback(void (*callback)(struct stook_rcu_head *))
{
        static struct stook_rcu_head head;

        caller = pthread_self();
        was_left = false;
        for (unsigned i = 0; i < 1000 && !was_left; i++) {
                rcu->call(&head, callback);
                if (!setjmp(out))
                        stook_epoch_synchronize();
        }
}

static void test_a_callback_left_by_a_jump_is_recovered_from(void **state)
{
        pthread_t other;

        (void)state;
        stook_on_report(note, NULL);
        reports = 0;
        leave_a_callback(jump_out);
        assert_true(was_left);
        assert_int_equal(rcu->may_wait(), 2);
        assert_int_equal(reports, 1);
        assert_int_equal(pthread_create(&other, NULL, synchronize, NULL), 0);
        pthread_join(other, NULL);
        leave_a_callback(jump_out);
        call_all();
        assert_int_equal(reports, 2);
        rcu->barrier();
        assert_true(all_are_called());
        leave_a_callback(jump_out);
        assert_int_equal(stook_epoch_synchronize(), 0);
        assert_int_equal(reports, 3);
        stook_on_report(NULL, NULL);
}

static void *leave_by_end(void *unused)
{
        leave_a_callback(end_thread);
        return unused;
}

static void end_the_serving_thread(struct stook_rcu_head *head)
{
        (void)head;
        __atomic_store_n(&called, 1, __ATOMIC_RELEASE);
        if (!pthread_equal(pthread_self(), caller))
                pthread_exit(NULL);
}

static void test_threads_that_end_in_a_callback_are_recovered_from(void **state)
{
        static struct stook_rcu_head head;
        pthread_t thread;

        (void)state;
        stook_on_report(note, NULL);
        reports = 0;
        assert_int_equal(pthread_create(&thread, NULL, leave_by_end, NULL), 0);
        pthread_join(thread, NULL);
        assert_true(was_left);
        assert_int_equal(stook_epoch_synchronize(), 0);
        assert_int_equal(reports, 1);

        caller = pthread_self();
        called = 0;
        rcu->call(&head, end_the_serving_thread);
        wait_for(&called, 1);
        wait_for(&reports, 2);
        assert_int_equal(__atomic_load_n(&reports, __ATOMIC_ACQUIRE), 2);
        call_all();                     /* makes another one */
        wait_for(&called, N);
        assert_true(all_are_called());
        stook_on_report(NULL, NULL);
}

/* The reports of threads that ended inside a section; each of them reads in the report's hook. */
static unsigned ends;                   /* atomic */
static pthread_t late_reader;
static unsigned late_ended;             /* atomic */

static void read_in_hook(const struct stook_report *report, void *data)
{
        (void)report;
        (void)data;
        __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
        stook_epoch_read_lock();
        stook_epoch_read_unlock();
}

static void *stay_late(void *unused)
{
        stook_epoch_read_lock();
        __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
        wait_for(&leave, 1);
        __atomic_store_n(&late_ended, 1, __ATOMIC_SEQ_CST);
        stook_epoch_read_unlock();
        return unused;
}

/* Of a key behind the library's: its record is another thread's by now. */
static void begin_another(void *unused)
{
        (void)unused;
        if (!pthread_create(&late_reader, NULL, stay_late, NULL))
                wait_for(&inside, 1);
}

static void *end_inside_with_key(void *key)
{
        pthread_setspecific(*(pthread_key_t *)key, key);
        stook_epoch_read_lock();
        return NULL;
}

static void *let_go_soon(void *unused)
{
        usleep(30000);                  /* in this time a grace period would end */
        __atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
        return unused;
}

static void test_a_record_is_given_away_once(void **state)
{
        pthread_t thread, other;
        pthread_key_t key;

        (void)state;
        inside = leave = ends = 0;
        stook_epoch_read_lock();        /* makes the library's key */
        stook_epoch_read_unlock();
        assert_int_equal(pthread_key_create(&key, begin_another), 0);
        stook_on_report(read_in_hook, NULL);
        assert_int_equal(pthread_create(&thread, NULL, end_inside_with_key, &key), 0);
        pthread_join(thread, NULL);
        assert_int_equal(inside, 1);
        assert_int_equal(pthread_create(&other, NULL, let_go_soon, NULL), 0);
        assert_int_equal(stook_epoch_synchronize(), 0);
        assert_int_equal(__atomic_load_n(&late_ended, __ATOMIC_SEQ_CST), 1);
        pthread_join(other, NULL);
        pthread_join(late_reader, NULL);
        assert_int_equal(ends, 1);
        stook_on_report(NULL, NULL);
        pthread_key_delete(key);
}

/* ---- misuse ---- */

static void *end_inside(void *unused)
{
        stook_epoch_read_lock();
        return unused;
}

static void test_misuse_is_reported(void **state)
{
        pthread_t thread;

        (void)state;
        reports = 0;
        stook_on_report(note, NULL);
        assert_int_equal(rcu->may_wait(), 2);
        stook_epoch_read_unlock();
        assert_int_equal(reports, 1);
        stook_epoch_read_lock();
        assert_int_equal(rcu->may_wait(), 0);
        assert_int_equal(stook_epoch_synchronize(), -EDEADLK);
        rcu->barrier();
        stook_epoch_read_unlock();
        assert_int_equal(reports, 3);
        assert_int_equal(pthread_create(&thread, NULL, end_inside, NULL), 0);
        pthread_join(thread, NULL);
        assert_int_equal(reports, 4);
        assert_int_equal(stook_epoch_synchronize(), 0);
        stook_on_report(NULL, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_thread_calls_all),
                cmocka_unit_test(test_a_barrier_calls_all),
                cmocka_unit_test(test_readers_are_waited_for),
                cmocka_unit_test(test_records_of_ended_threads_hold_nothing_up),
                cmocka_unit_test(test_nothing_is_freed_under_a_reader),
                cmocka_unit_test(test_both_sides_of_a_fork_go_on),
                cmocka_unit_test(test_a_callback_may_fork),
                cmocka_unit_test(test_a_child_waits_for_no_reader_of_its_parent),
                cmocka_unit_test(test_a_childs_child_is_served),
                cmocka_unit_test(test_a_child_of__Fork_makes_no_thread),
                cmocka_unit_test(test_a_cancelled_thread_holds_nothing_up),
                cmocka_unit_test(test_a_callback_left_by_a_jump_is_recovered_from),
                cmocka_unit_test(test_threads_that_end_in_a_callback_are_recovered_from),
                cmocka_unit_test(test_a_record_is_given_away_once),
                cmocka_unit_test(test_misuse_is_reported),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
