/*
 * Proves each row of the table of slot/slot_pair.h, for an allocation and for a free: what main and
 * spare are afterwards, where the object came from or went, what left the slot and where it is.
 * Each row is made twice: the call finds it at its first look, or it comes between the look and the
 * exchange, as a migration, a handler or another thread may make it. Then the sheaf in hand goes
 * back whole, and the call looks again. One more test does all of that at random.
 */
#include <string.h>
#include "evacuate/evacuate.h"
#include "unit/slot/checks.h"
#include "base/inject.h"

enum what { NOTHING, MAIN, SPARE, NEW };

/*
 * Sizes; -1: the zero-capacity sheaf, no spare. Then what main and spare are afterwards, and what
 * left.
 */
struct row {
        const char *name;
        int main, spare;
        enum what to_main, to_spare, left;
};

#define FULL CAPACITY

static struct row alloc_rows[] = {
        { "alloc: no main, no spare: {F, none}", -1, -1, NEW, NOTHING, NOTHING },
        { "alloc: no main, spare empty: {F, spare}", -1, 0, NEW, SPARE, NOTHING },
        { "alloc: no main, spare has some: swap", -1, SOME, SPARE, NOTHING, NOTHING },
        { "alloc: no main, spare full: swap", -1, FULL, SPARE, NOTHING, NOTHING },
        { "alloc: main empty, no spare: {F, main}", 0, -1, NEW, MAIN, NOTHING },
        { "alloc: main empty, spare empty: {F, spare}, main leaves", 0, 0, NEW, SPARE, MAIN },
        { "alloc: main empty, spare has some: swap", 0, SOME, SPARE, MAIN, NOTHING },
        { "alloc: main empty, spare full: swap", 0, FULL, SPARE, MAIN, NOTHING },
        { "alloc: main has some, no spare: pop", SOME, -1, MAIN, NOTHING, NOTHING },
        { "alloc: main has some, spare empty: pop", SOME, 0, MAIN, SPARE, NOTHING },
        { "alloc: main has some, spare full: pop", SOME, FULL, MAIN, SPARE, NOTHING },
        { "alloc: main full, no spare: pop", FULL, -1, MAIN, NOTHING, NOTHING },
        { "alloc: main full, spare full: pop", FULL, FULL, MAIN, SPARE, NOTHING },
};

static struct row free_rows[] = {
        { "free: no main, no spare: {E, none}", -1, -1, NEW, NOTHING, NOTHING },
        { "free: no main, spare empty: swap", -1, 0, SPARE, NOTHING, NOTHING },
        { "free: no main, spare has some: swap", -1, SOME, SPARE, NOTHING, NOTHING },
        { "free: no main, spare full: {E, spare}", -1, FULL, NEW, SPARE, NOTHING },
        { "free: main empty, no spare: push", 0, -1, MAIN, NOTHING, NOTHING },
        { "free: main empty, spare full: push", 0, FULL, MAIN, SPARE, NOTHING },
        { "free: main has some, no spare: push", SOME, -1, MAIN, NOTHING, NOTHING },
        { "free: main has some, spare empty: push", SOME, 0, MAIN, SPARE, NOTHING },
        { "free: main has some, spare full: push", SOME, FULL, MAIN, SPARE, NOTHING },
        { "free: main full, no spare: {E, main}", FULL, -1, NEW, MAIN, NOTHING },
        { "free: main full, spare empty: swap", FULL, 0, SPARE, MAIN, NOTHING },
        { "free: main full, spare has some: swap", FULL, SOME, SPARE, MAIN, NOTHING },
        { "free: main full, spare full: {E, main}, spare leaves", FULL, FULL, NEW, MAIN, SPARE },
};

static const struct row *row_now;
static struct stook_sheaf *there[3];    /* by enum what: what was put into the slot */
static unsigned landings;

static struct stook_sheaf *of_size(int size, struct stook_sheaf *none)
{
        return size < 0 ? none : sheaf_of((unsigned)size);
}

static void set_row(void)
{
        there[MAIN] = of_size(row_now->main, ZERO);
        there[SPARE] = of_size(row_now->spare, NULL);
        set(there[MAIN], there[SPARE]);
}

static void land_here(struct stook_front *f)
{
        (void)f;
        if (!landings++)
                set_row();
}

/* How a row comes about: it is there at the first look, or comes later. */
enum how { AT_ONCE, LATER };

