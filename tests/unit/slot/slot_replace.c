/*
 * Proves each row of the tables of a slot's misses. An allocation brings a full sheaf, and a free
 * an empty one. Before it installs its sheaf, the thread may have been migrated, interrupted or
 * overtaken since it looked. The rows say what it then finds in the slot. Each row is a test of
 * that name, made to happen by a hook. The test checks where every sheaf is afterwards, and the
 * counters. One more test does all of them at random. The last test prints how often each landing
 * was forced, and fails if one was not. The steps before the install: miss_steps.c.
 */
#include <string.h>
#include "evacuate/evacuate.h"
#include "unit/slot/checks.h"
#include "base/inject.h"

/* ---- what an allocation and a free find when they install their sheaf ---- */

enum what { NOTHING, MAIN, SPARE, NEW };

/*
 * Sizes; -1: the zero-capacity sheaf, no spare. Then what is main and spare afterwards, and what
 * found no place.
 */
struct row {
        const char *name;
        int  main, spare;
        enum what to_main, to_spare, left;
        unsigned forced;
};

#define FULL CAPACITY

static struct row alloc_rows[] = {
        { "alloc: no sheaves, no spare: {F, none}", -1, -1, NEW, NOTHING, NOTHING, 0 },
        { "alloc: no sheaves, spare empty: {F, spare}", -1, 0, NEW, SPARE, NOTHING, 0 },
        { "alloc: no sheaves, spare not empty: {F, spare}", -1, SOME, NEW, SPARE, NOTHING, 0 },
        { "alloc: no sheaves, spare full: {F, spare}", -1, FULL, NEW, SPARE, NOTHING, 0 },
        { "alloc: main empty, no spare: {F, main}", 0, -1, NEW, MAIN, NOTHING, 0 },
        { "alloc: main empty, spare empty: {F, spare}, main is left", 0, 0, NEW, SPARE, MAIN, 0 },
        { "alloc: main empty, spare not empty: {F, spare}, main is left", 0, SOME, NEW, SPARE, MAIN,
          0 },
        { "alloc: main empty, spare full: {F, spare}, main is left", 0, FULL, NEW, SPARE, MAIN, 0 },
        { "alloc: main has some, no spare: {main, F}", SOME, -1, MAIN, NEW, NOTHING, 0 },
        { "alloc: main has some, spare empty: {main, F}, spare is left", SOME, 0, MAIN, NEW, SPARE,
          0 },
        { "alloc: main has some, spare not empty: F is left", SOME, SOME, MAIN, SPARE, NEW, 0 },
        { "alloc: main has some, spare full: F is left", SOME, FULL, MAIN, SPARE, NEW, 0 },
        { "alloc: main full, no spare: {main, F}", FULL, -1, MAIN, NEW, NOTHING, 0 },
        { "alloc: main full, spare empty: {main, F}, spare is left", FULL, 0, MAIN, NEW, SPARE, 0 },
        { "alloc: main full, spare not empty: F is left", FULL, SOME, MAIN, SPARE, NEW, 0 },
        { "alloc: main full, spare full: F is left", FULL, FULL, MAIN, SPARE, NEW, 0 },
};

