/*
 * What this proves: barn_refill.c I1. A refill that fails loses nothing (the kernel's leak of
 * 464b1c115852). A small refill makes a small sheaf, and one of nothing makes none.
 */
#include "unit/barn/fixture.h"
#include "base/inject.h"

static void a_failed_refill_loses_nothing(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10);
        struct stook_sheaf *s;

        (void)state;
        for (size_t there = 0; there < 12; there++) {
                can_fill = there;
                assert_null(filled(c));
                assert_int_equal(objects_out(), 0);
                s = stook_sheaf_new(1, 12, 0, &c->counters);
                can_fill = there;
                assert_null(stook_barn_refill(&c->barns, 0, s, UINT_MAX));
                assert_int_equal(stook_sheaf_size(s), 0);
                assert_int_equal(objects_out(), 0);
                stook_sheaf_delete(s, &c->counters);
        }
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_refill), 0);
        stook_inject.sheaf_fail_every = 1;
        can_fill = OBJECTS;
        assert_null(filled(c));
        expect_nothing_left(c);
}

/* A tuner ended the cache's sheaves when a refill was under way. */
static void a_refill_of_nothing_makes_none(void **state)
{
        struct fake_cache *c = make(3, 12, 10, 10);
        struct stook_sheaf *sheaf = stook_sheaf_new(3, 12, 0, &c->counters);

        (void)state;
        can_fill = OBJECTS;
        stook_barns_set(&c->barns, 0, 10, 10);
        assert_null(filled(c));
        assert_null(stook_barn_refill(&c->barns, 0, NULL, 0));
        assert_null(stook_barn_refill(&c->barns, 0, NULL, UINT_MAX));
        assert_null(stook_barn_refill(&c->barns, 0, sheaf, 0));
        assert_null(stook_sheaf_new(3, 0, 0, &c->counters));
        assert_int_equal(objects_out(), 0);
        stook_sheaf_delete(sheaf, &c->counters);
        expect_nothing_left(c);
}

/* A small refill without a sheaf to fill makes one that is no larger than needed. */
static void a_small_refill_makes_a_small_sheaf(void **state)
{
        static const unsigned wanted[][2] = { { 8, 8 }, { 16, 16 }, { 32, 32 }, { 64, 64 },
                                              { UINT_MAX, 128 } };
        struct fake_cache *c = make(2, 128, 3, 3);
        struct stook_sheaf *sheaf;

        (void)state;
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(wanted); i++) {
                sheaf = stook_barn_refill(&c->barns, 0, NULL, wanted[i][0]);
                assert_non_null(sheaf);
                assert_int_equal(stook_sheaf_capacity(sheaf), wanted[i][1]);
                assert_int_equal(stook_sheaf_size(sheaf), i < 4 ? wanted[i][0] : 128);
                stook_barn_flush(&c->barns, sheaf);
                /* The barn keeps what has the cache's capacity only. */
                stook_barn_put(&c->barns, 0, sheaf);
                assert_int_equal(stook_tagged_stack_count_racy(&c->barns.node[0].empty),
                                 i < 4 ? 0 : 1);
        }
        /* One that is there is filled as it is. */
        sheaf = stook_sheaf_new(2, 64, 0, &c->counters);
        assert_ptr_equal(stook_barn_refill(&c->barns, 0, sheaf, 8), sheaf);
        assert_int_equal(stook_sheaf_capacity(sheaf), 64);
        assert_int_equal(stook_sheaf_size(sheaf), 8);
        stook_barn_put(&c->barns, 0, sheaf);
        expect_nothing_left(c);
}

/*
 * A cache that only frees has short sheaves, and none where the caller's full sheaf finds no room.
 * Not one that was tuned: its sheaves have what was asked for.
 */
static void frees_alone_get_short_sheaves(void **state)
{
        struct fake_cache *c = make(4, 128, 3, 3);
        static const struct { bool unasked, tuned; unsigned capacity; } cases[] = {
                { false, false, 128 }, { true, false, STOOK_BARN_SHORT }, { true, true, 128 },
        };

        (void)state;
        stook_barns_let_grow(&c->barns);
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(cases); i++) {
                struct stook_sheaf *sheaf;

                if (cases[i].tuned)
                        stook_barns_set(&c->barns, 128, 3, 3);
                c->barns.node[0].unasked = cases[i].unasked ? 1000 : 0;
                sheaf = stook_barn_get_empty(&c->barns, 0, STOOK_FROM_BELOW);
                assert_non_null(sheaf);
                assert_int_equal(stook_sheaf_capacity(sheaf), cases[i].capacity);
                stook_sheaf_delete(sheaf, &c->counters);
                sheaf = stook_barn_get_empty(&c->barns, 0, STOOK_FROM_BELOW | STOOK_FROM_IF_ROOM);
                assert_int_equal(!sheaf, cases[i].capacity != 128);
                if (sheaf)
                        stook_sheaf_delete(sheaf, &c->counters);
        }
        expect_nothing_left(c);
}

static void a_discarded_sheaf_gives_all_of_it_back(void **state)
{
        struct fake_cache *c = make(3, 32, 3, 3);
        struct stook_sheaf *sheaf = stook_barn_refill(&c->barns, 0, NULL, 20);
        unsigned size;

        (void)state;
        assert_non_null(sheaf);
        size = stook_sheaf_size(sheaf);
        assert_int_equal(objects_out(), size);
        stook_barn_discard(&c->barns, sheaf);
        assert_int_equal(objects_out(), 0);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_flush), size);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_free),
                         stook_counted(&c->counters, STOOK_STAT_sheaf_alloc));
        expect_nothing_left(c);
}

static void a_fill_takes_what_there_is(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10);
        struct stook_sheaf *s = stook_sheaf_new(1, 12, 0, &c->counters);

        (void)state;
        can_fill = 5;
        stook_barn_fill(&c->barns, 0, s);
        assert_int_equal(stook_sheaf_size(s), 5);
        can_fill = OBJECTS;
        stook_barn_fill(&c->barns, 0, s);
        assert_true(stook_sheaf_full(s));
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_refill), 12);
        stook_barn_put(&c->barns, 0, s);
        expect_nothing_left(c);
}

static void a_fill_for_put_asks_for_room_first(void **state)
{
        struct fake_cache *c = make(1, 12, 1, 10);
        struct stook_sheaf *s = stook_sheaf_new(1, 12, 0, &c->counters);
        struct stook_sheaf *full = stook_barn_refill(&c->barns, 0, NULL, UINT_MAX);

        (void)state;
        stook_barn_put(&c->barns, 0, full);
        stook_barn_fill_for_put(&c->barns, 0, s);
        assert_int_equal(stook_sheaf_size(s), 0);
        assert_ptr_equal(stook_barn_ask_full(&c->barns, 0), full);
        stook_barn_fill_for_put(&c->barns, 0, s);
        assert_true(stook_sheaf_full(s));
        stook_barn_put(&c->barns, 0, s);
        stook_barn_put(&c->barns, 0, full);
        expect_nothing_left(c);
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(a_failed_refill_loses_nothing, setup),
                cmocka_unit_test_setup(a_refill_of_nothing_makes_none, setup),
                cmocka_unit_test_setup(a_small_refill_makes_a_small_sheaf, setup),
                cmocka_unit_test_setup(frees_alone_get_short_sheaves, setup),
                cmocka_unit_test_setup(a_discarded_sheaf_gives_all_of_it_back, setup),
                cmocka_unit_test_setup(a_fill_takes_what_there_is, setup),
                cmocka_unit_test_setup(a_fill_for_put_asks_for_room_first, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
