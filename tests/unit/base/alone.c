/*
 * What this proves: a word changed by stook_word_cas loses no change (base/alone.h): not to a
 * handler on top of the only thread, where no other thread was ever made; and not to other threads,
 * once there are some. A process with one thread is alone, and is not from before its second thread
 * runs.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/time.h>
#include <cmocka.h>

#include "base/alone.h"

#define HANDLERS 200
#define THREADS  2
#define CHANGES  20000

static uint64_t word;
static volatile sig_atomic_t handlers;
static bool alone_in_thread;

static void add(uint64_t n)
{
        uint64_t old = __atomic_load_n(&word, __ATOMIC_RELAXED);

        while (!stook_word_cas(&word, old, old + n, stook_is_alone()))
                old = __atomic_load_n(&word, __ATOMIC_RELAXED);
}

static void test_answers(void **unused)
{
        uint64_t w[3] = { 1, 2, 3 };

        (void)unused;
        assert_true(stook_word_cas(&w[1], 2, UINT64_MAX, stook_is_alone()));
        assert_false(stook_word_cas(&w[1], 2, 7, stook_is_alone()));
        assert_false(stook_word_cas(&w[1], (uint32_t)UINT64_MAX, 7, stook_is_alone()));
        assert_true(w[0] == 1 && w[1] == UINT64_MAX && w[2] == 3);
}

static void test_two_words(void **unused)
{
        struct stook_pair pairs[3] = { { 1, 2 }, { 3, 4 }, { 5, 6 } };
        struct stook_pair expected = { 3, 4 }, desired = { UINTPTR_MAX, 7 };

        (void)unused;
        assert_true(stook_two_words_cas(&pairs[1], &expected, desired));
        assert_true(expected.lo == 3 && expected.hi == 4);
        assert_false(stook_two_words_cas(&pairs[1], &expected, (struct stook_pair){ 8, 9 }));
        assert_true(expected.lo == UINTPTR_MAX && expected.hi == 7);
        expected.hi = 6;
        assert_false(stook_two_words_cas(&pairs[1], &expected, (struct stook_pair){ 8, 9 }));
        assert_true(pairs[1].lo == UINTPTR_MAX && pairs[1].hi == 7);
        assert_true(pairs[0].lo == 1 && pairs[0].hi == 2 && pairs[2].lo == 5 && pairs[2].hi == 6);
}

/* The last one ends the timer: on a slow machine signals may come faster than they are handled. */
static void on_alarm(int signal)
{
        const struct itimerval never = { { 0, 0 }, { 0, 0 } };

        (void)signal;
        add(UINT64_C(1) << 32);
        if (++handlers == HANDLERS)
                setitimer(ITIMER_REAL, &never, NULL);
}

static void test_handlers(void **unused)
{
        struct sigaction action = { .sa_handler = on_alarm }, before;
        struct itimerval often = { { 0, 50 }, { 0, 50 } };
        uint64_t added = 0;

        (void)unused;
        word = 0;
        assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
        assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
        for (; handlers < HANDLERS; added++)
                add(1);
        sigaction(SIGALRM, &before, NULL);
        assert_int_equal(word >> 32, handlers);
        assert_int_equal((uint32_t)word, (uint32_t)added);
}

static void *change(void *unused)
{
        if (stook_is_alone())
                __atomic_store_n(&alone_in_thread, true, __ATOMIC_RELAXED);
        for (int i = 0; i < CHANGES; i++)
                add(1);
        return unused;
}

static void test_threads(void **unused)
{
        pthread_t threads[THREADS];

        (void)unused;
        word = 0;
#if STOOK_ALONE_IS_CHEAPER && defined(__GLIBC__)
        assert_true(stook_is_alone());
#else
        assert_true(!STOOK_ALONE_IS_CHEAPER || !&__libc_single_threaded || stook_is_alone());
#endif
        for (int i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, change, NULL), 0);
        assert_false(stook_is_alone());
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(word, THREADS * CHANGES);
        assert_false(alone_in_thread);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_two_words),
                cmocka_unit_test(test_handlers),
                cmocka_unit_test(test_threads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
