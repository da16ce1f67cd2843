/*
 * What this proves: the inlined hot path sees the same slot as the table of operations, and calls
 * that take it, and the miss path where it misses, move whole sheaves and lose nothing.
 */
#include "unit/slot/checks.h"

/*
 * The inlined path sees the same slot as the table of operations; only enrolled threads get there.
 */
static void the_inlined_path(void **state)
{
        struct stook_sheaf *s = sheaf_of(1);
        void *o = NULL;

        (void)state;
        set(s, NULL);
        if (ops == &stook_section_locked) {
                assert_int_equal(stook_self->ready, 0);
                assert_null(stook_slot_pop(front.offset));
                assert_false(stook_slot_push(front.offset, &o));
        } else {
                for (int i = 0; i < 100 && !o; i++)
                        o = stook_slot_pop(front.offset);
                assert_ptr_equal(o, s->objects[0]);
                while (!stook_slot_push(front.offset, o))
                        ;
                assert_false(stook_slot_push(front.offset, o));
                assert_int_equal(s->word, 1 | 1 << 16);
        }
        check_nothing_lost();
}

/*
 * Runs that the barn takes part in, and such that it takes none of, for nothing is asked of it for
 * long.
 */
static void long_runs_move_whole_sheaves(void **state)
{
        void *out[OBJECTS];

        (void)state;
        for (int round = 0; round < 6; round++) {
                unsigned n = round & 1 ? 5 * CAPACITY : OBJECTS;

                for (unsigned i = 0; i < n; i++) {
                        out[i] = stook_slot_pop(front.offset);
                        if (!out[i])
                                out[i] = stook_slot_get(&front, true);
                        assert_non_null(out[i]);
                        assert_int_equal((*fake_slab_stamp(out[i]))++, 0);
                }
                if (n == OBJECTS)
                        assert_null(stook_slot_get(&front, true));
                for (unsigned i = 0; i < n; i++) {
                        assert_int_equal(--*fake_slab_stamp(out[i]), 0);
                        if (!stook_slot_push(front.offset, out[i]))
                                stook_slot_put(&front, out[i], on_double);
                }
        }
        assert_true(counted(STOOK_STAT_barn_get) > 0);
        assert_true(counted(STOOK_STAT_barn_put) > 0);
        assert_true(counted(STOOK_STAT_sheaf_flush) > 0);
        check_nothing_lost();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(the_inlined_path, start),
                cmocka_unit_test_setup(long_runs_move_whole_sheaves, start),
        };

        return cmocka_run_group_tests(tests, start_slots, NULL);
}
