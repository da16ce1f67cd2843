/*
 * What this proves: stook_pair_cas of base/pair_locked.c, which is compiled into this program on
 * every machine, loses no change: not to other threads, not to handlers on top of one, and not to
 * changes of half a pair. A child of fork, by whatever call, finishes what a vanished thread began.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alone.h"

#define THREADS  3
#define CHANGES  3000
#define HANDLERS 100
#define CHILDREN 60
#define FACTOR   0x10001ul              /* of hi: a pair that is torn shows */

static struct stook_pair pair;
static bool stop;                       /* atomic */
static unsigned handlers;               /* atomic */
static const struct itimerval never;

static void add(uintptr_t n)
{
        struct stook_pair old = stook_pair_read(&pair), new;

        do
                new = (struct stook_pair){ old.lo + n, (old.lo + n) * FACTOR };
        while (!stook_two_words_cas(&pair, &old, new));
}

static bool whole(void)
{
        return pair.hi == pair.lo * FACTOR;
}

static void test_answers(void **unused)
{
        struct stook_pair pairs[3] = { { 1, 2 }, { 3, 4 }, { 5, 6 } }, expected = { 3, 4 };

        (void)unused;
        assert_true(stook_pair_cas(&pairs[1], &expected, (struct stook_pair){ UINTPTR_MAX, 7 }));
        assert_true(expected.lo == 3 && expected.hi == 4);
        expected.lo = UINTPTR_MAX;
        assert_false(stook_pair_cas(&pairs[1], &expected, (struct stook_pair){ 8, 9 }));
        assert_true(expected.lo == UINTPTR_MAX && expected.hi == 7);
        assert_false(stook_word_cas(&pairs[1].hi, 6, 8, false));
        assert_true(stook_word_cas(&pairs[1].hi, 7, 8, false));
        assert_true(pairs[1].lo == UINTPTR_MAX && pairs[1].hi == 8);
        assert_true(pairs[0].lo == 1 && pairs[0].hi == 2 && pairs[2].lo == 5 && pairs[2].hi == 6);
}

static void on_alarm(int signal)
{
        (void)signal;
        add((uintptr_t)1 << 32);
        if (__atomic_add_fetch(&handlers, 1, __ATOMIC_RELAXED) >= HANDLERS)
                setitimer(ITIMER_REAL, &never, NULL);
}

static void *change(void *unused)
{
        (void)unused;
        for (unsigned i = 0; i < CHANGES; i++)
                add(1);
        return NULL;
}

static void test_threads_and_handlers(void **unused)
{
        const struct itimerval often = { { 0, 100 }, { 0, 100 } };
        struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
        pthread_t thread[THREADS];
        sigset_t mask;

        (void)unused;
        pair = (struct stook_pair){ 0, 0 };
        assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, change, NULL), 0);
        assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
        for (unsigned i = 0; i < THREADS; i++)
                pthread_join(thread[i], NULL);
        while (__atomic_load_n(&handlers, __ATOMIC_RELAXED) < HANDLERS)
                add(0);
        /* One more may have been on its way: it comes before this returns. */
        assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
        assert_int_equal(pair.lo, THREADS * CHANGES +
                                          ((uintptr_t)__atomic_load_n(&handlers, __ATOMIC_RELAXED)
                                           << 32));
        assert_true(whole());
        /* What was blocked is not any more. */
        assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
        assert_false(sigismember(&mask, SIGALRM) || sigismember(&mask, SIGTERM));
}

/* ---- children ---- */

static void *keep_changing(void *unused)
{
        (void)unused;
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
                add(1);
        return NULL;
}

/* 0: all is well. By a repair, or by the next change, which finds the lock cleared. */
static int look_in_child(bool repairs)
{
        uintptr_t before;

        if (repairs) {
                stook_pair_fork_child();
                if (!whole())
                        return 1;
        }
        add(0);
        before = pair.lo;
        add(5);
        return whole() && pair.lo == before + 5 ? 0 : 2;
}

static void test_children(void **unused)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        uint32_t *lock = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                              0);
        uint32_t probe = 1;
        pthread_t thread;
        bool cleared;
        int status;

        (void)unused;
        assert_ptr_not_equal(lock, MAP_FAILED);
        cleared = !madvise(lock, page, MADV_WIPEONFORK);
        lock[1] = probe;
        stook_pair_set_lock(lock);
        assert_int_equal(pthread_create(&thread, NULL, keep_changing, NULL), 0);
        for (unsigned i = 0; i < CHILDREN; i++) {
                pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

                if (!child)     /* an emulator may say that it clears the page, and not do it */
                        _exit(look_in_child(i % 2 || !cleared || lock[1]));
                assert_true(child > 0);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
        }
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
        assert_true(whole());
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_threads_and_handlers),
                cmocka_unit_test(test_children),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
