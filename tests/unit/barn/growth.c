/*
 * What this proves: barn_room.c I1, I2 and I4. Caches that swing grow. Short sheaves grow by
 * gets. Those of few objects grow by demand, within a budget that goes by pages and slots. What
 * comes from readers at once gets room in one step; what swings widely gets it by the pages in use.
 */
#include "unit/barn/fixture.h"

static void swing(struct fake_cache *c)
{
        for (unsigned i = 0; i < 8; i++)
                flush(c);
        for (unsigned i = 0; i < 8; i++)
                refill(c);
}

/* Twice as large in a step, until a slot would keep too much; then the room grows. */
static void what_swings_grows(void **state)
{
        struct fake_cache *c = make(2, 32, 3, 3);

        (void)state;
        stook_barns_let_grow(&c->barns);
        for (unsigned capacity = 64; capacity <= 1024; capacity *= 2) {
                swing(c);
                assert_int_equal(stook_barns_capacity(&c->barns), capacity);
        }
        assert_int_equal(c->barns.full_limit, 3);
        swing(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 1024);
        assert_int_equal(c->barns.full_limit, 6);
        stook_barns_shrink(&c->barns);

        c = make_few(3, 64, 512);
        swing(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 128);
        swing(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 128);
        stook_barns_shrink(&c->barns);
}

/* What was flushed of the cache that had the index before does not make the next one grow. */
static void a_new_cache_begins_without_swings(void **state)
{
        struct fake_cache *c = make(5, 32, 3, 3);

        (void)state;
        stook_barns_let_grow(&c->barns);
        for (unsigned i = 0; i < 8; i++)
                flush(c);
        for (unsigned i = 0; i < 4; i++)
                refill(c);
        stook_barns_end(&c->barns);
        assert_int_equal(stook_barns_init(&c->barns, &c->slabs, 32, 3, 3), 0);
        stook_barns_let_grow(&c->barns);
        for (unsigned i = 0; i < 8; i++)
                refill(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 32);
        swing(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 64);
        stook_barns_end(&c->barns);
}

/* STOOK_CAPACITY: sheaves stay as they are. What is missed goes to the barn's room. */
static void room_alone_grows_where_capacity_is_fixed(void **state)
{
        struct fake_cache *c = make(4, 32, 10, 10);

        (void)state;
        swing(c);
        assert_int_equal(c->barns.full_limit, 10);      /* a tuner's: nothing grows */
        stook_barns_let_room_grow(&c->barns);
        swing(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 32);
        assert_int_equal(c->barns.full_limit, 20);
        pages_taken = 0;
        for (int i = 0; i < 20; i++)
                swing(c);
        pages_taken = MANY_PAGES;
        assert_int_equal(stook_barns_capacity(&c->barns), 32);
        assert_true(c->barns.full_limit * 32 * c->slabs.stride <= STOOK_BARN_CACHE_BYTES);
        assert_true(c->barns.full_limit >= 40);
        stook_barns_shrink(&c->barns);
        assert_int_equal(stook_barns_capacity(&c->barns), 32);
        assert_int_equal(c->barns.full_limit, 10);
        swing(c);
        stook_barns_set(&c->barns, 32, 10, 10);
        swing(c);
        assert_int_equal(c->barns.full_limit, 10);
}

