/*
 * Proves when the quick get and the quick put of a slot apply, and when they do not. One that
 * applies changes main and spare as the table of slot_replace.c says, takes or puts its one object,
 * and counts like the long way. A call that answers no has changed nothing: not the slot, not the
 * barn, no counter but those of a sheaf that was got and put back. On the locked backend each call
 * says no. A spare with objects, or with room, is swapped in instead.
 */
#include "unit/slot/checks.h"
#include "base/inject.h"

static bool is_quick(void)
{
        return ops == &stook_section_rseq;
}

/* Sizes of main and spare; -1: the zero-capacity sheaf, no spare. Sheaves in the barn. */
struct before {
        const char *name;
        int main, spare;
        unsigned fulls, empties;
};

static struct stook_sheaf *main_before, *spare_before;

static void prepare(const struct before *b)
{
        begin(3);
        main_before = b->main < 0 ? ZERO : sheaf_of((unsigned)b->main);
        spare_before = b->spare < 0 ? NULL : sheaf_of((unsigned)b->spare);
        set(main_before, spare_before);
        for (unsigned i = 0; i < b->fulls; i++)
                assert_true(stook_barn_push_full(&barns, 0, sheaf_of(CAPACITY)));
        for (unsigned i = 0; i < b->empties; i++)
                assert_true(stook_barn_push_empty(&barns, 0, sheaf_of(0)));
}

/* The slot and the barn are as they were prepared. */
static void check_unchanged(const struct before *b)
{
        assert_ptr_equal(main_now(), main_before);
        assert_ptr_equal(spare_now(), spare_before);
        assert_int_equal(fulls(), b->fulls);
        assert_int_equal(empties(), b->empties);
        assert_int_equal(counted(STOOK_STAT_barn_get_fail), 0);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), 0);
}

/* A section may be aborted by a preemption: then the call says no, and is made again. */
static void *alloc(void)
{
        void *object = NULL;

        for (int i = 0; i < 100 && !object; i++)
                object = stook_slot_quick_get(&front);
        return object;
}

static bool give(void *object)
{
        bool done = false;

        for (int i = 0; i < 100 && !done; i++)
                done = stook_slot_quick_put(&front, object);
        return done;
}

static void *top_of_barn(void)
{
        const struct stook_link *link = (const struct stook_link *)barns.node[0].full.head.lo;

        return stook_container_of(link, struct stook_sheaf, owned.link)->objects[CAPACITY - 1];
}

/* ---- an allocation ---- */

static void alloc_main_becomes_the_spare(void **state)
{
        void *top, *object;

        (void)state;
        prepare(&(struct before){ .main = 0, .spare = -1, .fulls = 1 });
        top = top_of_barn();
        object = alloc();
        assert_ptr_equal(object, is_quick() ? top : NULL);
        if (!object) {
                check_nothing_lost();
                return;
        }
        assert_int_equal(stook_sheaf_size(main_now()), CAPACITY - 1);
        assert_ptr_equal(spare_now(), main_before);
        assert_int_equal(fulls() + empties(), 0);
        assert_true(counted(STOOK_STAT_barn_get) >= 1);
        assert_int_equal(counted(STOOK_STAT_barn_get_fail), 0);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 0);
        assert_int_equal(push(object), STOOK_PUSH_DONE);
        check_nothing_lost();
}

static void alloc_main_goes_to_the_barn(void **state)
{
        void *object;

        (void)state;
        prepare(&(struct before){ .main = 0, .spare = 0, .fulls = 2 });
        object = alloc();
        assert_int_equal(object != NULL, is_quick());
        if (!object) {
                check_nothing_lost();
                return;
        }
        assert_int_equal(stook_sheaf_size(main_now()), CAPACITY - 1);
        assert_ptr_equal(spare_now(), spare_before);
        assert_int_equal(fulls(), 1);
        assert_int_equal(empties(), 1);
        assert_int_equal(push(object), STOOK_PUSH_DONE);
        check_nothing_lost();
}

/* Where the spare has objects, or room, it is swapped in, and the barn is not asked. */
static void alloc_the_spare_is_swapped_in(void **state)
{
        void *object;

        (void)state;
        prepare(&(struct before){ .main = 0, .spare = SOME, .fulls = 1 });
        object = alloc();
        assert_int_equal(object != NULL, is_quick());
        assert_ptr_equal(main_now(), object ? spare_before : main_before);
        assert_ptr_equal(spare_now(), object ? main_before : spare_before);
        assert_int_equal(stook_sheaf_size(object ? main_now() : spare_now()), SOME - !!object);
        assert_int_equal(fulls(), 1);
        assert_int_equal(counted(STOOK_STAT_barn_get), 0);
        if (object)
                assert_int_equal(push(object), STOOK_PUSH_DONE);
        check_nothing_lost();
}

