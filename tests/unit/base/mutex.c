/*
 * What this proves: mutex I1, I2 and the words of base/mutex.h. One thread holds a mutex; waiters
 * sleep and are woken; a bounded wait ends; a call that counted and was jumped out of is found.
 * Sleeping is faked except in the last test.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/lock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "os/os.h"

static struct stook_mutex mutex = STOOK_MUTEX_INIT(STOOK_RANK_REGISTRY);
static unsigned waits, wakes, free_after;

static void fake_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
        assert_true(ns > 0);
        assert_int_equal(*word, value);
        assert_true(value & 1);                         /* flagged before the sleep */
        if (++waits == free_after)
                mutex.word = 0;
}

static void fake_wake(uint32_t *word)
{
        assert_int_equal(*word, 0);
        wakes++;
}

static int setup(void **state)
{
        static const struct stook_lock_sleep fake = { fake_wait, fake_wake };

        (void)state;
        stook_lock_set_sleep(&fake);
        stook_mutex_reset(&mutex);
        waits = wakes = free_after = 0;
        return 0;
}

static void held_by_another_thread(void)
{
        mutex.word = (uint64_t)1 << 12;
}

static void one_holder(void **state)
{
        (void)state;
        assert_false(stook_mutex_is_held(&mutex));
        stook_mutex_lock(&mutex);
        assert_true(stook_mutex_is_held(&mutex));
        assert_true(stook_mutex_is_mine(&mutex));
        assert_false(stook_mutex_try(&mutex));
        assert_false(stook_mutex_try_counting(&mutex));
        assert_int_equal(stook_self->locks_held, 0);
        stook_mutex_unlock(&mutex);
        assert_int_equal(wakes, 0);                     /* no thread waited */
        assert_false(stook_mutex_is_held(&mutex));
        held_by_another_thread();
        assert_true(stook_mutex_is_held(&mutex));
        assert_false(stook_mutex_is_mine(&mutex));
        assert_false(stook_mutex_try(&mutex));
}

static void a_bounded_wait_ends(void **state)
{
        (void)state;
        held_by_another_thread();
        assert_false(stook_mutex_wait(&mutex, 7));
        assert_int_equal(waits, 7);
        assert_false(stook_mutex_wait(&mutex, 0));
        assert_int_equal(waits, 7);
}

static void a_sleeper_gets_it_and_wakes_the_next(void **state)
{
        (void)state;
        held_by_another_thread();
        free_after = 3;
        stook_mutex_lock(&mutex);
        assert_int_equal(waits, 3);
        assert_true(stook_mutex_is_mine(&mutex));
        stook_mutex_unlock(&mutex);
        assert_int_equal(wakes, 1);                     /* another thread may sleep, too */
}

static void what_counts_is_found_after_a_jump(void **state)
{
        (void)state;
        assert_true(stook_mutex_try_counting(&mutex));
        assert_int_equal(stook_self->locks_held, 1);
        assert_false(stook_mutex_was_left(&mutex));     /* the call may still be there */
        stook_mutex_unlock(&mutex);
        assert_int_equal(stook_self->locks_held, 0);

        assert_true(stook_mutex_try_counting(&mutex));
        stook_lock_hold_none();                         /* as stook_lock_heal does */
        assert_true(stook_mutex_was_left(&mutex));
        stook_mutex_inherit(&mutex);
        assert_false(stook_mutex_was_left(&mutex));
        assert_true(stook_mutex_is_mine(&mutex));
        stook_mutex_unlock(&mutex);
        assert_false(stook_mutex_is_held(&mutex));
        assert_int_equal(stook_self->locks_held, 0);

        /* A call that waited does not count: create and destroy are not to be jumped out of. */
        stook_mutex_lock(&mutex);
        assert_false(stook_mutex_was_left(&mutex));
        stook_mutex_unlock(&mutex);
}

#define THREADS 3
#define ROUNDS  20000
static unsigned inside, rounds;         /* mutex */

static void *use(void *failed)
{
        for (int i = 0; i < ROUNDS; i++) {
                if (i % 4 == 3) {
                        if (!stook_mutex_try_counting(&mutex))
                                continue;
                } else {
                        stook_mutex_lock(&mutex);
                }
                if (inside++)
                        *(bool *)failed = true;
                rounds++;
                inside--;
                stook_mutex_unlock(&mutex);
        }
        return NULL;
}

static void threads_take_turns(void **state)
{
        static const struct stook_lock_sleep real = { stook_os_futex_wait, stook_os_futex_wake };
        pthread_t threads[THREADS];
        bool failed = false;

        (void)state;
        stook_lock_set_sleep(&real);
        for (int i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, use, &failed), 0);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        assert_false(failed);
        assert_true(rounds >= THREADS * ROUNDS * 3 / 4);
        assert_false(stook_mutex_is_held(&mutex));
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(one_holder, setup),
                cmocka_unit_test_setup(a_bounded_wait_ends, setup),
                cmocka_unit_test_setup(a_sleeper_gets_it_and_wakes_the_next, setup),
                cmocka_unit_test_setup(what_counts_is_found_after_a_jump, setup),
                cmocka_unit_test_setup(threads_take_turns, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
