/*
 * What this proves: the lines of a slot are filled before a thread may use them, for each cache
 * that is made and in each slot that gets ready. A thread that stands still while it fills a slot
 * keeps no other thread from it, and changes nothing when it goes on. A fill that was refused, or
 * that a fork left half done, is done again.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "base/inject.h"
#include "os/os.h"
#include "unit/slot/checks.h"
#include "slot/slot_regions.h"

static void expect_lines(struct stook_slot_head *slot)
{
        const struct stook_line *line = (struct stook_line *)slot;

        assert_non_null(slot);
        for (uint32_t i = 0; i < stook_regions_lines(); i++) {
                assert_ptr_equal((void *)line[i].pair.lo, ZERO);
                assert_int_equal(line[i].pair.hi, 0);
        }
}

/* ---- what happens while a slot is filled ---- */

static char *stands_at;                 /* the slot that is being filled */

static void expect_all_lines(void)
{
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                if (stook_slots_head(slot))
                        expect_lines(stook_slots_head(slot));
}

/* Of the next fill. False: there is no such slot, or the locked backend. */
static bool stand(void (*meanwhile)(char *slot))
{
        stook_inject.filling = meanwhile;
        return stook_regions.rseq_slots > stook_filled.ready;
}

/* Another thread makes the slot ready, and uses it. */
static void fill_too(char *slot)
{
        struct stook_line *line = (struct stook_line *)slot;
        uint32_t ready = stook_filled.ready;

        stook_inject.filling = NULL;
        stands_at = slot;
        assert_int_equal(stook_regions_ready(ready), ready + 1);
        expect_lines((struct stook_slot_head *)slot);
        line[1].pair = (struct stook_pair){ (uintptr_t)line, (uintptr_t)line };
}

static void two_threads_fill_a_slot(void **state)
{
        uint32_t ready = stook_filled.ready;
        struct stook_line *line;

        (void)state;
        if (!stand(fill_too))
                skip();
        assert_int_equal(stook_regions_ready(ready), ready + 1);
        assert_int_equal(stook_filled.ready, ready + 1);
        line = (struct stook_line *)stands_at;
        assert_ptr_equal((void *)line[1].pair.lo, line);
        assert_ptr_equal((void *)line[1].pair.hi, line);
        line[1].pair = (struct stook_pair){ (uintptr_t)ZERO, 0 };
        expect_all_lines();
}

static void make_cache(char *slot)
{
        (void)slot;
        stook_inject.filling = NULL;
        assert_true(stook_slots_add_cache(stook_regions_lines()));
}

static void a_cache_is_made_while_a_slot_is_filled(void **state)
{
        uint32_t ready = stook_filled.ready, lines = stook_regions_lines();

        (void)state;
        if (!stand(make_cache))
                skip();
        assert_int_equal(stook_regions_ready(ready), ready + 1);
        assert_true(stook_regions_lines() > lines);
        expect_all_lines();
}

static void make_slot(char *slot)
{
        uint32_t ready = stook_filled.ready;

        (void)slot;
        stook_inject.filling = NULL;
        assert_int_equal(stook_regions_ready(ready), ready + 1);
}

static void a_slot_gets_ready_while_a_cache_is_made(void **state)
{
        uint32_t ready = stook_filled.ready, lines = stook_regions_lines();

        (void)state;
        if (!stand(make_slot))
                skip();
        assert_true(stook_slots_add_cache(lines));
        assert_true(stook_regions_lines() > lines);
        assert_int_equal(stook_filled.ready, ready + 1);
        expect_all_lines();
}

/* One line is filled when the thread forks in a signal handler. */
static void fork_here(char *slot)
{
        struct stook_line *line = (struct stook_line *)slot;
        uint32_t ready = stook_filled.ready;
        int status;
        pid_t pid;

        stook_inject.filling = NULL;
        assert_true(stook_os_enable(slot, stook_os_page_bytes()));
        line[0].pair.lo = (uintptr_t)ZERO;
        pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                stook_slots_fork_child();
                if (stook_regions_ready(ready) != ready + 1)
                        _exit(1);
                for (uint32_t i = 0; i < stook_regions_lines(); i++)
                        if (line[i].pair.lo != (uintptr_t)ZERO || line[i].pair.hi)
                                _exit(2);
                _exit(!stook_slots_add_cache(stook_regions_lines()) * 3);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void a_child_fills_again_what_is_half_filled(void **state)
{
        uint32_t ready = stook_filled.ready;

        (void)state;
        if (!stand(fork_here))
                skip();
        assert_int_equal(stook_regions_ready(ready), ready + 1);
        expect_all_lines();
}

/* ---- one after the other ---- */

/* Of a slot, and of a new cache's lines in the second of several slots. */
static void memory_is_refused(void **state)
{
        uint32_t lines = stook_regions_lines(), ready = stook_filled.ready;

        (void)state;
        if (!stook_regions.rseq_slots || stook_regions.rseq_slots == ready)
                skip();
        stook_inject.commit_fail_from = 1;
        assert_int_equal(stook_regions_ready(ready), ready);
        assert_int_equal(stook_filled.ready, ready);
        stook_inject.commit_fail_from = 0;
        assert_int_equal(stook_regions_ready(ready), ready + 1);
        stook_inject.commit_fail_from = 2;
        assert_false(stook_slots_add_cache(lines));
        assert_int_equal(stook_regions_lines(), lines);
        stook_inject.commit_fail_from = 0;
        assert_true(stook_slots_add_cache(lines));
        assert_true(stook_regions_lines() > lines);
        expect_all_lines();
}

static void lines_of_new_caches(void **state)
{
        static const unsigned indices[] = { 1, 63, 64, 200, STOOK_CACHES_MAX - 1 };

        (void)state;
        stook_slot_put(&front, users(), on_double);       /* one slot is ready */
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

/*
 * As start_slots; with as many slots of rseq's as there may be, also on a machine of few CPUs: all
 * of the locked ones but one.
 */
static int start_many_slots(void **state)
{
        int failed = start_slots(state);

        if (!failed && stook_regions.rseq_slots) {
                stook_regions.rseq_slots = stook_slots_bound() - 1;
                stook_regions.locked_slots = 1;
                /* One slot is ready, so that a new cache fills lines. */
                failed = stook_regions_ready(0) == 0;
        }
        return failed;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(two_threads_fill_a_slot, start),
                cmocka_unit_test_setup(a_cache_is_made_while_a_slot_is_filled, start),
                cmocka_unit_test_setup(a_slot_gets_ready_while_a_cache_is_made, start),
                cmocka_unit_test_setup(a_child_fills_again_what_is_half_filled, start),
                cmocka_unit_test_setup(memory_is_refused, start),
                cmocka_unit_test_setup(lines_of_new_caches, start),
                cmocka_unit_test_setup(slots_get_ready_in_order, start),
                cmocka_unit_test_setup(locked_slots_get_ready_one_by_one, start),
        };

        return cmocka_run_group_tests(tests, start_many_slots, NULL);
}
