/*
 * What this proves, of a slot's misses: where an allocation gets its sheaf from, where a free gets
 * its empty one, and what happens when something is not to be had. Each step is a test of that
 * name, made to happen by a hook. The test checks where every sheaf is afterwards, and the
 * counters.
 * What the install finds in the slot: slot_replace.c.
 */
#include "unit/slot/checks.h"
#include "base/inject.h"

/* ---- an allocation that misses ---- */

static void alloc_no_sheaves(void **state)
{
        (void)state;
        barns.capacity = 0;
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        assert_int_equal(fake_slab_out(), 0);
        check_nothing_lost();
}

static void alloc_spare_is_swapped_in(void **state)
{
        struct stook_sheaf *main = sheaf_of(0), *spare = sheaf_of(SOME);

        (void)state;
        set(main, spare);
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        assert_ptr_equal(main_now(), spare);
        assert_ptr_equal(spare_now(), main);
        assert_int_equal(counted(STOOK_STAT_barn_get) + counted(STOOK_STAT_barn_get_fail), 0);
        assert_int_equal(counted(STOOK_STAT_sheaf_refill), 0);
        check_nothing_lost();
}

static void alloc_a_full_sheaf_of_the_barn(void **state)
{
        struct stook_sheaf *full = sheaf_of(CAPACITY);

        (void)state;
        assert_true(stook_barn_push_full(&barns, 0, full));
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        assert_ptr_equal(main_now(), full);
        assert_int_equal(counted(STOOK_STAT_barn_get), 1);
        assert_int_equal(counted(STOOK_STAT_barn_get_fail), 0);
        assert_int_equal(counted(STOOK_STAT_sheaf_refill), 0);
        check_nothing_lost();
}

static void alloc_an_empty_sheaf_of_the_barn_is_filled(void **state)
{
        struct stook_sheaf *empty = sheaf_of(0);

        (void)state;
        assert_true(stook_barn_push_empty(&barns, 0, empty));
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        assert_ptr_equal(main_now(), empty);
        assert_int_equal(counted(STOOK_STAT_barn_get_fail), 1);         /* none was full */
        assert_int_equal(counted(STOOK_STAT_sheaf_refill), CAPACITY);
        assert_int_equal(counted(STOOK_STAT_sheaf_alloc), 1);
        check_nothing_lost();
}

static void alloc_a_new_sheaf_or_none(void **state)
{
        (void)state;
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        assert_int_equal(counted(STOOK_STAT_sheaf_alloc), 1);
        assert_int_equal(counted(STOOK_STAT_sheaf_refill), CAPACITY);
        check_nothing_lost();
        begin(3);
        stook_inject.sheaf_fail_every = 1;
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        assert_int_equal(counted(STOOK_STAT_sheaf_alloc), 0);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        check_nothing_lost();
}

static void alloc_a_refill_that_falls_short(void **state)
{
        (void)state;
        for (long some = 0; some < CAPACITY; some++) {
                begin(3);
                fake_slab_fail_after = some;
                assert_null(stook_slot_get(&front, true));
                assert_int_equal(counted(STOOK_STAT_sheaf_refill), 0);
                assert_int_equal(counted(STOOK_STAT_sheaf_alloc), 1);
                assert_int_equal(fake_slab_out(), 0);
                check_nothing_lost();
        }
}

static void alloc_the_install_is_refused(void **state)
{
        void *object;

        (void)state;
        stook_inject.exchange_fail = 1;
        object = stook_slot_get(&front, true);
        assert_non_null(object);
        assert_ptr_equal(main_now(), ZERO);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(fulls(), 1);                   /* put, got, and put again for each try */
        assert_true(counted(STOOK_STAT_barn_put) > 1);
        stook_slot_put(&front, object, on_double);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        check_nothing_lost();
}

static void a_first_allocation_refills(void **state)
{
        void *o;

        (void)state;
        o = stook_slot_get(&front, true);
        assert_non_null(o);
        assert_int_equal(stook_sheaf_size(main_now()), CAPACITY - 1);
        assert_int_equal(counted(STOOK_STAT_sheaf_refill), CAPACITY);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 0);
        stook_slot_put(&front, o, on_double);
        assert_int_equal(stook_sheaf_size(main_now()), CAPACITY);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 0);
        /* A full main refuses, but its top is looked at. */
        stook_slot_put(&front, o, on_double);
        assert_int_equal(doubles, 1);
        doubles = 0;
        assert_int_equal(stook_sheaf_size(main_now()), CAPACITY);
        check_nothing_lost();
}

/* ---- a free that misses ---- */

static void free_no_spare(void **state)
{
        struct stook_sheaf *main = sheaf_of(CAPACITY), *empty = sheaf_of(0);

        (void)state;
        set(main, NULL);
        assert_true(stook_barn_push_empty(&barns, 0, empty));
        stook_slot_put(&front, users(), on_double);
        assert_ptr_equal(main_now(), empty);
        assert_ptr_equal(spare_now(), main);
        assert_int_equal(counted(STOOK_STAT_barn_put), 0);
        check_nothing_lost();
}

