/*
 * What this proves: the table of slab_state.h, transition by transition. From each state of a part,
 * each of free, take, settle and release leads to the state that the table says. Slabs have one
 * part (16 objects, so that the part is not a whole word), or three (64, 64 and 22 objects).
 */
#include "parts.h"

/* ---- one part ---- */

static void test_new_remainder_listed(void **unused)
{
        (void)unused;
        fill(5);
        expect(slab_of(objects[0]), 0, 0xffe0, LISTED);
        assert_int_equal(slabs->node[0].partial, 1);
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 1);
        drain(0, 5);
}

static void test_take_all_is_full(void **unused)
{
        (void)unused;
        fill(16);
        expect(slab_of(objects[0]), 0, 0, 0);
        assert_int_equal(slabs->node[0].partial, 0);
        drain(0, 1);
        fill(1);                                        /* the last free object of a listed part */
        expect(slab_of(objects[0]), 0, 0, 0);
        assert_int_equal(slabs->node[0].partial, 0);
        drain(0, 16);
        assert_int_equal(fake_spans_taken(), 0);
}

static void test_free_to_full_lists_at_tail(void **unused)
{
        struct stook_slab *first, *second;

        (void)unused;
        fill(32);
        first = slab_of(objects[0]);
        second = slab_of(objects[16]);
        drain(20, 1);
        expect(second, 0, 1u << 4, LISTED);
        assert_int_equal(counted(STOOK_STAT_free_add_partial), 1);
        drain(3, 1);
        assert_ptr_equal(slabs->node[0].list.next, &stook_slab_span(second)->list);
        assert_ptr_equal(slabs->node[0].list.prev, &stook_slab_span(first)->list);
        drain(0, 3); drain(4, 16); drain(21, 11);
}

static void test_free_to_listed_stays(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        fill(16);
        slab = slab_of(objects[0]);
        drain(0, 1);
        drain(1, 4);
        expect(slab, 0, 0x1f, LISTED);
        assert_int_equal(counted(STOOK_STAT_free_add_partial), 1);
        drain(5, 11);
        assert_int_equal(counted(STOOK_STAT_free_remove_partial), 1);
        assert_int_equal(fake_spans_taken(), 0);
}

static void test_empty_kept_then_surplus(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        slabs->min_partial = 1;
        fill(32);
        slab = slab_of(objects[0]);
        drain(0, 16);
        expect(slab, 0, 0xffff, LISTED);
        assert_int_equal(fake_spans_taken(), 2);
        drain(16, 16);
        assert_int_equal(fake_spans_taken(), 1);        /* one was enough */
        fill(16);                                       /* from the kept one: no birth */
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 2);
        drain(0, 16);
}

/* Each state that the owner of a claim may find. */
static void test_settle(void **unused)
{
        struct stook_slab *slab;
        uint64_t bits;

        (void)unused;
        fill(1);
        slab = slab_of(objects[0]);
        bits = stook_slab_part(slab, 0)->hi;
        set_flags(slab, 0, CLAIM);
        assert_int_equal(stook_part_settle(slab, 0, true), STOOK_SETTLED_LIST); /* not empty */
        assert_int_equal(flags_of(slab, 0), LISTED);
        set_flags(slab, 0, LISTED | CLAIM);
        assert_int_equal(stook_part_settle(slab, 0, true), STOOK_SETTLED);
        assert_int_equal(flags_of(slab, 0), LISTED);
        stook_slab_part(slab, 0)->hi = ~UINT64_C(0xffff); /* full again */
        set_flags(slab, 0, CLAIM);
        assert_int_equal(stook_part_settle(slab, 0, true), STOOK_SETTLED);
        assert_int_equal(flags_of(slab, 0), 0);
        stook_slab_part(slab, 0)->hi = ~UINT64_C(0);                           /* empty */
        set_flags(slab, 0, CLAIM);
        assert_int_equal(stook_part_settle(slab, 0, false), STOOK_SETTLED_LIST);
        assert_int_equal(flags_of(slab, 0), LISTED);
        set_flags(slab, 0, LISTED | CLAIM);
        assert_false(stook_slab_retire(slab));                                          /* S3 */
        assert_int_equal(stook_part_settle(slab, 0, false), STOOK_SETTLED);
        assert_int_equal(flags_of(slab, 0), LISTED);
        set_flags(slab, 0, LISTED | CLAIM);
        assert_int_equal(stook_part_settle(slab, 0, true), STOOK_SETTLED_RELEASE);
        assert_int_equal(flags_of(slab, 0), RELEASED);
        set_flags(slab, 0, CLAIM);
        assert_int_equal(stook_part_settle(slab, 0, true), STOOK_SETTLED_RELEASE);
        assert_int_equal(flags_of(slab, 0), RELEASED);
        set_flags(slab, 0, LISTED);
        assert_true(stook_slab_retire(slab));
        assert_int_equal(flags_of(slab, 0), RELEASED);
        stook_slab_part(slab, 0)->hi = bits;
        set_flags(slab, 0, LISTED);
        drain(0, 1);
}

