/*
 * What this proves: lock I3 at every instruction of take, try and drop: a handler that finds the
 * lock held by its own thread finds locks_held raised, too. The processor's trap flag stops after
 * each instruction.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/lock.h"
#include "base/thread.h"
#include "trap_flag.h"

#if defined(__x86_64__)

static struct stook_lock lock;
static unsigned steps, steps_held, early;

static void at_each_instruction(int signal)
{
        (void)signal;
        steps++;
        if (__atomic_load_n(&lock.word, __ATOMIC_RELAXED)) {
                steps_held++;
                early += stook_self->locks_held == 0;
        }
}

static void held_is_never_less_than_true(void **state)
{
        bool taken, tried;

        (void)state;
        signal(SIGTRAP, at_each_instruction);
        TRAP_FLAG_ON();
        taken = stook_lock_take(&lock);
        stook_lock_drop(&lock);
        tried = stook_lock_try(&lock);
        stook_lock_drop(&lock);
        TRAP_FLAG_OFF();
        assert_true(taken && tried);
        assert_true(steps > 40);
        assert_true(steps_held > 8);
        assert_int_equal(early, 0);
        assert_int_equal(stook_self->locks_held, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(held_is_never_less_than_true) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
        print_message("single steps need x86-64's trap flag\n");
        return 77;
}

#endif
