/*
 * What this proves: a thread gets to the hot path by its first miss, if the kernel knows it. A
 * thread that is barred never gets there. It and the locked backend work on slots of their own. The
 * ways in which a process gets its backend: contract/slot_modes.c.
 */
#include <pthread.h>
#include "unit/slot/checks.h"
#include "slot/slot_regions.h"

static bool on_rseq;

static void expect_enrolled(void)
{
        assert_ptr_equal(stook_slot_ops(), &stook_section_rseq);
        assert_non_null(stook_self->rseq);
        assert_true(*stook_section_index(stook_self) < stook_self->ready);
        assert_true(stook_self->ready <= stook_regions.rseq_slots);
}

static void expect_locked(void)
{
        assert_ptr_equal(stook_slot_ops(), &stook_section_locked);
        assert_int_equal(stook_self->ready, 0);
        assert_null(stook_self->rseq);
}

static void this_thread_is_enrolled_if_it_can_be(void **state)
{
        (void)state;
        assert_int_equal(stook_slot_enrol(), on_rseq);
        if (on_rseq)
                expect_enrolled();
        else
                expect_locked();
}

/* What cmocka's assertions need is this thread's alone: threads only note. */
struct seen {
        bool bar;
        uint32_t ready_at_first, ready;
        const struct stook_section_ops *ops;
        void *object;
};

static void *another_thread(void *note)
{
        struct seen *seen = note;

        seen->ready_at_first = stook_self->ready;
        if (seen->bar)
                stook_self_bar();
        seen->ops = stook_slot_ops();
        seen->ready = stook_self->ready;
        seen->object = stook_slot_get(&front, true);
        if (seen->object)
                stook_slot_put(&front, seen->object, on_double);
        return NULL;
}

static struct seen run_thread(bool bar)
{
        struct seen seen = { .bar = bar };
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, another_thread, &seen), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        return seen;
}

static void a_new_thread_comes_by_its_first_miss(void **state)
{
        struct seen seen = run_thread(false);

        (void)state;
        assert_int_equal(seen.ready_at_first, 0);
        assert_ptr_equal(seen.ops, ops);
        assert_int_equal(seen.ready != 0, on_rseq);
        assert_non_null(seen.object);
        check_nothing_lost();
}

static void a_barred_thread_stays_locked(void **state)
{
        struct seen seen = run_thread(true);

        (void)state;
        assert_ptr_equal(seen.ops, &stook_section_locked);
        assert_int_equal(seen.ready, 0);
        assert_non_null(seen.object);
        check_nothing_lost();
}

/* As in the child of a fork. */
static void a_thread_can_enrol_anew(void **state)
{
        uint32_t before = stook_self->ready;

        (void)state;
        stook_slots_fork_child();
        assert_int_equal(stook_self->ready, 0);
        assert_ptr_equal(stook_slot_ops(), ops);
        assert_true(stook_self->ready >= before);
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        check_nothing_lost();
}

static int start_here(void **state)
{
        int failed = start_slots(state);

        on_rseq = !failed && stook_regions.rseq_slots;
        return failed;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(this_thread_is_enrolled_if_it_can_be, start),
                cmocka_unit_test_setup(a_new_thread_comes_by_its_first_miss, start),
                cmocka_unit_test_setup(a_barred_thread_stays_locked, start),
                cmocka_unit_test_setup(a_thread_can_enrol_anew, start),
        };

        return cmocka_run_group_tests(tests, start_here, NULL);
}