static struct row free_rows[] = {
        { "free: no sheaves, no spare: {E, none}", -1, -1, NEW, NOTHING, NOTHING, 0 },
        { "free: no sheaves, spare empty: {E, spare}", -1, 0, NEW, SPARE, NOTHING, 0 },
        { "free: no sheaves, spare not full: {E, spare}", -1, SOME, NEW, SPARE, NOTHING, 0 },
        { "free: no sheaves, spare full: {E, spare}", -1, FULL, NEW, SPARE, NOTHING, 0 },
        { "free: main empty, no spare: {main, E}", 0, -1, MAIN, NEW, NOTHING, 0 },
        { "free: main empty, spare empty: E is left", 0, 0, MAIN, SPARE, NEW, 0 },
        { "free: main empty, spare not full: E is left", 0, SOME, MAIN, SPARE, NEW, 0 },
        { "free: main empty, spare full: E is left", 0, FULL, MAIN, SPARE, NEW, 0 },
        { "free: main has some, no spare: {main, E}", SOME, -1, MAIN, NEW, NOTHING, 0 },
        { "free: main has some, spare empty: E is left", SOME, 0, MAIN, SPARE, NEW, 0 },
        { "free: main has some, spare not full: E is left", SOME, SOME, MAIN, SPARE, NEW, 0 },
        { "free: main has some, spare full: E is left", SOME, FULL, MAIN, SPARE, NEW, 0 },
        { "free: main full, no spare: {E, main}", FULL, -1, NEW, MAIN, NOTHING, 0 },
        { "free: main full, spare empty: {spare, main}, E is left", FULL, 0, SPARE, MAIN, NEW, 0 },
        { "free: main full, spare not full: {spare, main}, E is left", FULL, SOME, SPARE, MAIN, NEW,
          0 },
        { "free: main full, spare full: {E, main}, spare is left", FULL, FULL, NEW, MAIN, SPARE,
          0 },
};

static struct row *landing_row;
static struct stook_sheaf *there[3];    /* by enum what: what was put into the slot */
static unsigned landings;

static struct stook_sheaf *of_size(int size, struct stook_sheaf *none)
{
        return size < 0 ? none : sheaf_of((unsigned)size);
}

static void land_here(struct stook_front *f)
{
        (void)f;
        if (landings++)
                return;
        there[MAIN] = of_size(landing_row->main, ZERO);
        there[SPARE] = of_size(landing_row->spare, NULL);
        set(there[MAIN], there[SPARE]);
        landing_row->forced++;
}

static void check_is(const struct stook_sheaf *found, enum what what)
{
        if (what == NEW) {
                assert_non_null(found);
                assert_ptr_not_equal(found, ZERO);
                assert_ptr_not_equal(found, there[MAIN]);
                assert_ptr_not_equal(found, there[SPARE]);
        } else {
                assert_ptr_equal(found, there[what]);
        }
}

/* @limit: of the barn; 0: it takes nothing, so that what is left is flushed and deleted. */
static void check_landing(const struct row *row, unsigned limit, bool left_full)
{
        assert_int_equal(landings, 1);
        check_is(main_now(), row->to_main);
        check_is(spare_now(), row->to_spare);
        if (row->left == NOTHING)
                assert_int_equal(fulls() + empties() + counted(STOOK_STAT_sheaf_free), 0);
        else if (!limit)
                assert_int_equal(counted(STOOK_STAT_sheaf_free), 1);
        else
                assert_int_equal(left_full ? fulls() : empties(), 1);
        assert_int_equal(counted(STOOK_STAT_barn_put), row->left && left_full && limit);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush),
                         row->left && left_full && !limit ? CAPACITY : 0);
}

/* Where the call took its object from, or put it: @before and then @after objects. */
static void check_object_moved(const struct row *row, int before, int after)
{
        const struct stook_sheaf *at = row->to_main == NEW ? main_now() : spare_now();
        int main = row->main;

        /* The new sheaf, before it landed; main, if it found no place. */
        if (row->left != NEW) {
                assert_int_equal(stook_sheaf_size(at), after);
                if (row->to_main != NEW)
                        assert_int_equal(stook_sheaf_size(main_now()), main);
                return;
        }
        if (row->to_main == SPARE)
                main = row->spare;
        assert_int_equal(stook_sheaf_size(main_now()), main + after - before);
}

static void start_landing(struct row *row, unsigned limit)
{
        begin(limit);
        memset(there, 0, sizeof(there));
        landings = 0;
        landing_row = row;
        stook_inject.landing = land_here;
}

static void an_allocation_lands(void **state)
{
        struct row *row = *state;

        for (unsigned limit = 0; limit < 4; limit += 3) {
                void *object;

                start_landing(row, limit);
                object = stook_slot_alloc_miss(&front);
                assert_non_null(object);
                check_landing(row, limit, row->left == NEW);
                check_object_moved(row, CAPACITY, CAPACITY - 1);
                assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 0);
                stook_slot_free_miss(&front, object, on_double);
                check_nothing_lost();
        }
}

