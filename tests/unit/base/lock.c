/*
 * What this proves: lock I1 and I2 and the words of base/lock.h. A thread that holds a lock, or
 * runs a handler on top of a holder, never waits. A wait ends, after 100 ms of sleep for one hold,
 * and none begins for a lock that is stuck. However many wait, each waits so long. A sleeper is
 * woken. No two threads share a lock. The hook refuses. I4: the count heals after a jump out of a
 * call, and its lock is had again. Nothing heals on top of a holder, whichever stack a handler runs
 * on. (I3 at every instruction is lock_steps.c.)
 * Sleeping is faked except in the last two tests, so nothing else here depends on time.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/inject.h"
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
        assert_true(*word == value);
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
        stook_lock_set_same_stack(stook_os_same_stack);
        stook_lock_hold_none();
        a.word = b.word = waits = wakes = 0;
        slept_ns = 0;
        released_while_asleep = NULL;
        return 0;
}

#define WAITERS 1
#define STUCK   2

static struct stook_thread_v1 another __attribute__((aligned(64)));

static void held_by_another(struct stook_lock *lock)
{
        lock->word = (uintptr_t)&another;
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
        held_by_another(&a);
        assert_false(stook_lock_try(&a));
        assert_int_equal(waits, 0);
        assert_int_equal(stook_self->locks_held, 0);
        assert_true(a.word == (uintptr_t)&another);
}

static void a_wait_ends_without_the_holder(void **state)
{
        (void)state;
        held_by_another(&a);
        assert_false(stook_lock_take(&a));
        assert_true(waits > 0);
        assert_int_equal(slept_ns, 100000000);
        assert_true(locks_held_asleep > 0);
        assert_int_equal(stook_self->locks_held, 0);
        assert_true((a.word & 0xffffffffffc0) == (uintptr_t)&another);
        assert_true((a.word & WAITERS) && (a.word & STUCK));
}

static void a_stuck_lock_is_not_waited_for(void **state)
{
        (void)state;
        held_by_another(&a);
        assert_false(stook_lock_take(&a));
        assert_true(waits > 0);
        waits = 0;
        assert_false(stook_lock_take(&a));
        assert_int_equal(waits, 0);
        a.word = 0;                             /* its holder has come back */
        assert_true(stook_lock_take(&a));
        stook_lock_drop(&a);
        held_by_another(&a);
        assert_false(stook_lock_take(&a));
        assert_true(waits > 0);
}

static void become_stuck(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
        waits++;
        a.word |= STUCK;                        /* another thread has waited for it in vain */
}

static void a_lock_that_becomes_stuck_is_not_waited_for(void **state)
{
        static const struct stook_lock_sleep stuck = { become_stuck, fake_wake };

        (void)state;
        stook_lock_set_sleep(&stuck);
        held_by_another(&a);
        assert_false(stook_lock_take(&a));
        assert_int_equal(waits, 1);
        assert_int_equal(stook_self->locks_held, 0);
}

static unsigned holds_left;

/* While a thread sleeps the lock is dropped, and its holder takes it again, so many times. */
static void next_hold_while_asleep(uint32_t *word, uint32_t value, uint64_t ns)
{
        waits++;
        slept_ns += ns;
        assert_true(*word == value);
        a.word = holds_left ? (uintptr_t)&another : 0;
        holds_left -= holds_left > 0;
}

static void a_busy_lock_is_waited_for_longer(void **state)
{
        static const struct stook_lock_sleep busy = { next_hold_while_asleep, fake_wake };

        (void)state;
        stook_lock_set_sleep(&busy);
        held_by_another(&a);
        holds_left = 200;
        assert_true(stook_lock_take(&a));
        assert_int_equal(waits, 201);
        stook_lock_drop(&a);
        assert_int_equal(wakes, 1);             /* others may sleep, too */
        held_by_another(&a);
        holds_left = UINT32_MAX;
        slept_ns = 0;
        assert_false(stook_lock_take(&a));
        assert_int_equal(slept_ns, 1000000000);
        assert_true((a.word & WAITERS) && !(a.word & STUCK));
        assert_int_equal(stook_self->locks_held, 0);
}

static jmp_buf out_of_sleep;

