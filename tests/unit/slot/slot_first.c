/*
 * What this proves, of a slot's first sheaf, which is small: it is no spare of a whole one, and
 * leaves the slot, empty or full. No object is lost where the exchange is refused, or where there
 * is no memory for a whole one.
 */
#include "unit/slot/checks.h"
#include "base/inject.h"

#define WHOLE 64
#define FIRST 8                         /* objects of the first refill */

static int start_whole(void **state)
{
        (void)state;
        assert_true(slot_begin(OBJECTS, WHOLE, 3));
        ops = stook_slot_ops();
        return 0;
}

static void *allocated(void)
{
        void *object = ops->pop(front.offset);

        return object ? object : stook_slot_get(&front, true);
}

static void give(void *object)
{
        if (push(object) != STOOK_PUSH_DONE)
                stook_slot_put(&front, object, on_double);
}

static void fill_first(void)
{
        void *object = allocated();

        assert_non_null(object);
        assert_int_equal(stook_sheaf_capacity(main_now()), FIRST);
        give(object);
        assert_true(stook_sheaf_full(main_now()));
}

static void an_empty_first_sheaf_leaves(void **state)
{
        void *object[FIRST + 1];

        (void)state;
        for (unsigned i = 0; i <= FIRST; i++)
                object[i] = allocated();
        assert_int_equal(stook_sheaf_capacity(main_now()), WHOLE);
        assert_null(spare_now());
        assert_int_equal(counted(STOOK_STAT_sheaf_free), 1);
        for (unsigned i = 0; i <= FIRST; i++)
                give(object[i]);
        assert_int_equal(stook_sheaf_size(main_now()), 2 * FIRST);
        check_nothing_lost();
}

static void a_full_first_sheaf_leaves(void **state)
{
        (void)state;
        fill_first();
        give(users());
        assert_int_equal(stook_sheaf_capacity(main_now()), WHOLE);
        assert_int_equal(stook_sheaf_size(main_now()), 1);
        assert_null(spare_now());
        assert_int_equal(counted(STOOK_STAT_sheaf_free), 1);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), FIRST);
        check_nothing_lost();
}

static void an_exchange_that_is_refused(void **state)
{
        (void)state;
        for (unsigned every = 1; every < 4; every++) {
                fill_first();
                stook_inject.exchange_fail = every;
                for (unsigned i = 0; i < 3 * FIRST; i++)
                        give(users());
                stook_inject.exchange_fail = 0;
                check_nothing_lost();
                start_whole(NULL);
        }
}

static void no_memory_for_a_whole_sheaf(void **state)
{
        (void)state;
        fill_first();
        stook_inject.sheaf_fail_every = 1;
        give(users());
        stook_inject.sheaf_fail_every = 0;
        assert_int_equal(stook_sheaf_capacity(main_now()), FIRST);
        assert_int_equal(stook_sheaf_size(main_now()), FIRST);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        check_nothing_lost();
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(an_empty_first_sheaf_leaves, start_whole),
                cmocka_unit_test_setup(a_full_first_sheaf_leaves, start_whole),
                cmocka_unit_test_setup(an_exchange_that_is_refused, start_whole),
                cmocka_unit_test_setup(no_memory_for_a_whole_sheaf, start_whole),
        };

        return cmocka_run_group_tests(all, start_slots, NULL);
}