static void free_spare_is_swapped_in(void **state)
{
        struct stook_sheaf *main = sheaf_of(CAPACITY), *spare = sheaf_of(SOME);

        (void)state;
        set(main, spare);
        stook_slot_put(&front, users(), on_double);
        assert_ptr_equal(main_now(), spare);
        assert_ptr_equal(spare_now(), main);
        assert_int_equal(stook_sheaf_size(spare), SOME + 1);
        check_nothing_lost();
}

static void free_both_full_and_the_barn_takes_one(void **state)
{
        struct stook_sheaf *main = sheaf_of(CAPACITY), *spare = sheaf_of(CAPACITY),
                           *empty = sheaf_of(0);

        (void)state;
        set(main, spare);
        assert_true(stook_barn_push_empty(&barns, 0, empty));
        stook_slot_put(&front, users(), on_double);
        assert_ptr_equal(main_now(), empty);
        assert_ptr_equal(spare_now(), main);
        assert_int_equal(counted(STOOK_STAT_barn_put), 1);
        assert_int_equal(fulls(), 1);
        check_nothing_lost();
}

/* Main, spare and the barn's sheaves are one stack: what was pushed last is popped first. */
static void the_last_object_freed_comes_first(void **state)
{
        void *object[5 * CAPACITY];

        (void)state;
        begin(3);
        for (unsigned i = 0; i < 5 * CAPACITY; i++)
                object[i] = users();
        for (unsigned i = 0; i < 5 * CAPACITY; i++)
                if (push(object[i]) != STOOK_PUSH_DONE)
                        stook_slot_put(&front, object[i], on_double);
        assert_int_equal(fulls(), 3);
        for (unsigned i = 5 * CAPACITY; i > 0; i--) {
                void *popped = ops->pop(front.offset);

                assert_ptr_equal(popped ? popped : stook_slot_get(&front, true), object[i - 1]);
        }
        assert_int_equal(counted(STOOK_STAT_sheaf_refill), 0);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), 0);
        for (unsigned i = 0; i < 5 * CAPACITY; i++)
                stook_slot_put(&front, object[i], on_double);
        check_nothing_lost();
}

static void free_both_full_and_so_is_the_barn(void **state)
{
        (void)state;
        begin(1);
        set(sheaf_of(CAPACITY), sheaf_of(CAPACITY));
        assert_true(stook_barn_push_full(&barns, 0, sheaf_of(CAPACITY)));
        stook_slot_put(&front, users(), on_double);
        assert_int_equal(stook_sheaf_size(main_now()), 1);
        assert_int_equal(stook_sheaf_size(spare_now()), CAPACITY);
        assert_int_equal(counted(STOOK_STAT_barn_put_fail), 1);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), CAPACITY);    /* a whole sheaf at once */
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 0);
        check_nothing_lost();
}

static void free_no_memory_for_an_empty_sheaf(void **state)
{
        struct stook_sheaf *main = sheaf_of(CAPACITY);

        (void)state;
        set(main, sheaf_of(CAPACITY));
        stook_inject.sheaf_fail_every = 1;
        stook_slot_put(&front, users(), on_double);
        assert_ptr_equal(main_now(), main);
        assert_int_equal(stook_sheaf_size(main), CAPACITY);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), 0);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);         /* one, to its slab */
        check_nothing_lost();
}

static void free_the_install_is_refused(void **state)
{
        (void)state;
        set(sheaf_of(CAPACITY), sheaf_of(CAPACITY));
        stook_inject.exchange_fail = 1;
        stook_slot_put(&front, users(), on_double);
        assert_int_equal(stook_sheaf_size(main_now()), CAPACITY);
        assert_int_equal(empties(), 1);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        check_nothing_lost();
}

static void a_double_free_is_told(void **state)
{
        void *o;

        (void)state;
        set(sheaf_of(2), NULL);
        o = main_now()->objects[1];
        stook_slot_put(&front, o, on_double);
        assert_int_equal(doubles, 1);
        doubles = 0;
        assert_int_equal(stook_sheaf_size(main_now()), 2);
        check_nothing_lost();
}

/* ---- what is not to be had ---- */

static void the_slot_is_not_to_be_had(void **state)
{
        void *object;

        (void)state;
        set(sheaf_of(SOME), NULL);
        stook_inject.abort_storm = 1;
        object = stook_slot_get(&front, true);
        assert_non_null(object);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        stook_slot_put(&front, object, on_double);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        assert_int_equal(stook_sheaf_size(main_now()), SOME);
        check_nothing_lost();
}

static void the_barn_is_not_to_be_had(void **state)
{
        void *object;

        (void)state;
        assert_true(stook_barn_push_full(&barns, 0, sheaf_of(CAPACITY)));
        stook_inject.get_fail = 1;
        stook_inject.refill_fail = 1;
        object = stook_slot_get(&front, true);
        assert_non_null(object);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(fulls(), 1);
        stook_slot_put(&front, object, on_double);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        check_nothing_lost();
}