static void a_free_lands(void **state)
{
        struct row *row = *state;

        for (unsigned limit = 0; limit < 4; limit += 3) {
                start_landing(row, limit);
                stook_slot_free_miss(&front, users(), on_double);
                check_landing(row, limit, row->left == SPARE);
                check_object_moved(row, 0, 1);
                assert_int_equal(counted(STOOK_STAT_free_slowpath), 0);
                check_nothing_lost();
        }
}

/* The configuration changes between "sheaf got" and "installed": it is not installed. */
static void reconfigure(struct stook_front *f)
{
        landings++;
        f->config += 2;
}

static void a_landing_under_another_configuration(void **state)
{
        (void)state;
        begin(3);
        landings = 0;
        stook_inject.landing = reconfigure;
        stook_slot_free_miss(&front, stook_slot_alloc_miss(&front), on_double);
        assert_true(landings > 4);                      /* every try of both calls */
        assert_ptr_equal(main_now(), ZERO);
        assert_null(spare_now());
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        assert_true(fulls() > 0); /* where the sheaves went that were not installed */
        check_nothing_lost();
}

/* ---- at random ---- */

static uint64_t random_state = 88172645463325252;

/* G. Marsaglia, "Xorshift RNGs", 2003 */
static uint64_t below(uint64_t n)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return random_state % n;
}

static void land_anywhere(struct stook_front *f)
{
        struct stook_sheaf *main, *spare;

        landings++;
        if (below(8) == 0) {
                f->config += 2;
                return;
        }
        if (below(8) == 0) {
                assert_true(stook_evacuate_cache(f));
                return;
        }
        main = below(4) ? sheaf_of((unsigned)below(CAPACITY + 1)) : ZERO;
        spare = below(4) ? sheaf_of((unsigned)below(CAPACITY + 1)) : NULL;
        set(main, spare);
}

static void migrations_while_a_sheaf_is_fetched(void **state)
{
        void *held[200];
        unsigned n = 0;

        (void)state;
        landings = 0;
        stook_inject.landing = land_anywhere;
        for (unsigned i = 0; i < 60000; i++) {
                if (n < 200 && below(200) >= n) {
                        held[n] = stook_slot_alloc_miss(&front);
                        assert_non_null(held[n]);
                        assert_int_equal((*fake_slab_stamp(held[n]))++, 0);
                        n++;
                } else {
                        unsigned at = (unsigned)below(n);

                        assert_int_equal(--*fake_slab_stamp(held[at]), 0);
                        stook_slot_free_miss(&front, held[at], on_double);
                        held[at] = held[--n];
                }
                stook_inject.exchange_fail = below(16) ? 0 : 2;
        }
        assert_true(landings > 1000);
        while (n)
                stook_slot_free_miss(&front, held[--n], on_double);
        check_nothing_lost();
}

/* ---- */

static void every_landing_was_forced(void **state)
{
        (void)state;
        for (unsigned i = 0; i < 16; i++) {
                print_message("%2u x %s\n", alloc_rows[i].forced, alloc_rows[i].name);
                print_message("%2u x %s\n", free_rows[i].forced, free_rows[i].name);
                assert_int_equal(alloc_rows[i].forced, 2);
                assert_int_equal(free_rows[i].forced, 2);
        }
}

int main(void)
{
        struct CMUnitTest tests[64] = {
                cmocka_unit_test_setup(a_landing_under_another_configuration, start),
                cmocka_unit_test_setup(migrations_while_a_sheaf_is_fetched, start),
        };
        unsigned n = 2;

        for (unsigned i = 0; i < 16; i++) {
                tests[n++] = (struct CMUnitTest){ .name = alloc_rows[i].name,
                                                  .test_func = an_allocation_lands,
                                                  .initial_state = &alloc_rows[i] };
                tests[n++] = (struct CMUnitTest){ .name = free_rows[i].name,
                                                  .test_func = a_free_lands,
                                                  .initial_state = &free_rows[i] };
        }
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(every_landing_was_forced);
        return _cmocka_run_group_tests("landings", tests, n, start_slots, NULL);
}
