/*
 * What this proves: barn I1 and I2. Gets and puts conserve sheaves and objects, on fakes of the
 * slab and metadata layers. Each want is answered from where its caller allows. Limits hold, and a
 * barn that is asked for nothing keeps nothing.
 */
#include <pthread.h>
#include "unit/barn/fixture.h"

static struct stook_sheaf *full_of(struct fake_cache *c, unsigned from)
{
        return stook_barn_get_full(&c->barns, 0, from, NULL);
}

static struct stook_sheaf *empty_of(struct fake_cache *c, unsigned from)
{
        return stook_barn_get_empty(&c->barns, 0, from);
}

static struct stook_sheaf *room_of(struct fake_cache *c, unsigned objects)
{
        return stook_barn_get_room(&c->barns, 0, objects);
}

static void gets_and_puts_conserve_sheaves(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10);
        struct stook_sheaf *a, *b;

        (void)state;
        assert_null(full_of(c, STOOK_FROM_BARN));
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_get_fail), 1);
        steps = 0;
        a = full_of(c, STOOK_FROM_ANY);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_get_fail), 2);
        assert_int_equal(steps, 1);
        assert_true(stook_sheaf_full(a));
        stook_barn_put(&c->barns, 0, a);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_put), 1);
        assert_int_equal(stook_barn_booked_bytes(0), 12 * 64);
        b = empty_of(c, STOOK_FROM_ANY);
        assert_ptr_not_equal(b, a);
        stook_barn_put(&c->barns, 0, b);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_put), 1);
        assert_ptr_equal(full_of(c, STOOK_FROM_BARN), a);
        assert_int_equal(stook_sheaf_size(a), 12);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_get), 1);
        assert_int_equal(stook_barn_booked_bytes(0), 0);
        assert_ptr_equal(empty_of(c, STOOK_FROM_BARN), b);
        assert_null(empty_of(c, STOOK_FROM_BARN));
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_alloc), 2);
        stook_barn_put(&c->barns, 0, a);
        stook_barn_put(&c->barns, 0, b);
        expect_nothing_left(c);
}

static void each_want_is_answered_from_where_it_may(void **state)
{
        struct fake_cache *c = make(1, 4, 2, 2);
        const unsigned if_room = STOOK_FROM_ANY | STOOK_FROM_IF_ROOM;
        struct stook_sheaf *kept, *second, *empty, *made;

        (void)state;
        assert_null(full_of(c, 0));
        kept = filled(c);
        stook_barn_put(&c->barns, 0, kept);
        made = full_of(c, STOOK_FROM_BELOW);            /* though the barn has one */
        assert_ptr_not_equal(made, kept);
        assert_ptr_equal(full_of(c, STOOK_FROM_ANY), kept);
        stook_barn_put(&c->barns, 0, kept);
        /* The barn's empty sheaf is filled before a new one is made. */
        empty = empty_of(c, STOOK_FROM_BELOW);
        stook_barn_put(&c->barns, 0, empty);
        assert_ptr_equal(full_of(c, STOOK_FROM_BELOW), empty);
        /* It is back in the barn if the slabs have nothing. */
        stook_barn_flush(&c->barns, empty);
        stook_barn_put(&c->barns, 0, empty);
        can_fill = 3;
        assert_null(full_of(c, STOOK_FROM_BELOW));
        can_fill = OBJECTS;
        assert_ptr_equal(empty_of(c, STOOK_FROM_BARN), empty);
        /* No new one is made for a full sheaf that the barn could not keep. */
        stook_barn_put(&c->barns, 0, made);
        assert_null(empty_of(c, if_room));
        stook_barn_put(&c->barns, 0, empty);
        assert_ptr_equal(empty_of(c, if_room), empty);
        made = full_of(c, STOOK_FROM_BARN);
        second = empty_of(c, if_room);
        assert_non_null(second);
        stook_barn_put(&c->barns, 0, made);
        stook_barn_put(&c->barns, 0, empty);
        stook_barn_put(&c->barns, 0, second);
        expect_nothing_left(c);
}

static void room_is_found_or_made_to_measure(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10);
        struct stook_sheaf *full = full_of(c, STOOK_FROM_BELOW), *empty, *large;

        (void)state;
        stook_barn_put(&c->barns, 0, full);
        empty = empty_of(c, STOOK_FROM_BELOW);
        stook_barn_put(&c->barns, 0, empty);
        large = room_of(c, 13);
        assert_int_equal(stook_sheaf_capacity(large), 13);
        assert_int_equal(stook_sheaf_size(large), 0);
        assert_ptr_equal(room_of(c, 12), full);
        assert_ptr_equal(room_of(c, 12), empty);
        stook_sheaf_delete(large, &c->counters);
        stook_sheaf_delete(empty, &c->counters);
        /* One of before a growth is too small: it goes, and a new one is made. */
        stook_barn_put(&c->barns, 0, full);
        stook_barns_set(&c->barns, 16, 10, 10);
        full = room_of(c, 13);
        assert_int_equal(stook_sheaf_capacity(full), 16);
        assert_int_equal(objects_out(), 0);
        stook_sheaf_delete(full, &c->counters);
        expect_nothing_left(c);
}