static void test_take(void **unused)
{
        struct stook_slab *slab;
        uint32_t taken;
        bool left;

        (void)unused;
        fill(16);
        slab = slab_of(objects[0]);
        drain(3, 6);
        assert_int_equal(stook_part_take(slab, 0, 2, LISTED, NULL, &taken, &left),
                         0x18);                                 /* the lowest two */
        assert_true(left && taken == 2);
        expect(slab, 0, 0x1e0, LISTED);
        set_flags(slab, 0, CLAIM);
        assert_int_equal(stook_part_take(slab, 0, 3, CLAIM, NULL, &taken, &left), 0xe0);
        assert_true(left && flags_of(slab, 0) == CLAIM);
        set_flags(slab, 0, LISTED | CLAIM); /* by the holder: the claim stays with its owner */
        assert_int_equal(stook_part_take(slab, 0, 64, LISTED, NULL, &taken, &left), 0x100);
        assert_true(!left && flags_of(slab, 0) == CLAIM && !stook_part_bits(slab, 0));
        assert_int_equal(stook_part_take(slab, 0, 64, CLAIM, NULL, &taken, &left), 0);
        assert_true(!taken && !left && !flags_of(slab, 0));
        stook_slab_remove(&(struct stook_slab_hold){ .slabs = slabs, .node = &slabs->node[0] },
                          slab, 1);
        drain(0, 16);
}

/* Which bits a take picks, against a loop: the lowest ones, or the first ones of an order. */
static void test_picked_bits(void **unused)
{
        uint8_t order[2 * 64];
        uint64_t seed = 1;

        (void)unused;
        for (unsigned i = 0; i < sizeof(order); i++)
                order[i] = (uint8_t)(i * 37 % 64);
        for (unsigned round = 0; round < 20000; round++) {
                uint64_t bits = seed, lowest = 0, first = 0;
                unsigned start = round % 64, n = 0;

                seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                bits = round % 4 == 0 ? bits : round % 4 == 1 ? bits & bits << 7 & bits >> 3 :
                       round % 4 == 2 ? bits | bits << 9 | bits >> 5 : ~UINT64_C(0) << start;
                for (unsigned i = 0, at = start; i < 64; i++, at++, n++) {
                        uint64_t next = bits & ~lowest & -(bits & ~lowest);

                        if (!(bits & ~lowest & ~next))
                                break;                          /* it has more than are asked for */
                        lowest |= next;
                        while (!(bits >> order[at] & 1))
                                at++;
                        first |= UINT64_C(1) << order[at];
                        assert_true(stook_lowest_bits(bits, n + 1) == lowest);
                        assert_true(stook_first_bits(order + start, bits, n + 1) == first);
                }
        }
}

/* Every answer of a free, and none changes anything but the two that say so. */
static void test_free_answers(void **unused)
{
        struct stook_slab *slab;
        struct stook_pair before;
        uint64_t mask;

        (void)unused;
        fill(16);
        slab = slab_of(objects[0]);
        mask = 6;
        assert_int_equal(stook_part_free(slabs, slab, 0, &mask, objects[0]), STOOK_FREED_CLAIMED);
        before = *stook_slab_part(slab, 0);
        assert_true(before.hi == (6 | ~UINT64_C(0xffff)) && flags_of(slab, 0) == CLAIM);
        mask = 12;
        assert_int_equal(stook_part_free(slabs, slab, 0, &mask, objects[0]), STOOK_FREE_TWICE);
        assert_int_equal(mask, 4);
        mask = 8;
        assert_int_equal(stook_part_free(slabs, slab, 0, &mask, fake_arena - 1),
                         STOOK_FREE_NOT_LIVE);
        assert_memory_equal(&before, stook_slab_part(slab, 0), sizeof(before));
        assert_int_equal(stook_part_free(slabs, slab, 0, &mask, objects[0]), STOOK_FREED);
        assert_true(stook_part_bits(slab, 0) == 14 && flags_of(slab, 0) == CLAIM);
        set_flags(slab, 0, RELEASED);
        before = *stook_slab_part(slab, 0);
        mask = 16;
        assert_int_equal(stook_part_free(slabs, slab, 0, &mask, objects[0]), STOOK_FREE_NOT_LIVE);
        assert_memory_equal(&before, stook_slab_part(slab, 0), sizeof(before));
        set_flags(slab, 0, CLAIM);
        stook_lock_forbid_waits();
        stook_slab_settle_parts(slabs, slab, 1, false);
        stook_lock_allow_waits();
        expect(slab, 0, 14, LISTED);
        drain(0, 1); drain(4, 12);
}

