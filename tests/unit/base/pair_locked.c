/*
 * What this proves: stook_pair_cas of base/pair_locked.c, which is compiled into this program on
 * every machine, loses no change: not to other threads, not to handlers on top of one, and not to
 * changes of half a pair. A child of fork, by whatever call, finishes what a vanished thread left
 * half done, and leaves alone what that had stored.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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
static uint32_t *lock;                  /* in a page that is cleared in children, if it can be */
static bool cleared;

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
        expected.hi = 8;
        assert_true(stook_pair_cas(&pairs[1], &expected, (struct stook_pair){ 1, 8 }));
        assert_true(pairs[1].lo == 1 && pairs[1].hi == 8);
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

static size_t page_bytes(void)
{
        return (size_t)sysconf(_SC_PAGESIZE);
}

static void *new_page(void)
{
        void *page = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);

        assert_ptr_not_equal(page, MAP_FAILED);
        return page;
}

static void test_children(void **unused)
{
        pthread_t thread;
        int status;

        (void)unused;
        lock = new_page();
        cleared = !madvise(lock, page_bytes(), MADV_WIPEONFORK);
        lock[1] = 1;
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

/* ---- a holder that vanished at a known instant ---- */

static struct stook_pair *half_done, from = { 1, 2 };
static const struct stook_pair to = { 3, 4 };

/*
 * Its first store to the pair ends a child of vfork, which leaves the lock and the step behind. A
 * core would be of this process, too, so none is to be written.
 */
static void vanish_in_a_change(void)
{
        int status;
        pid_t child;

        *half_done = from;
        assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
        assert_int_equal(mprotect(half_done, page_bytes(), PROT_READ), 0);
        child = vfork();
        if (!child) {
                stook_pair_cas(half_done, &from, to);
                _exit(0);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        assert_int_equal(mprotect(half_done, page_bytes(), PROT_READ | PROT_WRITE), 0);
        assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
}

/* 0: where the pair was @found, it is @left. */
static int end_in_child(struct stook_pair found, struct stook_pair left, bool repairs)
{
        *half_done = found;
        if (repairs)
                stook_pair_fork_child();
        else
                add(0);
        return half_done->lo == left.lo && half_done->hi == left.hi ? 0 : 1;
}

static void test_each_instant(void **unused)
{
        static const struct {
                struct stook_pair found, left;
        } cases[] = {
                { { 1, 2 }, { 1, 2 } },         /* nothing is stored yet */
                { { 3, 2 }, { 3, 4 } },
                { { 3, 4 }, { 3, 4 } },
                { { 5, 4 }, { 5, 4 } },         /* plain stores came since */
                { { 5, 6 }, { 5, 6 } },
        };
        int status;

        (void)unused;
        half_done = new_page();
        vanish_in_a_change();
        if (!*lock)
                skip();                         /* an emulator's vfork may be a fork */
        for (unsigned i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
                pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

                if (!child)
                        _exit(end_in_child(cases[i / 2].found, cases[i / 2].left,
                                           i % 2 || !cleared || lock[1]));
                assert_true(child > 0);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
        }
        stook_pair_fork_child();
        assert_int_equal(*lock, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_threads_and_handlers),
                cmocka_unit_test(test_children),
                cmocka_unit_test(test_each_instant),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
