/*
 * What this proves: barn I3 and barn_budget.c I1. The budget goes by the pages in use. Room goes
 * from idle caches to caches in use. A closed barn loses nothing.
 */
#include "unit/barn/fixture.h"

/* A cache that only keeps its sheaves loses them, one for each flush, to one that is in use. */
static void the_budget_goes_to_caches_in_use(void **state)
{
        struct fake_cache *idle = make(1, 12, 10, 10), *busy = make(2, 12, 10, 10);
        unsigned put = 0;

        (void)state;
        stook_barn_set_budget(4 * 12 * 64);
        for (int i = 0; i < 4; i++)
                assert_true(stook_barn_push_full(&idle->barns, 0, filled(idle)));
        for (int i = 0; i < 40 && put < 4; i++) {
                struct stook_sheaf *s = stook_barn_refill(&busy->barns, 0, NULL, UINT_MAX);

                if (stook_barn_push_full(&busy->barns, 0, s)) {
                        put++;
                        continue;
                }
                stook_barn_flush(&busy->barns, s);
                stook_sheaf_delete(s, &busy->counters);
        }
        assert_int_equal(put, 4);
        assert_int_equal(stook_tagged_stack_count_racy(&idle->barns.node[0].full), 0);
        assert_true(stook_barn_booked_bytes(0) <= 4 * 12 * 64);
        stook_barn_empty_all(&busy->barns);
        expect_nothing_left(idle);
}

/* The caller of a put that the budget refuses drains its sheaf, and rebalances. */
static void a_refused_put_rebalances(void **state)
{
        struct fake_cache *idle = make(1, 12, 10, 10), *busy = make(2, 12, 10, 10);

        (void)state;
        stook_barn_set_budget(4 * 12 * 64);
        for (int i = 0; i < 4; i++)
                assert_true(stook_barn_push_full(&idle->barns, 0, filled(idle)));
        stook_barn_put(&busy->barns, 0, filled(busy));
        assert_int_equal(stook_tagged_stack_count_racy(&busy->barns.node[0].full), 0);
        assert_int_equal(stook_tagged_stack_count_racy(&idle->barns.node[0].full), 3);
        /* The room that came free is the next put's; that one is not refused, and evicts none. */
        stook_barn_put(&busy->barns, 0, filled(busy));
        assert_int_equal(stook_tagged_stack_count_racy(&busy->barns.node[0].full), 1);
        assert_int_equal(stook_tagged_stack_count_racy(&idle->barns.node[0].full), 3);
        stook_barn_empty_all(&busy->barns);
        expect_nothing_left(idle);
}

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

/* At a new height of the process, other caches than the one that is refilled yield sheaves. */
static void a_rise_takes_sheaves(void **state)
{
        struct fake_cache *idle = make(1, 12, 10, 10), *busy = make(2, 12, 10, 10);
        struct stook_sheaf *s;

        (void)state;
        for (int i = 0; i < 3; i++)
                assert_true(stook_barn_push_full(&idle->barns, 0, filled(idle)));
        assert_true(stook_barn_push_full(&busy->barns, 0, filled(busy)));
        s = stook_barn_refill(&busy->barns, 0, NULL, UINT_MAX);
        assert_int_equal(stook_tagged_stack_count_racy(&idle->barns.node[0].full), 3);
        stook_barn_discard(&busy->barns, s);
        pages_rises++;
        s = stook_barn_refill(&busy->barns, 0, NULL, UINT_MAX);
        assert_int_equal(stook_tagged_stack_count_racy(&idle->barns.node[0].full), 0);
        assert_int_equal(stook_tagged_stack_count_racy(&busy->barns.node[0].full), 1);
        stook_barn_discard(&busy->barns, s);
        stook_barn_empty_all(&busy->barns);
        expect_nothing_left(idle);
}

static void a_closed_barn_loses_nothing(void **state)
{
        struct fake_cache *idle = make(1, 12, 10, 10), *busy = make(2, 12, 10, 10);

        (void)state;
        stook_barn_set_budget(12 * 64);
        assert_true(stook_barn_push_full(&idle->barns, 0, filled(idle)));
        assert_true(stook_barns_close(&idle->barns));
        for (int i = 0; i < 10; i++) {
                struct stook_sheaf *s = stook_barn_refill(&busy->barns, 0, NULL, UINT_MAX);

                assert_false(stook_barn_push_full(&busy->barns, 0, s));
                stook_barn_flush(&busy->barns, s);
                stook_sheaf_delete(s, &busy->counters);
        }
        assert_int_equal(stook_tagged_stack_count_racy(&idle->barns.node[0].full), 1);
        stook_barns_open(&idle->barns);
        /* The wait for a visitor that does not leave is bounded. */
        __atomic_add_fetch(&idle->barns.visits, 1, __ATOMIC_RELAXED);
        assert_false(stook_barns_close(&idle->barns));
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
                cmocka_unit_test_setup(the_budget_goes_to_caches_in_use, setup),
                cmocka_unit_test_setup(a_refused_put_rebalances, setup),
                cmocka_unit_test_setup(a_rise_takes_sheaves, setup),
                cmocka_unit_test_setup(a_small_process_keeps_little, setup),
                cmocka_unit_test_setup(a_closed_barn_loses_nothing, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
