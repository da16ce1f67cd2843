/*
 * What this proves, of a slot's first sheaf, which is small: it is no spare of a whole one. Where
 * it is empty it leaves the slot; where it is full its objects go into the whole one. No object is
 * lost where the slot changes meanwhile, or where there is no memory for a whole one.
 */
#include <string.h>
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

        return object ? object : stook_slot_alloc_miss(&front);
}

static void give(void *object)
{
        if (push(object) != STOOK_PUSH_DONE)
                stook_slot_free_miss(&front, object, on_double);
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

static void a_full_first_sheaf_is_poured(void **state)
{
        (void)state;
        fill_first();
        give(users());
        assert_int_equal(stook_sheaf_capacity(main_now()), WHOLE);
        assert_int_equal(stook_sheaf_size(main_now()), FIRST + 1);
        assert_null(spare_now());
        assert_int_equal(counted(STOOK_STAT_sheaf_free), 1);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), 0);
        check_nothing_lost();
}

static struct stook_sheaf *theirs[2];

static void land_theirs(struct stook_front *f)
{
        (void)f;
        if (theirs[0])
                return;
        assert_ptr_equal(main_now(), ZERO);             /* poured out */
        theirs[0] = sheaf_of(1);
        theirs[1] = sheaf_of(1);
        set(theirs[0], theirs[1]);
}

/* Other threads have been on the slot: the sheaf with the objects finds no place. */
static void pour_into_a_sheaf_without_place(void **state)
{
        (void)state;
        fill_first();
        memset(theirs, 0, sizeof(theirs));
        stook_inject.landing = land_theirs;
        give(users());
        assert_ptr_equal(main_now(), theirs[0]);
        assert_ptr_equal(spare_now(), theirs[1]);
        assert_int_equal(stook_sheaf_size(theirs[0]), 2);
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
        assert_int_equal(stook_sheaf_size(main_now()), 1);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), FIRST);
        check_nothing_lost();
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(an_empty_first_sheaf_leaves, start_whole),
                cmocka_unit_test_setup(a_full_first_sheaf_is_poured, start_whole),
                cmocka_unit_test_setup(pour_into_a_sheaf_without_place, start_whole),
                cmocka_unit_test_setup(an_exchange_that_is_refused, start_whole),
                cmocka_unit_test_setup(no_memory_for_a_whole_sheaf, start_whole),
        };

        return cmocka_run_group_tests(all, start_slots, NULL);
}
