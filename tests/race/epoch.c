/*
 * Proves of the library's own RCU (stook_rcu_epoch), with callbacks and with objects of a cache:
 *  - callbacks are called once, in order, by the thread alone and by a barrier alone;
 *  - none is called before the readers have left that were there; nested sections count as one;
 *  - what readers look at is not freed while they do, though two writers replace it all the time;
 *  - ends of threads, cancelled ones too, hold nothing up, and give records away once;
 *  - what is misuse is reported.
 * Forks are in epoch_fork.c, callbacks that do not return in epoch_leave.c.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "asleep.h"
#include "race/epoch_calls.h"

static const struct stook_rcu *const rcu = &stook_rcu_epoch;

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
        tell_tid(&waiter);
        __atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
        rcu->barrier();
        assert_true(all_are_called());
        pthread_join(reader, NULL);
        waiter = 0;
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
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_CACHE_RCU,
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

static unsigned waits;                  /* atomic: the next thing that it does */

static void *let_go_when_waited_for(void *unused)
{
        wait_for(&waits, 1);
        wait_until_asleep(&waiter, &late_ended);
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
        assert_int_equal(pthread_create(&other, NULL, let_go_when_waited_for, NULL), 0);
        tell_tid(&waiter);
        __atomic_store_n(&waits, 1, __ATOMIC_SEQ_CST);
        assert_int_equal(stook_epoch_synchronize(), 0);
        assert_int_equal(__atomic_load_n(&late_ended, __ATOMIC_SEQ_CST), 1);
        pthread_join(other, NULL);
        pthread_join(late_reader, NULL);
        waiter = 0;
        assert_int_equal(ends, 1);
        stook_on_report(NULL, NULL);
        pthread_key_delete(key);
}

/* ---- misuse ---- */

static unsigned reports;                /* atomic */

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        if (report->fault == STOOK_FAULT_RCU)
                __atomic_fetch_add(&reports, 1, __ATOMIC_RELEASE);
}

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
                cmocka_unit_test(test_a_cancelled_thread_holds_nothing_up),
                cmocka_unit_test(test_a_record_is_given_away_once),
                cmocka_unit_test(test_misuse_is_reported),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