static void alloc_no(void **state)
{
        static const struct before no[] = {
                { "no sheaves", -1, -1, 1, 1 },
                { "main has some", SOME, -1, 1, 1 },
                { "main is full", CAPACITY, 0, 1, 1 },
                { "main and spare have some", SOME, SOME, 1, 1 },
                { "the barn has no full sheaf", 0, -1, 0, 1 },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(no) / sizeof(*no); i++) {
                print_message("no: %s\n", no[i].name);
                prepare(&no[i]);
                assert_null(stook_slot_quick_get(&front));
                check_unchanged(&no[i]);
                assert_int_equal(counted(STOOK_STAT_barn_get), 0);
                check_nothing_lost();
        }
}

static void alloc_no_installs(void **state)
{
        struct before b = { .main = 0, .spare = 0, .fulls = 1 };

        (void)state;
        prepare(&b);
        front.config++;                 /* odd */
        assert_null(stook_slot_quick_get(&front));
        check_unchanged(&b);
        front.config--;
        check_nothing_lost();
}

static void alloc_the_exchange_is_refused(void **state)
{
        struct before b = { .main = 0, .spare = 0, .fulls = 1 };

        (void)state;
        prepare(&b);
        stook_inject.exchange_fail = 1;
        assert_null(stook_slot_quick_get(&front));
        stook_inject.exchange_fail = 0;
        check_unchanged(&b);
        assert_int_equal(counted(STOOK_STAT_barn_get), is_quick());
        assert_int_equal(counted(STOOK_STAT_barn_put), 1 + is_quick());
        check_nothing_lost();
}

static unsigned landings;

static void other_sheaves(struct stook_front *f)
{
        (void)f;
        landings++;
        set(sheaf_of(SOME), NULL);
}

static void alloc_the_slot_has_changed(void **state)
{
        (void)state;
        prepare(&(struct before){ .main = 0, .spare = 0, .fulls = 1 });
        landings = 0;
        stook_inject.landing = other_sheaves;
        assert_null(stook_slot_quick_get(&front));
        stook_inject.landing = NULL;
        assert_int_equal(landings, is_quick());
        if (is_quick())
                assert_int_equal(stook_sheaf_size(main_now()), SOME);
        assert_int_equal(fulls(), 1);
        check_nothing_lost();
}

/* The cache's sheaves have grown since: what the barn has is as good. */
static void alloc_a_smaller_sheaf(void **state)
{
        void *object;

        (void)state;
        prepare(&(struct before){ .main = -1, .spare = -1, .fulls = 1 });
        barns.capacity = 2 * CAPACITY;
        set(stook_sheaf_new(INDEX, 2 * CAPACITY, 0, &counters), NULL);
        object = alloc();
        assert_int_equal(object != NULL, is_quick());
        assert_int_equal(fulls(), !is_quick());
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), 0);
        assert_int_equal(stook_sheaf_capacity(main_now()), is_quick() ? CAPACITY : 2 * CAPACITY);
        if (object)
                assert_int_equal(push(object), STOOK_PUSH_DONE);
        check_nothing_lost();
}

/* They have shrunk since: it goes back, for main would be a spare that stays. */
static void alloc_a_larger_sheaf(void **state)
{
        (void)state;
        prepare(&(struct before){ .main = -1, .spare = -1, .fulls = 1 });
        barns.capacity = CAPACITY / 2;
        set(stook_sheaf_new(INDEX, CAPACITY / 2, 0, &counters), NULL);
        assert_null(stook_slot_quick_get(&front));
        assert_int_equal(fulls(), 1);
        assert_int_equal(stook_sheaf_capacity(main_now()), CAPACITY / 2);
        assert_int_equal(counted(STOOK_STAT_sheaf_flush), 0);
        check_nothing_lost();
}

/* ---- a free ---- */

static void free_the_spare_goes_to_the_barn(void **state)
{
        void *object;
        bool done;

        (void)state;
        prepare(&(struct before){ .main = CAPACITY, .spare = CAPACITY, .empties = 1 });
        object = users();
        done = give(object);
        assert_int_equal(done, is_quick());
        if (done) {
                assert_int_equal(stook_sheaf_size(main_now()), 1);
                assert_ptr_equal(main_now()->objects[0], object);
                assert_ptr_equal(spare_now(), main_before);
                assert_int_equal(fulls(), 1);
                assert_int_equal(empties(), 0);
                assert_int_equal(counted(STOOK_STAT_barn_put), 1);
                assert_int_equal(counted(STOOK_STAT_free_slowpath), 0);
        } else {
                stook_slab_drain(&slabs, 1, &object);
        }
        check_nothing_lost();
}