/*
 * 8 objects, then as many as all before together, up to a full sheaf. Sheaves are of that size
 * where the slot has none, or where they are short; else they are whole.
 */
static void first_refills_bring_little(void **state)
{
        static const unsigned sizes[] = { 8, 8, 16, 32, 64, 128, 128 };
        static const struct {
                unsigned capacity, from;
        } cases[] = { { 128, STOOK_FROM_ANY }, { 128, STOOK_FROM_ANY | STOOK_FROM_SMALL },
                      { 31, STOOK_FROM_ANY } };

        (void)state;
        for (size_t at = 0; at < STOOK_ARRAY_SIZE(cases); at++) {
                struct fake_cache *c = make(1, cases[at].capacity, 10, 10);
                uint32_t brought = 0;

                for (size_t i = 0; i < STOOK_ARRAY_SIZE(sizes) && sizes[i] < c->barns.capacity;
                     i++) {
                        struct stook_sheaf *full =
                                stook_barn_get_full(&c->barns, 0, cases[at].from, &brought);

                        assert_int_equal(stook_sheaf_size(full), sizes[i]);
                        assert_int_equal(stook_sheaf_capacity(full), at ? sizes[i] : 128);
                        stook_barn_flush(&c->barns, full);
                        stook_sheaf_delete(full, &c->counters);
                }
                expect_nothing_left(c);
        }
}

static void objects_go_past_the_sheaves(void **state)
{
        struct fake_cache *c = make(1, 0, 10, 10);
        void *object;

        (void)state;
        fill_flags = 0;
        stook_barns_let_grow(&c->barns);
        object = stook_barn_get_object(&c->barns, 0);
        assert_non_null(object);
        assert_int_equal(objects_out(), 1);
        stook_barn_put_object(&c->barns, object);
        assert_int_equal(objects_out(), 0);
        can_fill = 0;
        assert_null(stook_barn_get_object(&c->barns, 0));
        can_fill = OBJECTS;
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_free_slowpath), 1);
        /* Such calls are swings of a cache that begins with no sheaves. */
        for (int i = 0; i < 64 && !stook_barns_capacity(&c->barns); i++) {
                object = stook_barn_get_object(&c->barns, 0);
                stook_barn_put_object(&c->barns, object);
        }
        assert_int_not_equal(stook_barns_capacity(&c->barns), 0);
        expect_nothing_left(c);
}

static void an_offer_that_is_refused_changes_nothing(void **state)
{
        struct fake_cache *c = make(1, 4, 1, 1);
        struct stook_sheaf *a = full_of(c, STOOK_FROM_BELOW), *b = full_of(c, STOOK_FROM_BELOW);

        (void)state;
        assert_true(stook_barn_offer(&c->barns, 0, a));
        assert_false(stook_barn_offer(&c->barns, 0, b));
        assert_true(stook_sheaf_full(b));
        assert_int_equal(objects_out(), 8);
        stook_barn_put(&c->barns, 0, b);
        assert_int_equal(objects_out(), 4);
        expect_nothing_left(c);
}

/* A program that only frees has no other clock for the page layer's ageing. */
static void a_put_that_drains_takes_a_step(void **state)
{
        struct fake_cache *c = make(1, 4, 1, 1);
        struct stook_sheaf *a = full_of(c, STOOK_FROM_BELOW), *b = full_of(c, STOOK_FROM_BELOW);

        (void)state;
        steps = 0;
        stook_barn_put(&c->barns, 0, a);                /* kept */
        assert_int_equal(steps, 0);
        stook_barn_put(&c->barns, 0, b);                /* drained, kept empty */
        assert_int_equal(steps, 1);
        stook_barn_put(&c->barns, 0, empty_of(c, STOOK_FROM_BARN));
        assert_int_equal(steps, 1);
        expect_nothing_left(c);
}

static void barns_are_last_in_first_out(void **state)
{
        struct fake_cache *c = make(1, 4, 10, 10);
        struct stook_sheaf *s[3];

        (void)state;
        for (int i = 0; i < 3; i++) {
                s[i] = stook_barn_refill(&c->barns, 0, NULL, UINT_MAX);
                assert_true(stook_barn_push_full(&c->barns, 0, s[i]));
        }
        for (int i = 2; i >= 0; i--) {
                assert_ptr_equal(stook_barn_ask_full(&c->barns, 0), s[i]);
                stook_barn_flush(&c->barns, s[i]);
                stook_sheaf_delete(s[i], &c->counters);
        }
        expect_nothing_left(c);
}

