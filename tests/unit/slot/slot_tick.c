/*
 * What this proves: the idle reaper empties a slot's sheaves of a cache if nothing was taken from
 * them between two of its rounds. A round begins when it is due, and not on top of a lock's holder.
 * One that a take of dirty memory begins empties the barn alone.
 * What it does in barns: unit/barn/idle.c; in sheaves of other nodes' objects: home_remote.c.
 */
#include "unit/slot/checks.h"
#include "base/lock.h"
#include "os/os.h"
#include "pages/pages_node.h"

/* As the reaper's: one call in so many asks the clock. */
#define CLOCK_EVERY 16

/* A round of this slot is due now. The next is due in minutes (DECAY_MS of fixture.c). */
static void reap(void)
{
        struct stook_slot_head *own = ops->own();

        own->reap_due_ms = (uint32_t)stook_os_clock_ms();
        for (unsigned i = 0; i < CLOCK_EVERY || own->reap_at; i++)
                stook_slot_reap_idle();
}

/* No round has passed: sheaves of the test before may have been where this one's are. */
static int start_unseen(void **state)
{
        int failed = start(state);
        struct stook_line *line = (struct stook_line *)ops->own() + INDEX;

        stook_line_note(line, 0, 0, 0);
        return failed;
}

static bool is_empty(void)
{
        return main_now() == ZERO && !spare_now();
}

/* Of two sheaves that were noted before. A preemption puts it off to the next round. */
static void expect_reaped(void)
{
        for (unsigned i = 0; i < 100 && !is_empty(); i++)
                reap();
        assert_true(is_empty());
        assert_int_equal(fake_slab_out(), 0);
}

static void what_is_idle_goes_with_the_second_round(void **state)
{
        struct stook_sheaf *main = sheaf_of(SOME), *spare = sheaf_of(CAPACITY);

        (void)state;
        set(main, spare);
        reap();
        assert_ptr_equal(main_now(), main);
        assert_ptr_equal(spare_now(), spare);
        expect_reaped();
        check_nothing_lost();
}

/* Freed, and none allocated: no thread needs what is there. */
static void objects_that_only_come_are_idle(void **state)
{
        (void)state;
        set(sheaf_of(SOME), NULL);
        reap();
        assert_int_equal(push(users()), STOOK_PUSH_DONE);
        expect_reaped();
        check_nothing_lost();
}

static void what_is_used_stays(void **state)
{
        struct stook_sheaf *main = sheaf_of(SOME), *spare = sheaf_of(CAPACITY);

        (void)state;
        set(main, spare);
        for (unsigned i = 0; i < 10; i++) {
                void *object = NULL;

                reap();
                while (!object)
                        object = ops->pop(front.offset);
                assert_int_equal(push(object), STOOK_PUSH_DONE);
        }
        assert_ptr_equal(main_now(), main);
        assert_ptr_equal(spare_now(), spare);
        check_nothing_lost();
}

static void nothing_goes_before_it_is_due(void **state)
{
        struct stook_sheaf *main = sheaf_of(SOME);

        (void)state;
        set(main, NULL);
        reap();
        for (unsigned i = 0; i < 10 * CLOCK_EVERY; i++)
                stook_slot_reap_idle();
        assert_ptr_equal(main_now(), main);
        expect_reaped();
        check_nothing_lost();
}

static void nothing_goes_on_top_of_a_holder(void **state)
{
        static struct stook_lock lock = STOOK_LOCK_INIT(STOOK_RANK_REGIONS);
        struct stook_sheaf *main = sheaf_of(SOME);
        struct stook_slot_head *own = ops->own();

        (void)state;
        set(main, NULL);
        reap();
        assert_true(stook_lock_take(&lock));
        for (unsigned i = 0; i < 10 * CLOCK_EVERY; i++) {
                own->reap_due_ms = (uint32_t)stook_os_clock_ms();
                stook_slot_reap_idle();
        }
        assert_ptr_equal(main_now(), main);
        stook_lock_drop(&lock);
        expect_reaped();
        check_nothing_lost();
}

/* A round that a take of dirty memory begins. */
static void reap_barns(void)
{
        struct stook_slot_head *own = ops->own();

        stook_pages_nodes[0].ledger.reused_ns = 0;      /* the last one was long ago */
        stook_fresh_take(&stook_pages_nodes[0].ledger, (size_t)256 << 10, false,
                         stook_pages_decay_ms());
        do
                stook_slot_reap_idle();
        while (own->reap_at);
}

static void a_dirty_take_reaps_barns_alone(void **state)
{
        struct stook_sheaf *main = sheaf_of(SOME);

        (void)state;
        set(main, NULL);
        reap();
        assert_true(stook_barn_push_full(&barns, 0, sheaf_of(CAPACITY)));
        for (unsigned i = 0; i < 100 && fulls(); i++)
                reap_barns();
        assert_int_equal(fulls(), 0);
        assert_ptr_equal(main_now(), main);
        expect_reaped();
        check_nothing_lost();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(what_is_idle_goes_with_the_second_round, start_unseen),
                cmocka_unit_test_setup(objects_that_only_come_are_idle, start_unseen),
                cmocka_unit_test_setup(what_is_used_stays, start_unseen),
                cmocka_unit_test_setup(nothing_goes_before_it_is_due, start_unseen),
                cmocka_unit_test_setup(a_dirty_take_reaps_barns_alone, start_unseen),
                cmocka_unit_test_setup(nothing_goes_on_top_of_a_holder, start_unseen),
        };

        return cmocka_run_group_tests(tests, start_slots, NULL);
}
