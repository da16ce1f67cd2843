/*
 * What this proves: a bulk call takes what the slot and its barn have, puts what they take, and
 * leaves the rest to its caller.
 */
#include "unit/slot/checks.h"
#include "base/inject.h"

static void bulk_takes_what_slot_and_barn_have(void **state)
{
        void *out[OBJECTS];

        (void)state;
        for (size_t n = 1; n < 9 * CAPACITY; n++) {
                size_t got, put;

                start(NULL);
                set(sheaf_of(3), sheaf_of(CAPACITY));
                for (int i = 0; i < 3; i++)
                        assert_true(stook_barn_push_full(&barns, 0, sheaf_of(CAPACITY)));
                got = stook_slot_alloc_bulk(&front, n, out);
                assert_int_equal(got, n < 3 + 4 * CAPACITY ? n : 3 + 4 * CAPACITY);
                for (size_t i = 0; i < got; i++)
                        assert_int_equal((*fake_slab_stamp(out[i]))++, 0);
                for (size_t i = 0; i < got; i++)
                        --*fake_slab_stamp(out[i]);
                put = stook_slot_free_bulk(&front, got, out);
                assert_true(put <= got);
                assert_int_equal(counted(STOOK_STAT_sheaf_flush), 0);
                stook_slab_drain(&slabs, got - put, out + put);
                check_nothing_lost();
        }
}

static void nothing_of_a_cache_without_sheaves(void **state)
{
        void *object = users();

        (void)state;
        barns.capacity = 0;
        assert_int_equal(stook_slot_free_bulk(&front, 1, &object), 0);
        stook_slab_drain(&slabs, 1, &object);
        assert_int_equal(stook_slot_alloc_bulk(&front, 1, &object), 0);
        assert_int_equal(fake_slab_out(), 0);
        check_nothing_lost();
}

/* Every exchange is refused: the calls end, with what main had and had room for. */
static void nothing_where_no_sheaf_can_be_installed(void **state)
{
        void *out[CAPACITY];

        (void)state;
        set(sheaf_of(CAPACITY), NULL);
        stook_inject.exchange_fail = 1;
        assert_int_equal(stook_slot_alloc_bulk(&front, CAPACITY, out), CAPACITY);
        assert_int_equal(stook_slot_alloc_bulk(&front, 1, out), 0);     /* nothing there */
        assert_int_equal(stook_slot_free_bulk(&front, CAPACITY, out), CAPACITY);
        out[0] = users();
        assert_int_equal(stook_slot_free_bulk(&front, 1, out), 0);      /* no room */
        stook_slab_drain(&slabs, 1, out);
        check_nothing_lost();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(bulk_takes_what_slot_and_barn_have, start),
                cmocka_unit_test_setup(nothing_of_a_cache_without_sheaves, start),
                cmocka_unit_test_setup(nothing_where_no_sheaf_can_be_installed, start),
        };

        return cmocka_run_group_tests(tests, start_slots, NULL);
}
