/*
 * What this proves: the idle reaper flushes what no thread needed, and nothing else. What is used
 * does not shrink. What gives all back ends, though another thread goes on freeing.
 */
#include "unit/barn/fixture.h"

/*
 * Full sheaves that no thread needed since the last reap go to the slabs, a bounded number in a
 * step. A reap that comes too soon takes none.
 */
static void what_no_thread_needed_is_flushed(void **state)
{
        struct fake_cache *c = make(1, 4, 10, 10);
        struct stook_idle idle = { .now_ms = 1000, .after_ms = 100, .takes = 1, .work = 16 };
        struct stook_sheaf *full;

        (void)state;
        stook_barn_reap_idle(&c->barns, 0, &idle);           /* the first look */
        for (int i = 0; i < 5; i++)
                assert_true(stook_barn_push_full(&c->barns, 0, filled(c)));
        idle.now_ms += 99;
        stook_barn_reap_idle(&c->barns, 0, &idle);           /* too young */
        assert_int_equal(objects_out(), 20);
        idle.now_ms++;
        stook_barn_reap_idle(&c->barns, 0, &idle);           /* they came since */
        assert_int_equal(objects_out(), 20);

        /* Two are taken and come back: the other three were not needed. */
        full = stook_barn_ask_full(&c->barns, 0);
        assert_true(stook_barn_push_full(&c->barns, 0, stook_barn_ask_full(&c->barns, 0)));
        assert_true(stook_barn_push_full(&c->barns, 0, full));
        kept_given = 0;
        idle.takes++;                           /* memory is missed: time does not matter */
        idle.work = 2;
        stook_barn_reap_idle(&c->barns, 0, &idle);           /* as much as one step may */
        assert_int_equal(objects_out(), 12);
        assert_int_equal(idle.work, 0);
        idle.work = 16;
        stook_barn_reap_idle(&c->barns, 0, &idle);           /* and the next goes on */
        assert_int_equal(objects_out(), 8);
        assert_int_equal(kept_given, 0);                /* the cache is in use */

        /* Objects come, none is taken. */
        assert_true(stook_barn_push_full(&c->barns, 0, filled(c)));
        idle.takes++;
        stook_barn_reap_idle(&c->barns, 0, &idle);
        assert_int_equal(objects_out(), 4);
        assert_int_equal(kept_given, 1);
        idle.takes++;
        stook_barn_reap_idle(&c->barns, 0, &idle);
        assert_int_equal(objects_out(), 0);
        assert_int_equal(kept_given, 2);
        idle.takes++;
        stook_barn_reap_idle(&c->barns, 0, &idle);           /* nothing left to do */
        assert_int_equal(kept_given, 2);
        expect_nothing_left(c);
}

/* What came out of an idle slot is empty afterwards, and its objects are in their slabs. */
static void an_idle_sheaf_of_a_slot_is_flushed(void **state)
{
        struct fake_cache *c = make(1, 4, 10, 1);
        struct stook_sheaf *full = stook_barn_refill(&c->barns, 0, NULL, UINT_MAX), *second;

        (void)state;
        stook_barn_retire(&c->barns, 0, full);
        assert_int_equal(objects_out(), 0);
        second = stook_barn_refill(&c->barns, 0, NULL, UINT_MAX);
        /* The barn keeps one empty sheaf: the second is deleted. */
        stook_barn_retire(&c->barns, 0, second);
        assert_ptr_equal(stook_barn_pop_empty(&c->barns, 0), full);
        assert_null(stook_barn_pop_empty(&c->barns, 0));
        stook_sheaf_delete(full, c->barns.slabs->counters);
        expect_nothing_left(c);
}

/* A slot that serves a cache from its own sheaves asks no barn: that is no reason to shrink. */
static void what_is_used_does_not_shrink(void **state)
{
        struct fake_cache *c = make_few(960, 1, 20000);
        struct stook_idle idle = { .now_ms = 1000, .after_ms = 100, .takes = 1, .work = 16 };

        (void)state;
        swing_in_slots(c);
        stook_barns_used(&c->barns);
        stook_barn_reap_idle(&c->barns, 0, &idle);
        assert_int_equal(stook_barns_capacity(&c->barns), 4);
        idle.takes++;
        stook_barn_reap_idle(&c->barns, 0, &idle);
        assert_int_equal(stook_barns_capacity(&c->barns), 1);
}

/* The cache that another thread frees into, and how many sheaves it still puts. */
static struct fake_cache *freed_into;
static unsigned puts_left;

static void another_puts_one(void)
{
        if (puts_left) {
                puts_left--;
                assert_true(stook_barn_push_full(&freed_into->barns, 0, filled(freed_into)));
        }
}

/*
 * Another thread puts a full sheaf for each that is flushed: the call flushes as many as were there
 * when it came, and ends. A cache that others keep visitors out of is left alone.
 */
static void giving_all_ends_where_another_thread_frees(void **state)
{
        struct fake_cache *c = make(1, 4, 10, 10), *closed = make(2, 4, 10, 10);

        (void)state;
        for (int i = 0; i < 5; i++)
                assert_true(stook_barn_push_full(&c->barns, 0, filled(c)));
        assert_true(stook_barn_push_full(&closed->barns, 0, filled(closed)));
        assert_true(stook_barns_close(&closed->barns));
        freed_into = c;
        puts_left = 1000;
        while_draining = another_puts_one;
        stook_barns_give_all();
        assert_int_equal(puts_left, 1000 - 5);
        assert_int_equal(stook_tagged_stack_count_racy(&c->barns.node[0].full), 5);
        assert_int_equal(stook_tagged_stack_count_racy(&closed->barns.node[0].full), 1);

        while_draining = NULL;
        stook_barns_open(&closed->barns);
        stook_barns_give_all();
        assert_int_equal(objects_out(), 0);
        expect_nothing_left(c);
        expect_nothing_left(closed);
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(what_no_thread_needed_is_flushed, setup),
                cmocka_unit_test_setup(an_idle_sheaf_of_a_slot_is_flushed, setup),
                cmocka_unit_test_setup(what_is_used_does_not_shrink, setup),
                cmocka_unit_test_setup(giving_all_ends_where_another_thread_frees, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