/* Sheaves of 4 KiB. */
static void a_burst_from_readers_gets_room(void **state)
{
        struct fake_cache *c = make(6, 64, 10, 10), *fixed = make(7, 64, 10, 10);

        (void)state;
        stook_barns_let_room_grow(&c->barns);
        for (int i = 0; i < 100; i++)
                stook_barns_returned(&c->barns, 0, 4096, 0);
        assert_int_equal(c->barns.full_limit, 10);      /* nothing was missed yet */
        swing(c);
        assert_int_equal(c->barns.full_limit, 100);
        /* A get ends the burst. What still waits counts, too. */
        assert_null(stook_barn_ask_full(&c->barns, 0));
        stook_barns_returned(&c->barns, 0, 4096, 150 * 4096);
        assert_int_equal(c->barns.growth.burst_bytes, 150 * 4096);
        stook_barns_returned(&c->barns, 0, 4096, 0);
        assert_int_equal(c->barns.growth.burst_bytes, 150 * 4096);
        swing(c);
        assert_int_equal(c->barns.full_limit, 150);
        /* No more than the barns of a node may keep. */
        stook_barns_returned(&c->barns, 0, 4096, UINT64_MAX);
        for (int i = 0; i < 10; i++)
                swing(c);
        assert_int_equal(c->barns.full_limit, STOOK_BARN_NODE_BYTES / 4096);
        stook_barns_shrink(&c->barns);
        assert_int_equal(c->barns.full_limit, 10);
        assert_int_equal(c->barns.growth.burst_bytes, 0);
        stook_barns_returned(&fixed->barns, 0, 4096, UINT64_MAX);
        swing(fixed);
        assert_int_equal(fixed->barns.full_limit, 10);  /* a tuner's */
        stook_barns_set(&fixed->barns, 64, STOOK_BARN_LIMIT_MAX, 10);
        assert_int_equal(fixed->barns.full_limit, STOOK_BARN_CACHE_BYTES / 4096);
}

/* Sheaves of 4 KiB. */
static void a_wide_swing_gets_room_by_the_pages(void **state)
{
        struct fake_cache *c = make(8, 64, 10, 10);
        const unsigned usual = STOOK_BARN_CACHE_BYTES / 4096;

        (void)state;
        stook_barns_let_room_grow(&c->barns);
        pages_taken = STOOK_BARN_CACHE_BYTES;
        for (int i = 0; i < 10; i++)
                swing(c);
        assert_int_equal(c->barns.full_limit, usual);
        pages_taken = 3 * STOOK_BARN_CACHE_BYTES;
        swing(c);
        assert_int_equal(c->barns.full_limit, 2 * usual);
        swing(c);
        assert_int_equal(c->barns.full_limit, 3 * usual);
        pages_taken = MANY_PAGES;
        for (int i = 0; i < 10; i++)
                swing(c);
        assert_int_equal(c->barns.full_limit, 4 * usual);
        stook_barns_shrink(&c->barns);
        assert_int_equal(c->barns.full_limit, 10);
        assert_int_equal(c->barns.growth.burst_bytes, 0);
}

/* Sheaves of 4 KiB. One node may have all that swings: other nodes take nothing from its room. */
static void a_wide_swing_gets_room_by_the_fullest_node(void **state)
{
        const unsigned usual = STOOK_BARN_CACHE_BYTES / 4096;

        (void)state;
        nodes = 4;
        for (unsigned fullest = 0; fullest < 2; fullest++) {
                struct fake_cache *c = make(50 + fullest, 64, 10, 10);

                stook_barns_let_room_grow(&c->barns);
                pages_taken = fullest ? 0 : 3 * STOOK_BARN_CACHE_BYTES;
                pages_taken_elsewhere = fullest ? 3 * STOOK_BARN_CACHE_BYTES : 0;
                for (int i = 0; i < 20; i++)
                        swing(c);
                assert_int_equal(c->barns.full_limit, 3 * usual);
                stook_barns_shrink(&c->barns);
        }
        nodes = 1;
        pages_taken = MANY_PAGES;
        pages_taken_elsewhere = 0;
}

/* Whether barns may keep more than without bursts: 1 MiB, where no pages are in use. */
static bool room_for_a_burst(void)
{
        const uint64_t bytes = ((uint64_t)1 << 20) + 1;
        bool has;

        pages_taken = 0;
        has = stook_barn_book(0, bytes);
        if (has)
                stook_barn_unbook(0, bytes);
        pages_taken = MANY_PAGES;
        return has;
}

static void a_burst_ends_with_its_cache(void **state)
{
        struct fake_cache *c = make(9, 64, 10, 10);

        (void)state;
        assert_false(room_for_a_burst());
        for (int round = 0; round < 2; round++) {
                stook_barns_let_room_grow(&c->barns);
                for (int i = 0; i < 10; i++)
                        swing(c);
                assert_true(room_for_a_burst());
                if (round)
                        stook_barns_end(&c->barns);
                else
                        stook_barns_set(&c->barns, 64, 10, 10);
                assert_false(room_for_a_burst());
        }
        /* That of a tuned cache ends when it is idle, too. */
        stook_barns_set(&c->barns, 64, 10, 10);
        stook_barns_returned(&c->barns, 0, 4096, UINT64_MAX);
        assert_true(room_for_a_burst());
        stook_barns_shrink(&c->barns);
        assert_false(room_for_a_burst());
}