/* There a jump heals from shallower frames only (STOOK_HELD_GAP). These tests jump to their own. */
static void not_under_tsan(void)
{
        if (STOOK_TSAN)
                skip();
}

static void jump_out_of_sleep(uint32_t *word, uint32_t value, uint64_t ns)
{
        waits++;
        longjmp(out_of_sleep, 1 + (*word != value) + (ns == 0));
}

/* A thread that is jumped out of each wait does not wait for ever. */
static void waits_that_are_jumped_out_of_end(void **state)
{
        static const struct stook_lock_sleep jumps = { jump_out_of_sleep, fake_wake };
        volatile unsigned left = 50;

        (void)state;
        not_under_tsan();
        stook_lock_set_sleep(&jumps);
        held_by_another(&a);
        if (setjmp(out_of_sleep))
                assert_true(stook_lock_heal());
        while (left) {
                left--;
                assert_false(stook_lock_take(&a));
        }
        assert_int_equal(waits, 1);
        assert_int_equal(stook_self->locks_held, 0);
}

static void before_start_a_wait_spins(void **state)
{
        (void)state;
        stook_lock_set_sleep(NULL);
        held_by_another(&a);
        assert_false(stook_lock_take(&a));
        stook_lock_reset(&a);
        assert_true(stook_lock_take(&a));
        stook_lock_drop(&a);
}

static void a_sleeper_gets_the_lock_and_wakes_the_next(void **state)
{
        (void)state;
        held_by_another(&a);
        released_while_asleep = &a;
        assert_true(stook_lock_take(&a));
        assert_int_equal(waits, 1);
        assert_int_equal(stook_self->locks_held, 1);
        /* There may be more of them. */
        assert_true(a.word == ((uintptr_t)stook_self | WAITERS));
        stook_lock_drop(&a);
        assert_int_equal(wakes, 1);
        assert_int_equal(locks_held_at_wake, 1);
        assert_int_equal(a.word, 0);
}

static void a_holder_never_waits(void **state)
{
        (void)state;
        held_by_another(&b);
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
        in_handler = 8 | (stook_lock_take(&a) ? 1 : 0) | (stook_lock_take(&b) ? 2 : 0);
        if (stook_lock_take(&c)) {
                in_handler |= 4;
                stook_lock_drop(&c);
        }
}

static void a_handler_on_top_of_a_holder_never_waits(void **state)
{
        (void)state;
        signal(SIGUSR1, handler);
        held_by_another(&b);
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
        stook_inject.lock_refuse_every = 3;
        for (unsigned i = 0; i < 30; i++)
                if (i % 2 ? stook_lock_take(&a) : stook_lock_try(&a))
                        stook_lock_drop(&a);
                else
                        refused++;
        stook_inject.lock_refuse_every = 0;
        assert_int_equal(refused, 10);
        assert_int_equal(waits, 0);
        assert_int_equal(stook_self->locks_held, 0);
}

/*
 * ---- calls that were jumped out of: their frames are gone, as after a return without a drop ----
 */

#define NOINLINE __attribute__((noinline))

static NOINLINE void leave_held(struct stook_lock *lock)
{
        char room[300];

        __asm__ volatile("" : : "r"(room) : "memory");
        assert_true(stook_lock_take(lock));
}

static NOINLINE void leave_forbidden(void)
{
        char room[300];

        __asm__ volatile("" : : "r"(room) : "memory");
        stook_lock_forbid_waits();
}

/* Heals from a frame @bytes further down. */
static NOINLINE bool heal_below(size_t bytes)
{
        char room[bytes];
        bool healed;

        __asm__ volatile("" : : "r"(room) : "memory");
        healed = stook_lock_heal();
        __asm__ volatile("" : : "r"(room) : "memory");
        return healed;
}