/*
 * By the bits alone (S9): only from some free objects to some, whatever the flags are; they stay.
 */
static void test_free_some(void **unused)
{
        static const uint64_t flags[] = { CLAIM, LISTED, LISTED | CLAIM };
        struct stook_free_some by = { (uint64_t)slabs->cache_index << STOOK_ENTRY_CACHE_SHIFT,
                                      slabs->slab_bytes, stook_is_alone() };
        struct stook_free_some foreign = by;
        struct stook_slab *slab;
        struct stook_pair before, *part;
        uint64_t mask = 1, all = 0xffff;

        (void)unused;
        fill(16);
        slab = slab_of(objects[0]);
        part = stook_slab_part(slab, 0);
        foreign.entry += UINT64_C(1) << STOOK_ENTRY_CACHE_SHIFT;
        before = *stook_slab_part(slab, 0);
        assert_false(stook_part_free_some(&by, slab, part, all, 6, objects[1]));   /* it was full */
        assert_memory_equal(&before, stook_slab_part(slab, 0), sizeof(before));
        assert_int_equal(stook_part_free(slabs, slab, 0, &mask, objects[0]), STOOK_FREED_CLAIMED);
        for (unsigned i = 0; i < 3; i++) {
                mask = UINT64_C(6) << 2 * i;
                set_flags(slab, 0, flags[i]);
                before = *stook_slab_part(slab, 0);
                assert_true(stook_part_free_some(&by, slab, part, all, mask, objects[1]));
                assert_int_equal(stook_slab_part(slab, 0)->lo, before.lo);
                assert_int_equal(stook_slab_part(slab, 0)->hi, before.hi | mask);
        }
        before = *stook_slab_part(slab, 0);
        assert_int_equal(before.hi, 0x7f | ~UINT64_C(0xffff));
        assert_false(stook_part_free_some(&by, slab, part, all, 0x8040, objects[6]));   /* twice */
        assert_false(stook_part_free_some(&by, slab, part, all, 0xff80, objects[7]));   /* all */
        assert_false(stook_part_free_some(&by, slab, part, all & ~0x7f, 0x80, objects[7]));
        assert_false(stook_part_free_some(&foreign, slab, part, all, 0x80, objects[7]));
        assert_false(stook_part_free_some(&by, slab, part, all, 0x80, stook_slab_base(slab) - 1));
        assert_false(stook_part_free_some(&by, slab, part, all, 0x80,
                                          stook_slab_base(slab) + slabs->slab_bytes));
        slab->key += STOOK_SLAB_KEY_SMALLER;
        assert_false(stook_part_free_some(&by, slab, part, all, 0x80, objects[7]));
        slab->key -= STOOK_SLAB_KEY_SMALLER;
        assert_memory_equal(&before, stook_slab_part(slab, 0), sizeof(before));
        assert_true(stook_part_free_some(&by, slab, part, all, 0x80, objects[7]));
        set_flags(slab, 0, CLAIM);
        stook_lock_forbid_waits();
        stook_slab_settle_parts(slabs, slab, 1, false);
        stook_lock_allow_waits();
        expect(slab, 0, 0xff, LISTED);
        drain(8, 8);
}

/* The generation outlives a slab. */
static void test_generation(void **unused)
{
        struct stook_slab *slab = NULL;
        uint64_t was = 0;

        (void)unused;
        for (int life = 0; life < 5; life++) {
                fill(1);
                assert_true(!slab || slab_of(objects[0]) == slab);
                slab = slab_of(objects[0]);
                assert_true(!life || stook_slab_part(slab, 0)->lo >> 8 == was + 1);
                was = stook_slab_part(slab, 0)->lo >> 8;
                drain(0, 1);
                assert_int_equal(fake_spans_taken(), 0);
        }
}

/* ---- three parts ---- */

