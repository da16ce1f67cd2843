/*
 * What this proves: a point fails at each n-th call, or from the n-th call on, and never where its
 * field is 0; points of one field count for themselves; a call and a count reach the test. Several
 * threads that come to "the n-th call" at once let exactly n - 1 pass.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/inject.h"

#define THREADS 4
#define CALLS   5000

static bool one(void) { return STOOK_INJECT_EVERY(miss_pop); }
static bool another(void) { return STOOK_INJECT_EVERY(miss_pop); }

static void test_every(void **state)
{
        unsigned failed = 0;

        (void)state;
        for (unsigned i = 0; i < 10; i++)
                assert_false(one());
        stook_inject.miss_pop = 3;
        for (unsigned i = 1; i <= 30; i++) {
                bool fails = one();

                assert_int_equal(fails, i % 3 == 0);
                failed += fails;
                if (i == 1)
                        assert_false(another());
        }
        assert_int_equal(failed, 10);
        assert_false(another());
        assert_true(another());
        stook_inject.miss_pop = 0;
        assert_false(one() || another());
}

static void test_from(void **state)
{
        (void)state;
        assert_false(STOOK_INJECT_FROM(span_fail_from));
        stook_inject.span_fail_from = 3;
        assert_false(STOOK_INJECT_FROM(span_fail_from));
        assert_false(STOOK_INJECT_FROM(span_fail_from));
        for (unsigned i = 0; i < 10; i++)
                assert_true(STOOK_INJECT_FROM(span_fail_from));
        assert_int_equal(stook_inject.span_fail_from, 1);
        stook_inject.span_fail_from = 0;
        assert_false(STOOK_INJECT_FROM(span_fail_from));
}

static struct stook_front *called_with;

static void note(struct stook_front *front) { called_with = front; }

static void test_call_and_count(void **state)
{
        struct stook_front *front = (struct stook_front *)state;

        STOOK_INJECT_CALL(landing, front);
        assert_null(called_with);
        stook_inject.landing = note;
        STOOK_INJECT_CALL(landing, front);
        assert_ptr_equal(called_with, front);
        stook_inject.landing = NULL;
        STOOK_INJECT_COUNT(evacuate_sleeps);
        STOOK_INJECT_COUNT(evacuate_sleeps);
        assert_int_equal(STOOK_INJECT_GET(evacuate_sleeps), 2);
}

static void *pass(void *passed)
{
        for (unsigned i = 0; i < CALLS; i++)
                *(unsigned *)passed += !STOOK_INJECT_FROM(commit_fail_from);
        return NULL;
}

static void test_threads(void **state)
{
        unsigned passed[THREADS] = { 0 }, sum = 0;
        pthread_t thread[THREADS];

        (void)state;
        stook_inject.commit_fail_from = 2 * CALLS;
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, pass, &passed[i]), 0);
        for (unsigned i = 0; i < THREADS; i++) {
                assert_int_equal(pthread_join(thread[i], NULL), 0);
                sum += passed[i];
        }
        assert_int_equal(sum, 2 * CALLS - 1);
        assert_int_equal(stook_inject.commit_fail_from, 1);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every),
                cmocka_unit_test(test_from),
                cmocka_unit_test(test_call_and_count),
                cmocka_unit_test(test_threads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