static void what_was_left_heals_and_is_had_again(void **state)
{
        (void)state;
        not_under_tsan();
        leave_held(&a);
        leave_forbidden();
        assert_int_equal(stook_self->locks_held, 2);
        /* It may be held by a frame that is there. */
        assert_false(stook_lock_inherit(&a));
        assert_true(stook_lock_heal());
        assert_int_equal(stook_self->locks_held, 0);
        assert_false(stook_lock_heal());
        assert_false(stook_lock_take(&a));              /* not for itself does it wait */
        assert_int_equal(waits, 0);
        assert_int_equal(stook_self->locks_held, 0);
        assert_true(stook_lock_inherit(&a));
        assert_int_equal(stook_self->locks_held, 1);
        stook_lock_drop(&a);
        assert_int_equal(stook_self->locks_held, 0);
        assert_int_equal(a.word, 0);
        held_by_another(&b);
        assert_false(stook_lock_inherit(&b));
        assert_int_equal(stook_self->locks_held, 0);
}

static void a_lock_left_heals_from_a_little_further_down(void **state)
{
        (void)state;
        not_under_tsan();
        leave_held(&a);
        assert_false(heal_below(4096));
        assert_true(heal_below(400));
}

static void on_top_of_a_holder_nothing_heals(void **state)
{
        (void)state;
        stook_lock_raise(0);
        assert_false(heal_below(16));
        assert_false(heal_below(4096));
        stook_lock_lower();
        assert_true(stook_lock_take(&a));
        assert_false(heal_below(1024));                 /* a signal frame is no less */
        assert_false(heal_below(4096));
        assert_int_equal(stook_self->locks_held, 1);
        stook_lock_drop(&a);
}

static bool healed_in_handler;

static void heal_in_handler(int signal)
{
        (void)signal;
        healed_in_handler = stook_lock_heal();
}

static NOINLINE void raise_as_holder(void)
{
        char room[4096];

        __asm__ volatile("" : : "r"(room) : "memory");
        assert_true(stook_lock_take(&a));
        raise(SIGUSR2);
        assert_false(healed_in_handler);
        assert_int_equal(stook_self->locks_held, 1);
        stook_lock_drop(&a);
        stook_lock_forbid_waits();
        raise(SIGUSR2);
        assert_false(healed_in_handler);
        assert_int_equal(stook_self->locks_held, 1);
        stook_lock_allow_waits();
}

/* The alternate stack is an array further up: an address there is above the holder's. */
static void nor_in_a_handler_whatever_its_stack(void **state)
{
        char above[1 << 16];
        stack_t stack = { .ss_sp = above, .ss_size = sizeof(above) },
                none = { .ss_flags = SS_DISABLE };
        struct sigaction action = { .sa_handler = heal_in_handler };

        (void)state;
        sigaction(SIGUSR2, &action, NULL);
        raise_as_holder();
        action.sa_flags = SA_ONSTACK;
        sigaction(SIGUSR2, &action, NULL);
        assert_int_equal(sigaltstack(&stack, NULL), 0);
        raise_as_holder();
        assert_int_equal(sigaltstack(&none, NULL), 0);
}

static void what_is_kept_does_not_heal(void **state)
{
        (void)state;
        leave_held(&a);
        stook_lock_keep();
        assert_false(stook_lock_heal());
        assert_int_equal(stook_self->locks_held, 1);
        stook_lock_drop(&a);
        assert_int_equal(stook_self->locks_held, 0);
}

static void the_count_does_not_wrap(void **state)
{
        (void)state;
        not_under_tsan();
        for (unsigned i = 0; i < 300; i++)
                leave_forbidden();
        assert_int_equal(stook_self->locks_held, 255);
        stook_lock_allow_waits();
        assert_int_equal(stook_self->locks_held, 255);
        assert_true(stook_lock_heal());
        assert_int_equal(stook_self->locks_held, 0);
        stook_lock_allow_waits();
        assert_int_equal(stook_self->locks_held, 0);
}

static NOINLINE uint32_t pin_and_leave(void)
{
        char room[8192];
        uint32_t word;

        __asm__ volatile("" : : "r"(room) : "memory");
        word = stook_lock_pin();
        assert_false(heal_below(16));
        return word;
}

/* What is called with a lock held and may call the library: no deeper frame heals, however near. */
static void a_pinned_holder_does_not_heal_either(void **state)
{
        uint32_t word;

        (void)state;
        assert_true(stook_lock_take(&a));
        word = pin_and_leave();
        assert_int_equal(stook_self->locks_held, 1);
        stook_lock_unpin(word);
        assert_int_equal(stook_self->locks_held, 1);
        stook_lock_drop(&a);
        assert_int_equal(stook_self->locks_held, 0);
}