static void few_objects_grow_to_two_dozen(void **state)
{
        struct fake_cache *c = make_few(900, 1, 20000);

        (void)state;
        for (int i = 0; i < 15; i++)
                get_from_barn(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 1);
        get_from_barn(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 4);
        stook_barns_shrink(&c->barns);
        swing_in_slabs(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 4);
        swing_in_slabs(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 8);
        swing_in_slots(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 16);
        swing_in_slots(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 24);
        for (int i = 0; i < 10; i++) {
                swing_in_slots(c);
                swing_in_slabs(c);
        }
        assert_int_equal(stook_barns_capacity(&c->barns), 24);
        assert_true(c->barns.full_limit * 24 * 20000ul <= 4 * STOOK_BARN_CACHE_BYTES);
        stook_barns_shrink(&c->barns);
        assert_int_equal(stook_barns_capacity(&c->barns), 1);
}

/* By gets alone, to what a slot may keep of it. */
static void sheaves_grow_by_gets(void **state)
{
        struct fake_cache *c = make_few(903, 12, 1024), *two = make_few(904, 12, 2048);
        struct fake_cache *late = make_few(905, 32, 512), *none = make_few(906, 128, 512);

        (void)state;
        for (int i = 0; i < 63; i++)
                get_from_barn(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 12);
        get_from_barn(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 32);
        for (int i = 0; i < 1000; i++) {
                get_from_barn(c);
                get_from_barn(two);
                get_from_barn(late);
                get_from_barn(none);
        }
        assert_int_equal(stook_barns_capacity(&c->barns), 64);
        assert_int_equal(stook_barns_capacity(&two->barns), 32);
        assert_int_equal(stook_barns_capacity(&late->barns), 128);
        assert_int_equal(stook_barns_capacity(&none->barns), 128);
        stook_barns_shrink(&late->barns);
        stook_barns_shrink(&c->barns);
        stook_barns_shrink(&two->barns);
        assert_int_equal(stook_barns_capacity(&c->barns), 12);
        assert_int_equal(stook_barns_capacity(&two->barns), 12);
}

/* A class above 32 KiB. It does not go back to none, for slots may have sheaves of it then. */
static void a_cache_that_begins_with_none_gets_one(void **state)
{
        struct fake_cache *c = make_few(901, 0, 50000);
        struct fake_cache *never = make(902, 0, 10, 10);

        (void)state;
        assert_true(stook_barns_begin_with_none(&c->barns));
        assert_false(stook_barns_begin_with_none(&never->barns));
        swing_in_slabs(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 1);
        assert_false(stook_barns_begin_with_none(&c->barns));
        swing_in_slots(c);
        assert_int_equal(stook_barns_capacity(&c->barns), 4);
        stook_barns_shrink(&c->barns);
        assert_int_equal(stook_barns_capacity(&c->barns), 1);
        swing_in_slabs(never);
        assert_int_equal(stook_barns_capacity(&never->barns), 0);
}

