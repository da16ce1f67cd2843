/*
 * What this proves: the lines of a slot are filled before a thread may use them, for each cache
 * that is made and in each slot that gets ready.
 */
#include "unit/slot/checks.h"
#include "slot/slot_regions.h"

static void lines_of_new_caches(void **state)
{
        static const unsigned indices[] = { 1, 63, 64, 200, STOOK_CACHES_MAX - 1 };

        (void)state;
        stook_slot_free_miss(&front, users(), on_double);       /* one slot is ready */
        for (unsigned i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
                unsigned seen = 0;

                assert_true(stook_slots_add_cache(indices[i]));
                for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                        struct stook_line *line = stook_slots_line(slot, indices[i]);

                        if (!line)
                                continue;
                        seen++;
                        assert_ptr_equal((void *)line->pair.lo, ZERO);
                        assert_int_equal(line->pair.hi, 0);
                }
                assert_int_equal(seen, stook_slots_ready());
                assert_true(seen > 0);
        }
        check_nothing_lost();
}

static void expect_lines(struct stook_slot_head *slot)
{
        const struct stook_line *line = (struct stook_line *)slot;

        assert_non_null(slot);
        for (uint32_t i = 0; i < stook_regions_lines(); i++) {
                assert_ptr_equal((void *)line[i].pair.lo, ZERO);
                assert_int_equal(line[i].pair.hi, 0);
        }
}

/* On a CPU that no thread was on before, or with a concurrency id that none had. */
static void slots_get_ready_in_order(void **state)
{
        uint32_t last = stook_regions.rseq_slots;

        (void)state;
        for (uint32_t i = 0; i < last && i < 5; i++) {
                uint32_t ready = stook_regions_ready(i);

                assert_in_range(ready, i + 1, last);
                expect_lines(stook_slots_head(i));
                assert_int_equal(stook_regions_ready(0), ready);
        }
        assert_true(stook_regions_ready(last) <= last); /* there is no such slot */
        check_nothing_lost();
}

static void locked_slots_get_ready_one_by_one(void **state)
{
        (void)state;
        for (uint32_t i = stook_regions.locked_slots; i-- > 0;) {
                unsigned before = stook_slots_ready(), all = stook_regions.rseq_slots + i;
                bool was_ready = stook_slots_head(all);
                struct stook_slot_head *slot = stook_regions_locked(i);

                expect_lines(slot);
                assert_ptr_equal(slot, stook_slots_head(all));
                assert_int_equal(stook_slots_ready(), before + !was_ready);
                assert_ptr_equal(stook_regions_locked(i), slot);
                assert_int_equal(stook_slots_ready(), before + !was_ready);
        }
        check_nothing_lost();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(lines_of_new_caches, start),
                cmocka_unit_test_setup(slots_get_ready_in_order, start),
                cmocka_unit_test_setup(locked_slots_get_ready_one_by_one, start),
        };

        return cmocka_run_group_tests(tests, start_slots, NULL);
}