static void no_memory_for_a_sheaf(void **state)
{
        void *object;

        (void)state;
        stook_inject.sheaf_fail_every = 1;
        object = stook_slot_get(&front, true);
        assert_non_null(object);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        stook_inject.sheaf_fail_every = 0;
        set(sheaf_of(CAPACITY), sheaf_of(CAPACITY));
        stook_inject.sheaf_fail_every = 1;
        stook_slot_put(&front, object, on_double);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), 0);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        check_nothing_lost();
}

static void no_memory_for_objects(void **state)
{
        (void)state;
        fake_slab_fail_after = 0;
        assert_null(stook_slot_get(&front, true));
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 0);
        check_nothing_lost();
}

static void an_odd_configuration_installs_nothing(void **state)
{
        void *o;

        (void)state;
        front.config = 1;
        o = stook_slot_get(&front, true);
        assert_non_null(o);
        stook_slot_put(&front, o, on_double);
        assert_ptr_equal(main_now(), ZERO);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        check_nothing_lost();
}

/*
 * Every n-th of each step refused, n from 1: calls succeed all the same as long as the slabs have
 * objects.
 */
static void refusals_go_down_and_lose_nothing(void **state)
{
        uint32_t *hooks[] = { &stook_inject.miss_pop, &stook_inject.miss_push,
                              &stook_inject.exchange_fail, &stook_inject.get_fail,
                              &stook_inject.refill_fail, &stook_inject.abort_storm,
                              &stook_inject.sheaf_fail_every };

        (void)state;
        for (unsigned h = 0; h < sizeof(hooks) / sizeof(hooks[0]); h++)
                for (uint32_t n = 1; n <= 5; n++) {
                        void *out[100];

                        start(NULL);
                        *hooks[h] = n;
                        for (int round = 0; round < 3; round++) {
                                for (unsigned i = 0; i < 100; i++) {
                                        out[i] = stook_slot_get(&front, true);
                                        assert_non_null(out[i]);
                                        assert_int_equal((*fake_slab_stamp(out[i]))++, 0);
                                }
                                for (unsigned i = 0; i < 100; i++) {
                                        --*fake_slab_stamp(out[i]);
                                        stook_slot_put(&front, out[i], on_double);
                                }
                        }
                        if (n == 1 && hooks[h] != &stook_inject.sheaf_fail_every && h != 1 &&
                            h != 3)
                                assert_true(counted(STOOK_STAT_alloc_slowpath) > 0);
                        check_nothing_lost();
                }
}

static void no_memory_is_null_and_loses_nothing(void **state)
{
        (void)state;
        for (long n = 0; n < 3 * CAPACITY; n++) {
                void *out[3 * CAPACITY];
                long got = 0;

                start(NULL);
                fake_slab_fail_after = n;
                while ((out[got] = stook_slot_get(&front, true)))
                        got++;
                /*
                 * A refill that falls short gives back what it got; the fake counts that against
                 * the limit.
                 */
                assert_true(got <= n);
                while (got)
                        stook_slot_put(&front, out[--got], on_double);
                check_nothing_lost();
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(alloc_no_sheaves, start),
                cmocka_unit_test_setup(alloc_spare_is_swapped_in, start),
                cmocka_unit_test_setup(alloc_a_full_sheaf_of_the_barn, start),
                cmocka_unit_test_setup(alloc_an_empty_sheaf_of_the_barn_is_filled, start),
                cmocka_unit_test_setup(alloc_a_new_sheaf_or_none, start),
                cmocka_unit_test_setup(alloc_a_refill_that_falls_short, start),
                cmocka_unit_test_setup(alloc_the_install_is_refused, start),
                cmocka_unit_test_setup(a_first_allocation_refills, start),
                cmocka_unit_test_setup(free_no_spare, start),
                cmocka_unit_test_setup(free_spare_is_swapped_in, start),
                cmocka_unit_test_setup(free_both_full_and_the_barn_takes_one, start),
                cmocka_unit_test_setup(the_last_object_freed_comes_first, start),
                cmocka_unit_test_setup(free_both_full_and_so_is_the_barn, start),
                cmocka_unit_test_setup(free_no_memory_for_an_empty_sheaf, start),
                cmocka_unit_test_setup(free_the_install_is_refused, start),
                cmocka_unit_test_setup(a_double_free_is_told, start),
                cmocka_unit_test_setup(the_slot_is_not_to_be_had, start),
                cmocka_unit_test_setup(the_barn_is_not_to_be_had, start),
                cmocka_unit_test_setup(no_memory_for_a_sheaf, start),
                cmocka_unit_test_setup(no_memory_for_objects, start),
                cmocka_unit_test_setup(an_odd_configuration_installs_nothing, start),
                cmocka_unit_test_setup(refusals_go_down_and_lose_nothing, start),
                cmocka_unit_test_setup(no_memory_is_null_and_loses_nothing, start),
        };

        return cmocka_run_group_tests(tests, start_slots, NULL);
}