/* I1: the sum over caches, in one slot, times the slots; no less than what each slot may have. */
static void many_objects_grow_within_a_share_of_the_pages(void **state)
{
        static struct fake_cache *c[40];
        size_t usual = pages_taken;
        /* Pages in MiB, slots, and KiB by which a slot may grow. */
        static const unsigned limits[][3] = {
                { 0, 1, 512 }, { 2, 0, 512 }, { 3, 1, 768 }, { 6, 2, 768 }, { 6, 16, 512 },
                { 4, 1, 1024 }, { 1024, 1, 1024 }, { 28, 8, 896 },
        };

        (void)state;
        for (unsigned i = 0; i < 40; i++)
                c[i] = make_few(951 + i, 64, 512);
        for (unsigned at = 0; at < sizeof(limits) / sizeof(*limits); at++) {
                size_t sum = 0, limit = (size_t)limits[at][2] << 10;

                pages_taken = (size_t)limits[at][0] << 20;
                stook_barn_slots = limits[at][1];
                for (int gets = 0; gets < 200; gets++)
                        for (unsigned i = 0; i < 40; i++)
                                get_from_barn(c[i]);
                for (unsigned i = 0; i < 40; i++)
                        sum += 2 * (stook_barns_capacity(&c[i]->barns) - 64) * (size_t)512;
                /* It is used: not one more step of a cache would fit. */
                assert_in_range(sum, limit - 2 * (128 - 64) * 512 + 1, limit);
                for (unsigned i = 0; i < 40; i++)
                        stook_barns_shrink(&c[i]->barns);
        }
        pages_taken = usual;
        stook_barn_slots = 0;
}

/* I2: the sum over caches, in one slot, times the slots. */
static void few_objects_grow_within_a_share_of_the_pages(void **state)
{
        static struct fake_cache *c[40];
        size_t usual = pages_taken;

        (void)state;
        for (unsigned i = 0; i < 40; i++)
                c[i] = make_few(910 + i, 1, 30000);
        pages_taken = (size_t)16 << 20;
        for (unsigned slots = 0; slots <= 16; slots = slots ? 4 * slots : 1) {
                size_t sum = 0, limit = pages_taken / (slots ? slots : 1);

                stook_barn_slots = slots;
                for (int round = 0; round < 5; round++)
                        for (unsigned i = 0; i < 40; i++)
                                swing_in_slots(c[i]);
                for (unsigned i = 0; i < 40; i++)
                        sum += 2 * (stook_barns_capacity(&c[i]->barns) - 1) * (size_t)30000;
                assert_true(sum <= limit);
                /* It is used: not one more step of a cache would fit. */
                assert_true(sum + 2 * 12 * 30000 > limit);
                for (unsigned i = 0; i < 40; i++)
                        stook_barns_shrink(&c[i]->barns);
        }
        /* With little in use, at least 2 MiB; with much, at most four times what barns may keep. */
        stook_barn_slots = 1;
        for (unsigned much = 0; much < 2; much++) {
                size_t sum = 0, limit = much ? (size_t)8 << 20 : (size_t)2 << 20;

                pages_taken = much ? (size_t)1 << 30 : 0;
                stook_barn_set_budget(much ? (size_t)2 << 20 : STOOK_BARN_NODE_BYTES);
                for (int round = 0; round < 5; round++)
                        for (unsigned i = 0; i < 40; i++)
                                swing_in_slots(c[i]);
                for (unsigned i = 0; i < 40; i++)
                        sum += 2 * (stook_barns_capacity(&c[i]->barns) - 1) * (size_t)30000;
                assert_in_range(sum, limit - 2 * 12 * 30000, limit);
                for (unsigned i = 0; i < 40; i++)
                        stook_barns_shrink(&c[i]->barns);
        }
        pages_taken = usual;
        stook_barn_slots = 0;
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(what_swings_grows, setup),
                cmocka_unit_test_setup(a_new_cache_begins_without_swings, setup),
                cmocka_unit_test_setup(room_alone_grows_where_capacity_is_fixed, setup),
                cmocka_unit_test_setup(a_burst_from_readers_gets_room, setup),
                cmocka_unit_test_setup(a_wide_swing_gets_room_by_the_pages, setup),
                cmocka_unit_test_setup(a_wide_swing_gets_room_by_the_fullest_node, setup),
                cmocka_unit_test_setup(a_burst_ends_with_its_cache, setup),
                cmocka_unit_test_setup(few_objects_grow_to_two_dozen, setup),
                cmocka_unit_test_setup(sheaves_grow_by_gets, setup),
                cmocka_unit_test_setup(a_cache_that_begins_with_none_gets_one, setup),
                cmocka_unit_test_setup(many_objects_grow_within_a_share_of_the_pages, setup),
                cmocka_unit_test_setup(few_objects_grow_within_a_share_of_the_pages, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
