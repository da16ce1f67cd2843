/*
 * What this proves: while a process has one thread its children have a whole heap without a repair,
 * however they are made; what a command outside asked of the parent they leave; and the first slow
 * call beside a second thread has children notice that they are forked.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/alone.h"
#include "gate/gate.h"
#include "life/life.h"
#include "life/root.h"
#include "process/process.h"

static pthread_barrier_t met;

static uint32_t word(void)
{
        return __atomic_load_n(stook_gate_heap, __ATOMIC_RELAXED);
}

static void *idle(void *unused)
{
        pthread_barrier_wait(&met);
        return unused;
}

/* No handler of libc's is called. */
static void check_in_child(int (*check)(void))
{
        pid_t child = _Fork();
        int status;

        assert_true(child >= 0);
        if (!child) {
                alarm(60);
                _exit(check());
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

static int is_alone(void)
{
        stook_free(stook_malloc(100));
        stook_gate_check();
        return word() != STOOK_HEAP_ALONE || stook_fork_is_marked();
}

static int leaves_the_request(void)
{
        return word() != STOOK_HEAP_ASKED || is_alone() ||
               stook_root.request.state != STOOK_REQUEST_ASKED;
}

static int is_repaired(void)
{
        if (word() != STOOK_HEAP_FORKED)
                return 1;
        stook_gate_check();
        return word() != STOOK_HEAP_WHOLE;
}

static void test_a_child_of_one_thread(void **state)
{
        (void)state;
        if (!stook_has_one_thread())
                skip();                         /* this C library does not say */
        assert_int_equal(is_alone(), 0);
        check_in_child(is_alone);
}

static void test_a_request_to_the_parent(void **state)
{
        struct stook_request *request = &stook_root.request;

        (void)state;
        if (!stook_has_one_thread())
                skip();
        assert_int_equal(is_alone(), 0);
        request->process = stook_process_id();
        request->action = STOOK_REQUEST_STOP;
        request->sum = stook_request_sum(request);
        request->state = STOOK_REQUEST_ASKED;
        __atomic_store_n(stook_gate_heap, STOOK_HEAP_ASKED, __ATOMIC_RELEASE);
        check_in_child(leaves_the_request);
        stook_gate_check();
        assert_int_equal(request->state, STOOK_REQUEST_ANSWERED);
        assert_int_equal(word(), STOOK_HEAP_ALONE);
}

static void test_beside_a_thread(void **state)
{
        pthread_t thread;

        (void)state;
        pthread_barrier_init(&met, NULL, 2);
        assert_int_equal(pthread_create(&thread, NULL, idle, NULL), 0);
        stook_gate_check();
        assert_int_equal(word(), STOOK_HEAP_WHOLE);
        check_in_child(is_repaired);
        pthread_barrier_wait(&met);
        assert_int_equal(pthread_join(thread, NULL), 0);
        check_in_child(is_repaired);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_child_of_one_thread),
                cmocka_unit_test(test_a_request_to_the_parent),
                cmocka_unit_test(test_beside_a_thread),
        };

        if (!stook_gate_start())
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
