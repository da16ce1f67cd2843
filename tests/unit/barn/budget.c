/*
 * What this proves: barn I3 and barn_room.c I6. The budget goes by the pages in use. A closed
 * barn loses nothing to threads that pass by.
 */
#include "unit/barn/fixture.h"

/* Whatever the limit: an eighth of the pages in use, or 1 MiB. */
static void a_small_process_keeps_little(void **state)
{
        const uint64_t mib = 1 << 20, limit = STOOK_BARN_NODE_BYTES;
        uint64_t before = stook_barn_booked_bytes(0);

        (void)state;
        pages_taken = 0;
        assert_true(stook_barn_book(0, mib - before));
        assert_false(stook_barn_book(0, 1));
        pages_taken = 16 * mib;
        assert_true(stook_barn_book(0, mib));
        assert_false(stook_barn_book(0, 1));
        pages_taken = 1024 * mib;
        assert_true(stook_barn_book(0, limit - 2 * mib));
        assert_false(stook_barn_book(0, 1));
        stook_barn_unbook(0, limit - before);
        /* What readers gave back at once comes on top of the share, never of the limit. */
        pages_taken = 0;
        stook_barn_expect_burst(2 * mib);
        assert_true(stook_barn_book(0, 3 * mib - before));
        assert_false(stook_barn_book(0, 1));
        stook_barn_expect_burst(100 * mib);
        assert_true(stook_barn_book(0, limit - 3 * mib));
        assert_false(stook_barn_book(0, 1));
        stook_barn_unbook(0, limit - before);
        stook_barn_expect_burst(0);
        assert_false(stook_barn_book(0, mib + 1));
}

static void a_closed_barn_loses_nothing(void **state)
{
        struct fake_cache *idle = make(1, 12, 10, 10);

        (void)state;
        assert_true(stook_barn_push_full(&idle->barns, 0, filled(idle)));
        assert_true(stook_barns_close(&idle->barns));
        stook_barns_give_all();
        /* Who does not get in is no visitor that the next close waits for. */
        assert_false(stook_barns_visit_begin(&idle->barns));
        assert_true(stook_barns_close(&idle->barns));
        assert_int_equal(stook_tagged_stack_count_racy(&idle->barns.node[0].full), 1);
        stook_barns_open(&idle->barns);
        stook_barns_give_all();
        assert_int_equal(stook_tagged_stack_count_racy(&idle->barns.node[0].full), 0);
        /* The wait for a visitor that does not leave is bounded. */
        __atomic_add_fetch(&idle->barns.visits, 1, __ATOMIC_RELAXED);
        assert_false(stook_barns_close(&idle->barns));
        /* Then it is open. */
        assert_true(stook_barns_visit_begin(&idle->barns));
        stook_barns_visit_end(&idle->barns);
        stook_barns_fork_child(&idle->barns, false);
        assert_true(stook_barns_close(&idle->barns));
        /*
         * In a child of fork: barns that a thread without a copy had closed are open. A fork on top
         * of a visit forgets the visit, which then ends.
         */
        stook_barns_fork_child(&idle->barns, true);
        assert_true(stook_barns_visit_begin(&idle->barns));
        stook_barns_fork_child(&idle->barns, true);
        stook_barns_visit_end(&idle->barns);
        assert_true(stook_barns_visit_begin(&idle->barns));
        stook_barns_visit_end(&idle->barns);
        assert_true(stook_barns_close(&idle->barns));
        stook_barns_open(&idle->barns);
        expect_nothing_left(idle);
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(a_small_process_keeps_little, setup),
                cmocka_unit_test_setup(a_closed_barn_loses_nothing, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
