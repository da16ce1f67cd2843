/*
 * What this proves: an evacuation empties all slots that it can have, and waits for no thread that
 * never leaves its slot.
 */
#include "unit/slot/checks.h"
#include "base/inject.h"
#include "evacuate/evacuate.h"
#include "slot/slot_regions.h"

/*
 * A holder that never returns costs what its slot has. Evacuations of other slots go on. There are
 * more evacuations than would fit into this test's time if each waited for the holder. An
 * evacuation waits for two such slots no longer than for one.
 */
static void a_holder_that_never_returns_costs_its_slot_only(void **state)
{
        /* 0 is the thread's own where sections are unprotected. */
        struct stook_slot_head *slot = stook_regions_locked(1);
        struct stook_line *line = (struct stook_line *)slot + INDEX;
        uint64_t *busy = &slot->holder;
        uint64_t *second = &stook_regions_locked(2)->holder;
        uint32_t slept = stook_inject.evacuate_sleeps;
        struct stook_sheaf *sheaf;
        struct stook_pair pair;
        void *object;

        (void)state;
        assert_non_null(slot);
        assert_true(stook_evacuate_cache(&front));
        sheaf = stook_sheaf_new(INDEX, front.barns->capacity, 0, front.barns->slabs->counters);
        assert_non_null(sheaf);
        assert_int_equal(stook_slab_fill(&slabs, 0, 2, sheaf->objects, 0), 2);
        stook_sheaf_set_size(sheaf, 2);
        stook_count(front.barns->slabs->counters, STOOK_STAT_sheaf_refill, 2);
        pair = stook_pair_read(&line->pair);
        assert_true(
                stook_pair_cas(&line->pair, &pair, (struct stook_pair){ .lo = (uintptr_t)sheaf }));
        __atomic_store_n(busy, 64, __ATOMIC_RELAXED);
        __atomic_store_n(second, 128, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < 1000; i++) {
                assert_int_equal(stook_slab_fill(&slabs, 0, 1, &object, 0), 1);
                stook_slot_put(&front, object, on_double);
                assert_false(stook_evacuate_cache(&front));
                assert_int_equal(fake_slab_out(), 2);
        }
        assert_ptr_equal((void *)line->pair.lo, sheaf);
        assert_in_range(stook_inject.evacuate_sleeps - slept, 1, 1000);
        __atomic_store_n(busy, 0, __ATOMIC_RELEASE);
        __atomic_store_n(second, 0, __ATOMIC_RELEASE);
        assert_true(stook_evacuate_cache(&front));
        check_nothing_lost();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(a_holder_that_never_returns_costs_its_slot_only, start),
        };

        return cmocka_run_group_tests(tests, start_slots, NULL);
}
