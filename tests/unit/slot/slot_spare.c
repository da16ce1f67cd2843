/*
 * What this proves: a slot's spare sheaf is taken and put back whole, whatever its size; nothing
 * else is. Where the slot has no spare, has one already, or refuses, nothing changes.
 */
#include "unit/slot/checks.h"
#include "base/inject.h"
#include "slot/slot.h"

static void the_spare_is_taken_as_it_is(void **state)
{
        (void)state;
        for (unsigned size = 0; size <= CAPACITY; size++) {
                struct stook_sheaf *main = sheaf_of(SOME), *spare = sheaf_of(size);

                set(main, spare);
                assert_ptr_equal(stook_slot_take_spare(&front), spare);
                assert_int_equal(stook_sheaf_size(spare), size);
                assert_ptr_equal(main_now(), main);
                assert_null(spare_now());
                assert_null(stook_slot_take_spare(&front));
                assert_true(stook_slot_give_spare(&front, spare));
                assert_ptr_equal(main_now(), main);
                assert_ptr_equal(spare_now(), spare);
        }
        check_nothing_lost();
}

static void there_is_a_place_for_one(void **state)
{
        struct stook_sheaf *first = sheaf_of(SOME), *second = sheaf_of(CAPACITY);

        (void)state;
        assert_true(stook_slot_give_spare(&front, first));      /* also beside no sheaf */
        assert_ptr_equal(main_now(), ZERO);
        assert_false(stook_slot_give_spare(&front, second));
        assert_ptr_equal(spare_now(), first);
        assert_ptr_equal(stook_slot_take_spare(&front), first);
        assert_true(stook_slot_give_spare(&front, second));
        stook_slot_dispose(&front, -1, first);
        check_nothing_lost();
}

/* A sheaf of another capacity is of an older configuration. */
static void only_of_the_caches_capacity(void **state)
{
        struct stook_sheaf *sheaf = sheaf_of(SOME);

        (void)state;
        barns.capacity = 2 * CAPACITY;
        assert_false(stook_slot_give_spare(&front, sheaf));
        assert_null(spare_now());
        barns.capacity = CAPACITY;
        assert_true(stook_slot_give_spare(&front, sheaf));
        check_nothing_lost();
}

static void not_while_the_configuration_changes(void **state)
{
        struct stook_sheaf *spare = sheaf_of(SOME);

        (void)state;
        set(sheaf_of(SOME), spare);
        front.config = 1;
        assert_null(stook_slot_take_spare(&front));
        assert_ptr_equal(spare_now(), spare);
        front.config = 2;
        assert_ptr_equal(stook_slot_take_spare(&front), spare);
        front.config = 3;
        assert_false(stook_slot_give_spare(&front, spare));
        assert_null(spare_now());
        front.config = 4;
        assert_true(stook_slot_give_spare(&front, spare));
        check_nothing_lost();
}

/* Every exchange is refused, and every second one: then the second try does it. */
static void refusals_change_nothing(void **state)
{
        struct stook_sheaf *main = sheaf_of(SOME), *spare = sheaf_of(CAPACITY);

        (void)state;
        set(main, spare);
        stook_inject.lend_fail = 1;
        assert_null(stook_slot_take_spare(&front));
        assert_ptr_equal(main_now(), main);
        assert_ptr_equal(spare_now(), spare);
        stook_inject.lend_fail = 2;
        assert_ptr_equal(stook_slot_take_spare(&front), spare);
        stook_inject.lend_fail = 1;
        assert_false(stook_slot_give_spare(&front, spare));
        assert_null(spare_now());
        stook_inject.lend_fail = 2;
        assert_true(stook_slot_give_spare(&front, spare));
        check_nothing_lost();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(the_spare_is_taken_as_it_is, start),
                cmocka_unit_test_setup(there_is_a_place_for_one, start),
                cmocka_unit_test_setup(only_of_the_caches_capacity, start),
                cmocka_unit_test_setup(not_while_the_configuration_changes, start),
                cmocka_unit_test_setup(refusals_change_nothing, start),
        };

        return cmocka_run_group_tests(tests, start_slots, NULL);
}