static void limits_hold(void **state)
{
        struct fake_cache *c = make(1, 4, 3, 2);
        struct stook_sheaf *s;

        (void)state;
        for (int i = 0; i < 5; i++) {
                s = stook_barn_refill(&c->barns, 0, NULL, UINT_MAX);
                assert_int_equal(stook_barn_push_full(&c->barns, 0, s), i < 3);
                if (i >= 3) {
                        stook_barn_flush(&c->barns, s);
                        assert_int_equal(stook_sheaf_size(s), 0);
                        stook_sheaf_delete(s, &c->counters);
                }
        }
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_put_fail), 2);
        for (int i = 0; i < 4; i++) {
                s = stook_sheaf_new(1, 4, 0, &c->counters);
                assert_int_equal(stook_barn_push_empty(&c->barns, 0, s), i < 2);
                if (i >= 2)
                        stook_sheaf_delete(s, &c->counters);
        }
        /* A put that would leave a third empty one keeps two. */
        stook_barn_put(&c->barns, 0, stook_sheaf_new(1, 4, 0, &c->counters));
        s = stook_barn_ask_full(&c->barns, 0);
        assert_non_null(s);
        assert_int_equal(stook_tagged_stack_count_racy(&c->barns.node[0].empty), 2);
        stook_barn_put(&c->barns, 0, s);
        expect_nothing_left(c);
}

#define PUTTING 4

static struct fake_cache *crowded;
static unsigned putting;                /* between the look at the limit and the push */

static void put_another(void *barns)
{
        (void)barns;
        if (++putting < PUTTING)
                assert_true(stook_barn_push_full(&crowded->barns, 0, filled(crowded)));
}

/* barn.h I2: callbacks of readers pass it, too. Handlers on top of each other stand for threads. */
static void each_put_under_way_may_pass_the_limit_by_one(void **state)
{
        struct stook_tagged_stack *full;

        (void)state;
        crowded = make(1, 4, 3, 2);
        full = &crowded->barns.node[0].full;
        putting = 0;
        for (int i = 0; i < 2; i++)
                assert_true(stook_barn_push_full(&crowded->barns, 0, filled(crowded)));
        stook_inject.putting = put_another;
        assert_true(stook_barn_push_full(&crowded->barns, 0, filled(crowded)));
        stook_inject.putting = NULL;
        assert_int_equal(stook_tagged_stack_count_racy(full), 3 + PUTTING - 1);
        stook_barn_put(&crowded->barns, 0, filled(crowded));
        assert_int_equal(stook_tagged_stack_count_racy(full), 3 + PUTTING - 1);
        expect_nothing_left(crowded);
}

static void a_barn_keeps_no_more_bytes_than_it_may(void **state)
{
        struct fake_cache *c = make(1, 1020, 10, 10);       /* 64 KiB a sheaf */

        (void)state;
        assert_int_equal(c->barns.full_limit, STOOK_BARN_CACHE_BYTES / (1020 * 64));
}

static void a_partial_sheaf_is_flushed(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10);
        struct stook_sheaf *s = stook_barn_refill(&c->barns, 0, NULL, UINT_MAX);

        (void)state;
        s->word += 5 * (uint64_t)STOOK_SHEAF_POP;       /* five pops */
        stook_barn_put(&c->barns, 0, s);
        assert_int_equal(objects_out(), 5);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_flush), 7);
        assert_ptr_equal(stook_barn_pop_empty(&c->barns, 0), s);
        memset(out, 0, sizeof(out));
        stook_sheaf_delete(s, &c->counters);
}

/*
 * Sheaves are put and none is asked for. After four times the limit the barn takes no more, and
 * each further sheaf takes one along to the slabs. An ask ends it.
 */
static void a_barn_that_is_not_asked_keeps_nothing(void **state)
{
        struct fake_cache *c = make(2, 4, 3, 3);
        unsigned brought = 0;

        (void)state;
        while (!stook_barn_is_unasked(&c->barns, 0)) {
                struct stook_sheaf *full = stook_barn_refill(&c->barns, 0, NULL, UINT_MAX);

                assert_non_null(full);
                stook_barn_put(&c->barns, 0, full);
                brought++;
                if (!stook_barn_is_unasked(&c->barns, 0))
                        assert_int_equal(stook_tagged_stack_count_racy(&c->barns.node[0].full),
                                         brought < 3 ? brought : 3);
        }
        assert_int_equal(brought, 4 * 3 + 1);
        for (unsigned left = 2; left != UINT_MAX; left--) {
                assert_int_equal(stook_tagged_stack_count_racy(&c->barns.node[0].full), left);
                stook_barn_put(&c->barns, 0, filled(c));
        }
        assert_int_equal(stook_tagged_stack_count_racy(&c->barns.node[0].full), 0);
        assert_null(stook_barn_ask_full(&c->barns, 0));
        assert_false(stook_barn_is_unasked(&c->barns, 0));
        stook_barn_put(&c->barns, 0, filled(c));
        assert_int_equal(stook_tagged_stack_count_racy(&c->barns.node[0].full), 1);
        expect_nothing_left(c);
}