static void test_parts_new(void **unused)
{
        struct stook_slab *slab;
        uint64_t last;

        (void)unused;
        fill(70);
        slab = slab_of(objects[0]);
        last = (UINT64_C(1) << (slabs->objects - 128)) - 1;
        assert_int_equal(slab->part_count, 3);
        expect(slab, 0, 0, 0);
        expect(slab, 1, ~UINT64_C(0) << 6, LISTED);
        expect(slab, 2, last, LISTED);
        assert_int_equal(stook_slab_free_listed(slab), slabs->objects - 70);
        assert_int_equal(stook_slab_free_objects(slab), slabs->objects - 70);
        drain(0, 64); /* a part of its own is listed, the slab was */
        expect(slab, 0, ~UINT64_C(0), LISTED);
        assert_int_equal(counted(STOOK_STAT_free_add_partial), 0);
        assert_int_equal(slabs->node[0].partial, 1);
        drain(64, 6);
        assert_int_equal(fake_spans_taken(), 0);
}

/* 64 parts, more than one sum of bytes holds: all free, some free, none free. */
static void test_many_parts_counted(void **unused)
{
        struct stook_slabs *tiny = fake_source(4, 8, 8, false, NULL, NULL);
        static void *taken[STOOK_SLAB_OBJECTS_MAX];
        struct stook_slab *slab;
        uint32_t n = tiny->objects;

        (void)unused;
        assert_true(n > 2 * STOOK_COUNTS * STOOK_PART_OBJECTS);
        assert_int_equal(stook_slab_fill(tiny, 0, n, taken, STOOK_FILL_ASCENDING), n);
        slab = slab_of(taken[0]);
        assert_int_equal(stook_slab_free_listed(slab), 0);
        for (uint32_t i = 0; i < n; i += 3)
                stook_slab_drain(tiny, 1, &taken[i]);
        assert_int_equal(stook_slab_free_listed(slab), (n + 2) / 3);
        assert_int_equal(stook_slab_free_objects(slab), (n + 2) / 3);
        for (uint32_t i = 0; i < n; i++)
                if (i % 3)
                        stook_slab_drain(tiny, 1, &taken[i]);
        assert_int_equal(stook_slab_free_listed(slab), n);
        fake_source_end(tiny);
}

/* From full: part by part onto the list, and the last object of all releases the slab. */
static void test_parts_free(void **unused)
{
        struct stook_slab *slab;
        size_t n = slabs->objects;

        (void)unused;
        fill(n);
        slab = slab_of(objects[0]);
        assert_int_equal(slab->listed, 0);
        drain(n - 1, 1);
        assert_int_equal(slab->listed, 4);
        assert_int_equal(counted(STOOK_STAT_free_add_partial), 1);
        drain(64, 64);
        expect(slab, 1, ~UINT64_C(0), LISTED);
        drain(0, 63);
        drain(128, n - 129);
        assert_int_equal(slab->listed, 7);
        assert_int_equal(fake_spans_taken(), 1);
        drain(63, 1);
        assert_int_equal(counted(STOOK_STAT_free_remove_partial), 1);
        assert_int_equal(fake_spans_taken(), 0);
        fill(n); /* all at once: claims of three parts in one drain */
        drain(0, n);
        assert_int_equal(fake_spans_taken(), 0);
}

/*
 * S9 in a block: a free in a part that is mixed and stays so goes by the bits. It would be refused
 * if it looked at the flags.
 */
static void test_parts_free_some(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        fill(slabs->objects);
        slab = slab_of(objects[0]);
        drain(70, 1);
        expect(slab, 1, UINT64_C(1) << 6, LISTED);
        set_flags(slab, 1, LISTED | RELEASED);
        drain(72, 2);
        assert_true(stook_part_bits(slab, 1) == (UINT64_C(1) << 6 | UINT64_C(3) << 8));
        set_flags(slab, 1, LISTED);
        drain(0, 70); drain(71, 1); drain(74, slabs->objects - 74);
}

/* Of a free block: all bits are set, and each generation grows from life to life. */
static void test_block_waits(void **unused)
{
        uint64_t was[2] = { 0, 0 };

        (void)unused;
        for (int life = 0; life < 4; life++) {
                struct stook_pair *parts;

                fill(1);
                parts = stook_slab_parts(slab_of(objects[0]));
                for (unsigned p = 0; p < 2; p++) {
                        assert_true(parts[p].lo >> 8 > was[p]);
                        was[p] = parts[p].lo >> 8;
                }
                drain(0, 1);
                assert_int_equal(fake_spans_taken(), 0);
                for (unsigned p = 0; p < 3; p++)
                        assert_true(parts[p].hi == ~UINT64_C(0));
                assert_true(parts[1].lo >> 8 == was[0]);
        }
}