/* The barn keeps @limit sheaves, and has one of each kind if that is not 0. */
static void prepare(const struct row *row, unsigned limit, enum how how)
{
        begin(limit);
        memset(there, 0, sizeof(there));
        landings = 0;
        row_now = row;
        if (limit) {
                assert_true(stook_barn_push_full(&barns, 0, sheaf_of(CAPACITY)));
                assert_true(stook_barn_push_empty(&barns, 0, sheaf_of(0)));
        }
        if (how == AT_ONCE)
                set_row();
        else
                stook_inject.landing = land_here;       /* nothing is on the slot at first */
}

static void check_is(const struct stook_sheaf *found, enum what what)
{
        if (what != NEW) {
                assert_ptr_equal(found, there[what]);
                return;
        }
        assert_non_null(found);
        assert_ptr_not_equal(found, ZERO);
        assert_ptr_not_equal(found, there[MAIN]);
        assert_ptr_not_equal(found, there[SPARE]);
}

static int size_of(const struct row *row, enum what what)
{
        return what == MAIN ? row->main : what == SPARE ? row->spare : -1;
}

/* Main has @as_new objects if it came from the barn, or one more (@change) than it had. */
static void check_slot(const struct row *row, int as_new, int change)
{
        check_is(main_now(), row->to_main);
        if (row->to_spare == NOTHING)
                assert_null(spare_now());
        else
                check_is(spare_now(), row->to_spare);
        assert_int_equal(stook_sheaf_size(main_now()),
                         row->to_main == NEW ? as_new : size_of(row, row->to_main) + change);
        if (spare_now())
                assert_int_equal(stook_sheaf_size(spare_now()), size_of(row, row->to_spare));
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 0);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 0);
}

/* A barn that keeps what it gets has what left the slot, and what was not needed. */
static void check_barn(const struct row *row, bool alloc, unsigned limit)
{
        bool came = row->to_main == NEW;

        if (!limit) {
                assert_int_equal(fulls() + empties(), 0);
                return;
        }
        assert_int_equal(fulls(), 1 - (alloc && came) + (row->left == SPARE));
        assert_int_equal(empties(), 1 - (!alloc && came) + (row->left == MAIN));
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), 0);
}

static void an_allocation(void **state)
{
        const struct row *row = *state;

        for (unsigned i = 0; i < 4; i++) {
                unsigned limit = i & 1 ? 3 : 0;
                void *object;

                prepare(row, limit, i & 2 ? LATER : AT_ONCE);
                object = stook_slot_get(&front, true);
                assert_non_null(object);
                assert_int_equal(landings != 0, i >> 1);
                check_slot(row, CAPACITY - 1, -1);
                check_barn(row, true, limit);
                stook_slab_drain(&slabs, 1, &object);
                check_nothing_lost();
        }
}

static void a_free(void **state)
{
        const struct row *row = *state;

        for (unsigned i = 0; i < 4; i++) {
                unsigned limit = i & 1 ? 3 : 0;
                void *object;

                prepare(row, limit, i & 2 ? LATER : AT_ONCE);
                object = users();
                stook_slot_put(&front, object, on_double);
                assert_int_equal(landings != 0, i >> 1);
                check_slot(row, 1, 1);
                assert_ptr_equal(main_now()->objects[stook_sheaf_size(main_now()) - 1], object);
                check_barn(row, false, limit);
                if (!limit && row->left == SPARE)
                        assert_int_equal(counted(STOOK_STAT_sheaf_flush), CAPACITY);
                check_nothing_lost();
        }
}

/* ---- an exchange that fails ---- */

/* The configuration changes between "sheaf got" and "installed": it is not installed. */
static void reconfigure(struct stook_front *f)
{
        landings++;
        f->config += 2;
}

static void another_configuration(void **state)
{
        (void)state;
        landings = 0;
        stook_inject.landing = reconfigure;
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        assert_true(landings > 4);                      /* every try of both calls */
        assert_ptr_equal(main_now(), ZERO);
        assert_null(spare_now());
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(counted(STOOK_STAT_free_slowpath), 1);
        assert_true(fulls() > 0); /* where the sheaves went that were not installed */
        check_nothing_lost();
}

