/*
 * What this proves: lock I1 and I2 and the words of base/lock.h: who holds a lock, or runs in a handler on top
 * of a holder, never waits; a wait ends, in at most 1 ms of sleep; a sleeper is woken; nobody shares a lock;
 * the hook refuses. (I3 at every instruction is lock_steps.c.)
 * Sleeping is faked but for the last test, so nothing here depends on time.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/lock.h"
#include "base/thread.h"
#include "os/os.h"

static struct stook_lock a, b;

/* ---- fake sleep ---- */
static unsigned waits, wakes;
static uint64_t slept_ns;
static struct stook_lock *released_while_asleep;
static unsigned locks_held_asleep, locks_held_at_wake;

static void fake_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
        waits++;
        slept_ns += ns;
        locks_held_asleep = stook_self->locks_held;
        assert_int_equal(*word, value);
        if (released_while_asleep)
                stook_lock_reset(released_while_asleep);
}

static void fake_wake(uint32_t *word)
{
        assert_int_equal(*word, 0);
        locks_held_at_wake = stook_self->locks_held;
        wakes++;
}

static int setup(void **state)
{
        static const struct stook_lock_sleep fake = { fake_wait, fake_wake };

        (void)state;
        stook_lock_set_sleep(&fake);
        a.word = b.word = waits = wakes = 0;
        slept_ns = 0;
        released_while_asleep = NULL;
        return 0;
}

static void held_by_somebody(struct stook_lock *lock)
{
        lock->word = 1;
}

/* ---- tests ---- */

static void take_and_drop(void **state)
{
        (void)state;
        assert_true(stook_lock_take(&a));
        assert_int_equal(stook_self->locks_held, 1);
        assert_true(stook_lock_take(&b));
        assert_int_equal(stook_self->locks_held, 2);
        assert_false(stook_lock_try(&a));
        assert_int_equal(stook_self->locks_held, 2);
        stook_lock_drop(&b);
        stook_lock_drop(&a);
        assert_int_equal(stook_self->locks_held, 0);
        assert_true(stook_lock_try(&a));
        stook_lock_drop(&a);
        assert_int_equal(waits + wakes, 0);
}

static void try_never_waits(void **state)
{
        (void)state;
        held_by_somebody(&a);
        assert_false(stook_lock_try(&a));
        assert_int_equal(waits, 0);
        assert_int_equal(stook_self->locks_held, 0);
        assert_int_equal(a.word, 1);
}

static void a_wait_ends_without_the_holder(void **state)
{
        (void)state;
        held_by_somebody(&a);
        assert_false(stook_lock_take(&a));
        assert_true(waits > 0);
        assert_true(slept_ns <= 1000000);
        assert_true(locks_held_asleep > 0);
        assert_int_equal(stook_self->locks_held, 0);
        assert_int_not_equal(a.word, 0);
}

static void before_start_a_wait_spins(void **state)
{
        (void)state;
        stook_lock_set_sleep(NULL);
        held_by_somebody(&a);
        assert_false(stook_lock_take(&a));
        stook_lock_reset(&a);
        assert_true(stook_lock_take(&a));
        stook_lock_drop(&a);
}

static void a_sleeper_gets_the_lock_and_wakes_the_next(void **state)
{
        (void)state;
        held_by_somebody(&a);
        released_while_asleep = &a;
        assert_true(stook_lock_take(&a));
        assert_int_equal(waits, 1);
        assert_int_equal(stook_self->locks_held, 1);
        assert_int_equal(a.word, 2);            /* there may be more of them */
        stook_lock_drop(&a);
        assert_int_equal(wakes, 1);
        assert_int_equal(locks_held_at_wake, 1);
        assert_int_equal(a.word, 0);
}

static void a_holder_never_waits(void **state)
{
        (void)state;
        held_by_somebody(&b);
        assert_true(stook_lock_take(&a));
        assert_false(stook_lock_take(&b));
        assert_int_equal(waits, 0);
        assert_int_equal(stook_self->locks_held, 1);
        stook_lock_drop(&a);
}

static int in_handler;                  /* bits: what the handler got */

static void handler(int signal)
{
        static struct stook_lock c;

        (void)signal;
        in_handler = 8;
        in_handler |= stook_lock_take(&a) ? 1 : 0;
        in_handler |= stook_lock_take(&b) ? 2 : 0;
        if (stook_lock_take(&c)) {
                in_handler |= 4;
                stook_lock_drop(&c);
        }
}

static void a_handler_on_top_of_a_holder_never_waits(void **state)
{
        (void)state;
        signal(SIGUSR1, handler);
        held_by_somebody(&b);
        assert_true(stook_lock_take(&a));
        raise(SIGUSR1);
        assert_int_equal(in_handler, 8 | 4);    /* the free one only */
        assert_int_equal(waits, 0);
        assert_int_equal(stook_self->locks_held, 1);
        stook_lock_drop(&a);
        assert_int_equal(stook_self->locks_held, 0);
}

static void the_hook_refuses_each_nth(void **state)
{
        unsigned refused = 0;

        (void)state;
        stook_lock_refuse_every = 3;
        for (unsigned i = 0; i < 30; i++) {
                bool taken = i % 2 ? stook_lock_take(&a) : stook_lock_try(&a);

                if (taken)
                        stook_lock_drop(&a);
                refused += !taken;
        }
        stook_lock_refuse_every = 0;
        assert_int_equal(refused, 10);
        assert_int_equal(waits, 0);
        assert_int_equal(stook_self->locks_held, 0);
}

/* ---- threads, with the real sleep ---- */

#define THREADS 4
#define ROUNDS  100000
static uint64_t shared;                 /* lock a; not atomic, so a lock shared by two loses counts */

static void *count(void *taken_by_me)
{
        uint64_t *taken = taken_by_me;

        for (unsigned i = 0; i < ROUNDS; i++)
                if (stook_lock_take(&a)) {
                        shared++;
                        ++*taken;
                        stook_lock_drop(&a);
                }
        return stook_self->locks_held ? taken : NULL;
}

static void nobody_shares_a_lock(void **state)
{
        static const struct stook_lock_sleep real = { stook_os_futex_wait, stook_os_futex_wake };
        pthread_t threads[THREADS];
        uint64_t taken[THREADS] = { 0 }, sum = 0;
        void *held;

        (void)state;
        stook_lock_set_sleep(&real);
        shared = 0;
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, count, &taken[i]), 0);
        for (unsigned i = 0; i < THREADS; i++) {
                assert_int_equal(pthread_join(threads[i], &held), 0);
                assert_null(held);
                assert_true(taken[i] > 0);
                sum += taken[i];
        }
        assert_int_equal(sum, shared);
        assert_int_equal(a.word, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(take_and_drop, setup),
                cmocka_unit_test_setup(try_never_waits, setup),
                cmocka_unit_test_setup(a_wait_ends_without_the_holder, setup),
                cmocka_unit_test_setup(before_start_a_wait_spins, setup),
                cmocka_unit_test_setup(a_sleeper_gets_the_lock_and_wakes_the_next, setup),
                cmocka_unit_test_setup(a_holder_never_waits, setup),
                cmocka_unit_test_setup(a_handler_on_top_of_a_holder_never_waits, setup),
                cmocka_unit_test_setup(the_hook_refuses_each_nth, setup),
                cmocka_unit_test_setup(nobody_shares_a_lock, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