/* A free that is late finds the descriptor's word `parts` of another slab: no room for its part. */
static void test_no_room(void **unused)
{
        struct stook_slab *slab;
        uint64_t mask = 1;
        uintptr_t parts;

        (void)unused;
        fill(slabs->objects);
        slab = slab_of(objects[0]);
        drain(129, 1);
        parts = slab->parts;
        assert_true(stook_parts_have_room(parts, 2) && stook_parts_have_room(parts, 3));
        assert_false(stook_parts_have_room(parts, 4));
        slab->parts = parts - 1;                        /* as for two parts */
        assert_true(stook_parts_at(slab->parts) == stook_parts_at(parts));
        assert_int_equal(stook_part_free(slabs, slab, 2, &mask, objects[128]),
                         STOOK_FREE_NOT_LIVE);
        assert_true(stook_part_bits(slab, 2) == 2);
        /* Of no slab at all: 0, or a link to another span's descriptor. */
        for (unsigned p = 0; p < 3; p++) {
                assert_false(stook_parts_have_room(0, p));
                assert_false(stook_parts_have_room((uintptr_t)stook_slab_span(slab), p));
        }
        slab->parts = 0;
        mask = 2;
        assert_int_equal(stook_part_free(slabs, slab, 0, &mask, objects[1]), STOOK_FREE_NOT_LIVE);
        slab->parts = parts;
        drain(0, 129); drain(130, slabs->objects - 130);
}

/* S3: a slab is not released while another part of it is claimed; the last claim releases it. */
static void test_parts_release_waits_for_claims(void **unused)
{
        struct stook_slab *slab;
        size_t n = slabs->objects;
        uint64_t last = (UINT64_C(1) << (n - 128)) - 1;

        (void)unused;
        fill(n);
        slab = slab_of(objects[0]);
        lock();
        drain(0, 64); drain(64, 64); drain(128, n - 128);
        unlock();
        assert_int_equal(slab->pending, 7);
        assert_true(flags_of(slab, 0) == CLAIM && flags_of(slab, 1) == CLAIM &&
                    flags_of(slab, 2) == CLAIM);
        assert_int_equal(stook_part_settle(slab, 1, true), STOOK_SETTLED_LIST);
        assert_int_equal(stook_part_settle(slab, 0, true), STOOK_SETTLED_LIST);
        assert_false(stook_slab_retire(slab));
        set_flags(slab, 0, CLAIM);
        set_flags(slab, 1, CLAIM);
        stook_lock_try(&slabs->node[0].lock);
        stook_slab_unhold(&(struct stook_slab_hold){ .slabs = slabs, .node = &slabs->node[0] });
        assert_int_equal(fake_spans_taken(), 0);

        fill(1);
        slab = slab_of(objects[0]);
        stook_slab_part(slab, 0)->hi |= 1;
        for (unsigned p = 0; p < 3; p++) {              /* each part in turn is not as it must be */
                struct stook_pair part = *stook_slab_part(slab, p);

                stook_slab_part(slab, p)->hi ^= p == 2 ? (last + 1) >> 1 : UINT64_C(1) << 63;
                assert_false(stook_slab_retire(slab));
                *stook_slab_part(slab, p) = part;
                set_flags(slab, p, LISTED | CLAIM);
                assert_false(stook_slab_retire(slab));
                assert_true(stook_slab_empty_but_claim(slab, p));
                assert_false(stook_slab_empty_but_claim(slab, (p + 1) % 3));
                *stook_slab_part(slab, p) = part;
        }
        stook_slab_part(slab, 0)->hi &= ~UINT64_C(1);
        drain(0, 1);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                ONE(test_new_remainder_listed),
                ONE(test_take_all_is_full),
                ONE(test_free_to_full_lists_at_tail),
                ONE(test_free_to_listed_stays),
                ONE(test_empty_kept_then_surplus),
                ONE(test_settle),
                ONE(test_take),
                cmocka_unit_test(test_picked_bits),
                ONE(test_free_answers),
                ONE(test_free_some),
                ONE(test_generation),
                ONE(test_many_parts_counted),
                THREE(test_parts_new),
                THREE(test_parts_free),
                THREE(test_parts_free_some),
                THREE(test_block_waits),
                THREE(test_no_room),
                THREE(test_parts_release_waits_for_claims),
        };

        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