static void free_the_spare_is_swapped_in(void **state)
{
        void *object;
        bool done;

        (void)state;
        prepare(&(struct before){ .main = CAPACITY, .spare = SOME, .empties = 1 });
        object = users();
        done = give(object);
        assert_int_equal(done, is_quick());
        assert_ptr_equal(main_now(), done ? spare_before : main_before);
        assert_ptr_equal(spare_now(), done ? main_before : spare_before);
        assert_int_equal(stook_sheaf_size(done ? main_now() : spare_now()), SOME + done);
        assert_int_equal(empties(), 1);
        if (!done)
                stook_slab_drain(&slabs, 1, &object);
        check_nothing_lost();
}

static void free_the_barn_is_full(void **state)
{
        void *object;
        bool done;

        (void)state;
        prepare(&(struct before){ .main = CAPACITY, .spare = CAPACITY, .fulls = 3, .empties = 1 });
        object = users();
        done = give(object);
        assert_int_equal(done, is_quick());
        if (done) {
                assert_ptr_equal(spare_now(), main_before);
                assert_int_equal(fulls(), 3);
                assert_int_equal(empties(), 1);                 /* the spare, flushed */
                assert_int_equal(counted(STOOK_STAT_barn_put_fail), 1);
                assert_int_equal(counted(STOOK_STAT_sheaf_flush), CAPACITY);
        } else {
                stook_slab_drain(&slabs, 1, &object);
        }
        check_nothing_lost();
}

static void free_no(void **state)
{
        static const struct before no[] = {
                { "no sheaves", -1, -1, 1, 1 },
                { "main is empty", 0, CAPACITY, 1, 1 },
                { "main has some", SOME, CAPACITY, 1, 1 },
                { "no spare", CAPACITY, -1, 1, 1 },
                { "main and spare have some", SOME, SOME, 1, 1 },
                { "the barn has no empty sheaf", CAPACITY, CAPACITY, 1, 0 },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(no) / sizeof(*no); i++) {
                void *object;

                print_message("no: %s\n", no[i].name);
                prepare(&no[i]);
                object = users();
                assert_false(stook_slot_quick_put(&front, object));
                check_unchanged(&no[i]);
                stook_slab_drain(&slabs, 1, &object);
                check_nothing_lost();
        }
}

static void free_no_installs(void **state)
{
        struct before b = { .main = CAPACITY, .spare = CAPACITY, .empties = 1 };
        void *object;

        (void)state;
        prepare(&b);
        object = users();
        front.config++;
        assert_false(stook_slot_quick_put(&front, object));
        check_unchanged(&b);
        front.config--;
        stook_slab_drain(&slabs, 1, &object);
        check_nothing_lost();
}

/* The long way takes it off main, and tells. */
static void free_a_double(void **state)
{
        struct before b = { .main = CAPACITY, .spare = CAPACITY, .empties = 1 };

        (void)state;
        prepare(&b);
        assert_false(stook_slot_quick_put(&front, main_before->objects[CAPACITY - 1]));
        check_unchanged(&b);
        check_nothing_lost();
}

static void free_the_exchange_is_refused(void **state)
{
        struct before b = { .main = CAPACITY, .spare = CAPACITY, .empties = 1 };
        void *object;

        (void)state;
        prepare(&b);
        object = users();
        stook_inject.exchange_fail = 1;
        assert_false(stook_slot_quick_put(&front, object));
        stook_inject.exchange_fail = 0;
        check_unchanged(&b);
        stook_slab_drain(&slabs, 1, &object);
        check_nothing_lost();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(alloc_main_becomes_the_spare),
                cmocka_unit_test(alloc_main_goes_to_the_barn),
                cmocka_unit_test(alloc_the_spare_is_swapped_in),
                cmocka_unit_test(alloc_no),
                cmocka_unit_test(alloc_no_installs),
                cmocka_unit_test(alloc_the_exchange_is_refused),
                cmocka_unit_test(alloc_the_slot_has_changed),
                cmocka_unit_test(alloc_a_smaller_sheaf),
                cmocka_unit_test(alloc_a_larger_sheaf),
                cmocka_unit_test(free_the_spare_goes_to_the_barn),
                cmocka_unit_test(free_the_spare_is_swapped_in),
                cmocka_unit_test(free_the_barn_is_full),
                cmocka_unit_test(free_no),
                cmocka_unit_test(free_no_installs),
                cmocka_unit_test(free_a_double),
                cmocka_unit_test(free_the_exchange_is_refused),
        };

        return cmocka_run_group_tests(tests, start_slots, NULL);
}