/* The sheaf in hand goes back whole each time, and is asked for once a try. */
static void an_allocation_is_refused(void **state)
{
        void *object;

        (void)state;
        assert_true(stook_barn_push_full(&barns, 0, sheaf_of(CAPACITY)));
        stook_inject.exchange_fail = 1;
        object = stook_slot_get(&front, true);
        stook_inject.exchange_fail = 0;
        assert_ptr_equal(main_now(), ZERO);
        assert_int_equal(fulls(), 1);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(counted(STOOK_STAT_barn_get), 4);
        assert_int_equal(counted(STOOK_STAT_barn_get_fail), 0);
        stook_slab_drain(&slabs, 1, &object);
        check_nothing_lost();
}

/* A double free of the top of a full main: taken off, told, and free once. */
static void a_double_free(void **state)
{
        struct stook_sheaf *main = sheaf_of(CAPACITY);
        void *object = main->objects[CAPACITY - 1];

        (void)state;
        set(main, sheaf_of(CAPACITY));
        stook_slot_put(&front, object, on_double);
        assert_int_equal(doubles, 1);
        doubles = 0;
        assert_ptr_equal(main_now(), main);
        assert_int_equal(stook_sheaf_size(main), CAPACITY);
        assert_ptr_equal(main->objects[CAPACITY - 1], object);
        check_nothing_lost();
}

/* ---- sheaves of other capacities ---- */

/* The cache's sheaves have grown: what the barn has is as good, main as large as they are stays. */
static void a_smaller_sheaf_comes(void **state)
{
        void *object;

        (void)state;
        assert_true(stook_barn_push_full(&barns, 0, sheaf_of(CAPACITY)));
        barns.capacity = 2 * CAPACITY;
        set(stook_sheaf_new(INDEX, 2 * CAPACITY, 0, &counters), NULL);
        object = stook_slot_get(&front, true);
        assert_int_equal(stook_sheaf_capacity(main_now()), CAPACITY);
        assert_int_equal(stook_sheaf_capacity(spare_now()), 2 * CAPACITY);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), 0);
        assert_int_equal(push(object), STOOK_PUSH_DONE);
        check_nothing_lost();
}

/* A swap takes an outgrown main off the slot. */
static void an_outgrown_main_leaves(void **state)
{
        void *object;

        (void)state;
        set(sheaf_of(0), sheaf_of(SOME));
        barns.capacity = 2 * CAPACITY;
        object = stook_slot_get(&front, true);
        assert_int_equal(stook_sheaf_size(main_now()), SOME - 1);
        assert_null(spare_now());
        assert_int_equal(counted(STOOK_STAT_sheaf_free), 1);
        assert_int_equal(push(object), STOOK_PUSH_DONE);
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
                        held[n] = stook_slot_get(&front, true);
                        assert_non_null(held[n]);
                        assert_int_equal((*fake_slab_stamp(held[n]))++, 0);
                        n++;
                } else {
                        unsigned at = (unsigned)below(n);

                        assert_int_equal(--*fake_slab_stamp(held[at]), 0);
                        stook_slot_put(&front, held[at], on_double);
                        held[at] = held[--n];
                }
                stook_inject.exchange_fail = below(16) ? 0 : 2;
        }
        assert_true(landings > 1000);
        while (n)
                stook_slot_put(&front, held[--n], on_double);
        check_nothing_lost();
}

int main(void)
{
        struct CMUnitTest tests[64] = {
                cmocka_unit_test_setup(another_configuration, start),
                cmocka_unit_test_setup(an_allocation_is_refused, start),
                cmocka_unit_test_setup(a_double_free, start),
                cmocka_unit_test_setup(a_smaller_sheaf_comes, start),
                cmocka_unit_test_setup(an_outgrown_main_leaves, start),
                cmocka_unit_test_setup(migrations_while_a_sheaf_is_fetched, start),
        };
        unsigned n = 6;

        for (unsigned i = 0; i < sizeof(alloc_rows) / sizeof(*alloc_rows); i++)
                tests[n++] = (struct CMUnitTest){ .name = alloc_rows[i].name,
                                                  .test_func = an_allocation,
                                                  .initial_state = &alloc_rows[i] };
        for (unsigned i = 0; i < sizeof(free_rows) / sizeof(*free_rows); i++)
                tests[n++] = (struct CMUnitTest){ .name = free_rows[i].name,
                                                  .test_func = a_free,
                                                  .initial_state = &free_rows[i] };
        return _cmocka_run_group_tests("pairs", tests, n, start_slots, NULL);
}