/* Full sheaves of before a growth would come back into slots, and miss there as before. */
static void a_full_sheaf_that_was_outgrown_is_not_kept(void **state)
{
        struct fake_cache *c = make(961, 1, 10, 10);
        struct stook_sheaf *small = stook_barn_refill(&c->barns, 0, NULL, 1);
        struct stook_sheaf *kept = stook_barn_refill(&c->barns, 0, NULL, 1);

        (void)state;
        assert_true(stook_sheaf_full(small));
        stook_barn_put(&c->barns, 0, kept);
        assert_int_equal(objects_out(), 2);
        stook_barns_set(&c->barns, 4, 10, 10);
        stook_barn_put(&c->barns, 0, small);
        assert_int_equal(objects_out(), 1);
        expect_nothing_left(c);
}

/* Sheaves that carry their number, got and put by several threads: each is in one place. */
#define THREADS 3
#define ROUNDS 200000
static struct fake_cache *shared;
static uint32_t holder[64];             /* atomic: which thread has sheaf n; 0: the barn */

static void *get_and_put(void *arg)
{
        uint32_t me = (uint32_t)(uintptr_t)arg;

        for (int i = 0; i < ROUNDS; i++) {
                struct stook_sheaf *s = i & 1 ? stook_barn_ask_full(&shared->barns, 0)
                                              : stook_barn_pop_empty(&shared->barns, 0);

                if (!s)
                        continue;
                if (__atomic_exchange_n(&holder[stook_sheaf_node(s)], me, __ATOMIC_RELAXED))
                        return "a sheaf was handed out twice";
                __atomic_store_n(&holder[stook_sheaf_node(s)], 0, __ATOMIC_RELAXED);
                if (stook_sheaf_full(s) ? !stook_barn_push_full(&shared->barns, 0, s)
                                        : !stook_barn_push_empty(&shared->barns, 0, s))
                        return "a sheaf was refused";
        }
        return NULL;
}

static void threads_share_a_barn(void **state)
{
        pthread_t t[THREADS];
        unsigned sheaves = 0;
        void *error;

        (void)state;
        shared = make(3, 4, 60, 60);
        for (unsigned i = 0; i < 20; i++) {
                struct stook_sheaf *s = stook_sheaf_new(3, 4, i, &shared->counters);

                if (i & 1) {
                        stook_sheaf_set_size(s, 4);
                        assert_true(stook_barn_push_full(&shared->barns, 0, s));
                } else {
                        assert_true(stook_barn_push_empty(&shared->barns, 0, s));
                }
        }
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&t[i], NULL, get_and_put, (void *)(i + 1)), 0);
        for (int i = 0; i < THREADS; i++) {
                pthread_join(t[i], &error);
                assert_null(error);
        }
        while (stook_barn_pop_full(&shared->barns, 0) || stook_barn_pop_empty(&shared->barns, 0))
                sheaves++;
        assert_int_equal(sheaves, 20);
        assert_int_equal(stook_barn_booked_bytes(0), 0);
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(gets_and_puts_conserve_sheaves, setup),
                cmocka_unit_test_setup(each_want_is_answered_from_where_it_may, setup),
                cmocka_unit_test_setup(room_is_found_or_made_to_measure, setup),
                cmocka_unit_test_setup(first_refills_bring_little, setup),
                cmocka_unit_test_setup(objects_go_past_the_sheaves, setup),
                cmocka_unit_test_setup(an_offer_that_is_refused_changes_nothing, setup),
                cmocka_unit_test_setup(a_put_that_drains_takes_a_step, setup),
                cmocka_unit_test_setup(barns_are_last_in_first_out, setup),
                cmocka_unit_test_setup(limits_hold, setup),
                cmocka_unit_test_setup(each_put_under_way_may_pass_the_limit_by_one, setup),
                cmocka_unit_test_setup(a_barn_keeps_no_more_bytes_than_it_may, setup),
                cmocka_unit_test_setup(a_partial_sheaf_is_flushed, setup),
                cmocka_unit_test_setup(a_barn_that_is_not_asked_keeps_nothing, setup),
                cmocka_unit_test_setup(a_full_sheaf_that_was_outgrown_is_not_kept, setup),
                cmocka_unit_test_setup(threads_share_a_barn, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