/* ---- threads, with the real sleep ---- */

#define THREADS 4
#define ROUNDS  100000
/* Lock a; not atomic, so a lock shared by two loses counts. */
static uint64_t shared;

static void *count(void *taken_by_me)
{
        uint64_t *taken = taken_by_me;

        /* On until it was had once: on a busy machine that may be none of the rounds. */
        for (unsigned i = 0; i < ROUNDS || !*taken; i++)
                if (stook_lock_take(&a)) {
                        shared++;
                        ++*taken;
                        stook_lock_drop(&a);
                }
        return stook_self->locks_held ? taken : NULL;
}

/* Of its 100 sleeps for one hold each waiter takes EACH. All take more than that together. */
#define MANY 40
#define EACH 50

static uint32_t asleep, dropped, refused;
static _Thread_local unsigned my_sleeps;

/* Ends at once, but for the last that is waited for: that ends once the holder is gone. */
static void sleep_until_dropped(uint32_t *word, uint32_t value, uint64_t ns)
{
        if (__atomic_load_n(&dropped, __ATOMIC_ACQUIRE)) {
                stook_os_futex_wait(word, value, 100 * ns);
        } else if (++my_sleeps == EACH) {
                __atomic_fetch_add(&asleep, 1, __ATOMIC_RELAXED);
                while (!__atomic_load_n(&dropped, __ATOMIC_ACQUIRE))
                        stook_os_pause(1000000);
        }
}

static void *take_once(void *unused)
{
        (void)unused;
        if (stook_lock_take(&a))
                stook_lock_drop(&a);
        else
                __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
        return NULL;
}

/* A holder that lost its CPU, while many threads wait for it. */
static void many_waiters_wait_no_shorter(void **state)
{
        static const struct stook_lock_sleep counted = { sleep_until_dropped, stook_os_futex_wake };
        pthread_t threads[MANY];

        (void)state;
        stook_lock_set_sleep(&counted);
        asleep = dropped = refused = 0;
        assert_true(stook_lock_take(&a));
        for (unsigned i = 0; i < MANY; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, take_once, NULL), 0);
        while (__atomic_load_n(&asleep, __ATOMIC_RELAXED) < MANY &&
               !__atomic_load_n(&refused, __ATOMIC_RELAXED))
                stook_os_pause(1000000);
        stook_lock_drop(&a);
        __atomic_store_n(&dropped, 1, __ATOMIC_RELEASE);
        for (unsigned i = 0; i < MANY; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(refused, 0);
        assert_int_equal(a.word, 0);
}

static void no_two_threads_share_a_lock(void **state)
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
                cmocka_unit_test_setup(a_stuck_lock_is_not_waited_for, setup),
                cmocka_unit_test_setup(a_lock_that_becomes_stuck_is_not_waited_for, setup),
                cmocka_unit_test_setup(a_busy_lock_is_waited_for_longer, setup),
                cmocka_unit_test_setup(waits_that_are_jumped_out_of_end, setup),
                cmocka_unit_test_setup(before_start_a_wait_spins, setup),
                cmocka_unit_test_setup(a_sleeper_gets_the_lock_and_wakes_the_next, setup),
                cmocka_unit_test_setup(a_holder_never_waits, setup),
                cmocka_unit_test_setup(a_handler_on_top_of_a_holder_never_waits, setup),
                cmocka_unit_test_setup(the_hook_refuses_each_nth, setup),
                cmocka_unit_test_setup(what_was_left_heals_and_is_had_again, setup),
                cmocka_unit_test_setup(a_lock_left_heals_from_a_little_further_down, setup),
                cmocka_unit_test_setup(on_top_of_a_holder_nothing_heals, setup),
                cmocka_unit_test_setup(nor_in_a_handler_whatever_its_stack, setup),
                cmocka_unit_test_setup(what_is_kept_does_not_heal, setup),
                cmocka_unit_test_setup(the_count_does_not_wrap, setup),
                cmocka_unit_test_setup(a_pinned_holder_does_not_heal_either, setup),
                cmocka_unit_test_setup(many_waiters_wait_no_shorter, setup),
                cmocka_unit_test_setup(no_two_threads_share_a_lock, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
