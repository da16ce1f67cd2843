/*
 * Proves of the library's own RCU (stook_rcu_epoch) that a callback which is left by a jump, or
 * which ends its thread, is reported and recovered from.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "race/epoch_calls.h"

static const struct stook_rcu *const rcu = &stook_rcu_epoch;

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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_callback_left_by_a_jump_is_recovered_from),
                cmocka_unit_test(test_threads_that_end_in_a_callback_are_recovered_from),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
