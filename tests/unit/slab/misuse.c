/*
 * What this proves: what a drain refuses (slab_drain.c D1), by exact texts, and that it refuses no more than that:
 * the source is whole afterwards. An overwritten link is noticed when its list is walked, the slab is followed no
 * further and what is freed to it stays there (slab_fill.c F3). Words that a slab's earlier life left in its
 * objects are no links (slab_link.h L1).
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_pages.h"
#include "pages/pagemap.h"
#include "report/report.h"
#include "slab/slab_state.h"

static struct stook_slabs *slabs, *other;

static void expect(const char *format, const void *object, const void *base, const char *tail)
{
        char text[400];
        unsigned count;
        const char *got = fake_report(&count);

        snprintf(text, sizeof(text), format, (uintptr_t)object, (uintptr_t)base,
                 (size_t)((const char *)object - (const char *)base), tail);
        assert_string_equal(got, text);
        assert_int_equal(count, 1);
}

#define IN_SLAB ": pointer 0x%" PRIxPTR " (cache fake, slab 0x%" PRIxPTR " offset %zu)%s\n"

/* @object's bytes decode as a link of its slab. */
static bool has_link(const void *object)
{
        const struct stook_slab *slab = stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)object)));

        return stook_link_read(object, slabs->link_offset, slab->key) <= STOOK_PLACE_NONE;
}

static void *base_of(const void *object)
{
        return stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)object)))->base;
}

static int setup(void **unused)
{
        unsigned reports;

        (void)unused;
        fake_report(&reports);
        slabs = fake_source(1, 48, 8, false, NULL, NULL);
        other = fake_source(2, 48, 8, false, NULL, NULL);
        return 0;
}

static int teardown(void **unused)
{
        (void)unused;
        fake_source_end(slabs);
        fake_source_end(other);
        return 0;
}

/* Drains @n pointers that must all be refused but @good of them. */
static void drain(size_t n, void *const *objects)
{
        void *copy[64];

        memcpy(copy, objects, n * sizeof(*copy));
        stook_slab_drain(slabs, n, copy);
}

static void test_double_free_of_head(void **unused)
{
        void *o[3];

        (void)unused;
        stook_slab_fill(slabs, 0, 3, o, 0);
        drain(1, o);
        drain(1, o);
        expect("stook: double free" IN_SLAB, o[0], base_of(o[0]), "");
        assert_int_equal(stook_slabs_objects_out(slabs), 2);
        drain(2, o + 1);
}

static void test_double_free_deep_in_the_list(void **unused)
{
        void *o[40];

        (void)unused;
        stook_slab_fill(slabs, 0, 40, o, 0);
        drain(30, o);
        for (int i = 0; i < 30; i += 7) {
                drain(1, o + i);
                expect("stook: double free" IN_SLAB, o[i], base_of(o[i]), "");
        }
        assert_int_equal(stook_slabs_objects_out(slabs), 10);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drain(10, o + 30);
}

static void test_double_free_in_one_array(void **unused)
{
        void *o[4], *twice[6];

        (void)unused;
        stook_slab_fill(slabs, 0, 4, o, 0);
        memcpy(twice, o, sizeof(o));
        twice[4] = o[1];
        twice[5] = o[3];
        o[0] = o[1];
        drain(5, twice);
        expect("stook: double free" IN_SLAB, o[1], base_of(o[1]), "");
        assert_int_equal(stook_slabs_objects_out(slabs), 0);
}

/* Not when it was handed out again, not when the bytes a user wrote look like a link. */
static void test_no_false_alarm(void **unused)
{
        void *o[8];
        unsigned reports;

        (void)unused;
        for (int round = 0; round < 5; round++) {
                stook_slab_fill(slabs, 0, 8, o, 0);
                for (int i = 0; i < 8; i++)
                        assert_false(has_link(o[i]));   /* L2 */
                drain(8, o);
                assert_true(has_link(o[0]));
        }
        stook_slab_fill(slabs, 0, 8, o, 0);
        for (int i = 0; i < 8; i++)
                stook_link_write(o[i], slabs->link_offset, stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)o[i])))->key,
                                 (uint32_t)(((char *)o[7 - i] - (char *)base_of(o[i])) / 8));
        drain(8, o);
        fake_report(&reports);
        assert_int_equal(reports, 0);
        assert_int_equal(stook_slabs_validate(slabs), 0);
}

static void test_earlier_life(void **unused)
{
        void *o[60];
        unsigned reports;

        (void)unused;
        slabs->min_partial = 0;
        for (int round = 0; round < 20; round++) {
                stook_slab_fill(slabs, 0, 60, o, 0);
                for (int i = 0; i < 60; i++)
                        assert_false(has_link(o[i]));   /* L1 */
                drain(60, o);                           /* the slab goes; links stay in its pages */
                assert_int_equal(stook_slabs_count(slabs), 0);
        }
        fake_report(&reports);
        assert_int_equal(reports, 0);
}

static void test_wrong_cache(void **unused)
{
        void *o[2];

        (void)unused;
        stook_slab_fill(other, 0, 2, o, 0);
        drain(1, o);
        expect("stook: wrong cache" IN_SLAB, o[0], base_of(o[0]), "");
        assert_int_equal(stook_slabs_objects_out(other), 2);
        stook_slab_drain(other, 2, o);
}

static void test_interior(void **unused)
{
        void *o[2], *bad;

        (void)unused;
        stook_slab_fill(slabs, 0, 2, o, 0);
        for (int i = 1; i < 48; i++) {
                bad = (char *)o[1] + i;
                drain(1, &bad);
                expect("stook: interior pointer" IN_SLAB, bad, base_of(o[0]), "");
        }
        assert_int_equal(stook_slabs_objects_out(slabs), 2);
        drain(2, o);
}

static void test_never_handed_out(void **unused)
{
        void *o[2], *bad;

        (void)unused;
        stook_slab_fill(slabs, 0, 2, o, 0);
        bad = (char *)o[1] + 48;
        drain(1, &bad);
        expect("stook: pointer to no live object" IN_SLAB, bad, base_of(o[0]), ": never handed out");
        bad = (char *)base_of(o[0]) + (size_t)slabs->objects * 48;      /* behind the last one */
        drain(1, &bad);
        expect("stook: pointer to no live object" IN_SLAB, bad, base_of(o[0]), ": never handed out");
        drain(2, o);
}

static void test_never_handed_out_random(void **unused)
{
        struct stook_slabs *random = fake_source(5, 48, 8, true, NULL, NULL);
        void *o[100], *copy[100], *bad;
        bool out[1000] = { false };
        unsigned reports, refused = 0;
        char *base;

        (void)unused;
        stook_slab_fill(random, 0, 100, o, 0);
        base = base_of(o[0]);
        for (int i = 0; i < 100; i++)
                out[((char *)o[i] - base) / 48] = true;
        for (uint32_t i = 0; i < random->objects; i++) {
                bad = base + (size_t)i * 48;
                assert_int_equal(stook_slab_object_valid(random, bad), out[i]);
                if (out[i])
                        continue;
                stook_slab_drain(random, 1, &bad);
                fake_report(&reports);
                refused += reports;
        }
        assert_int_equal(refused, random->objects - 100);
        memcpy(copy, o, sizeof(o));
        stook_slab_drain(random, 100, copy);
        fake_source_end(random);
}

static void test_not_ours(void **unused)
{
        static char foreign[64];
        void *bad = foreign;

        (void)unused;
        drain(1, &bad);
        expect("stook: foreign pointer: pointer 0x%" PRIxPTR " (cache fake)\n", bad, NULL, "");
        bad = fake_arena + (size_t)FAKE_PAGE * (FAKE_PAGES - 1);
        drain(1, &bad);
        expect("stook: pointer to no live object: pointer 0x%" PRIxPTR " (cache fake)\n", bad, NULL, "");
}

/* Bad ones among good ones: only they are left out. */
static void test_mixed(void **unused)
{
        void *o[60], *bad[3];
        unsigned reports;

        (void)unused;
        stook_slab_fill(slabs, 0, 57, o, 0);
        bad[0] = (char *)o[3] + 8;
        bad[1] = o[0];
        bad[2] = (char *)o[56] + 48;
        memcpy(o + 57, bad, sizeof(bad));
        drain(60, o);
        fake_report(&reports);
        assert_int_equal(reports, 3);
        assert_int_equal(stook_slabs_objects_out(slabs), 0);
}

static void test_overwritten_link(void **unused)
{
        struct stook_slabs *victim = fake_source(6, 64, 8, false, NULL, NULL);
        void *o[100], *again[100];
        char *base;

        (void)unused;
        stook_slab_fill(victim, 0, 100, o, 0);
        base = base_of(o[0]);
        stook_slab_drain(victim, 10, memcpy(again, o, sizeof(o)));
        memset(o[5], 0x55, 64);                         /* written after the free; o[9] is the list's head */
        assert_int_equal(stook_slab_fill(victim, 0, 3, again, 0), 3);
        assert_ptr_equal(again[0], o[9]);
        /* the walk comes to it: nothing of this slab, ever again */
        assert_int_equal(stook_slab_fill(victim, 0, 10, again + 3, 0), 10);
        expect("stook: corrupted" IN_SLAB, o[5], base, ": the link in a free object was overwritten");
        for (int i = 3; i < 13; i++)
                assert_ptr_not_equal(base_of(again[i]), base);
        assert_int_equal(stook_slabs_count(victim), 2);
        stook_slab_drain(victim, 3, again);             /* left alone there, without a word */
        stook_slab_drain(victim, 10, again + 3);
        assert_int_equal(stook_slabs_validate(victim), 0);
        assert_int_equal(stook_slabs_shrink(victim), 1);
}

static void test_validate_finds(void **unused)
{
        struct stook_slabs *victim = fake_source(8, 64, 8, false, NULL, NULL);
        struct stook_slab *slab;
        void *o[20], *copy[20];
        uint64_t word, link;

        (void)unused;
        stook_slab_fill(victim, 0, 20, o, 0);
        slab = stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)o[0])));
        stook_slab_drain(victim, 10, memcpy(copy, o, sizeof(o)));
        assert_int_equal(stook_slabs_validate(victim), 0);
        link = *(uint64_t *)((char *)o[5] + victim->link_offset);
        *(uint64_t *)((char *)o[5] + victim->link_offset) ^= 1u << 20;
        assert_int_equal(stook_slabs_validate(victim), 1);
        stook_link_write(o[5], victim->link_offset, slab->key, 8 * 15 + 1);     /* no object's start */
        assert_int_equal(stook_slabs_validate(victim), 1);
        stook_link_write(o[5], victim->link_offset, slab->key, 8 * 30);         /* never handed out */
        assert_int_equal(stook_slabs_validate(victim), 1);
        stook_link_write(o[5], victim->link_offset, slab->key, 8 * 9);          /* a circle */
        assert_int_equal(stook_slabs_validate(victim), 1);
        *(uint64_t *)((char *)o[5] + victim->link_offset) = link;
        assert_int_equal(stook_slabs_validate(victim), 0);
        word = slab->word;
        slab->word += 1 << 16;                          /* one more in use than are */
        assert_int_equal(stook_slabs_validate(victim), 1);
        slab->word = word ^ STOOK_SLAB_LISTED;
        assert_true(stook_slabs_validate(victim) >= 2); /* no list; and the list has it */
        slab->word = word;
        victim->node[0].partial++;
        assert_int_equal(stook_slabs_validate(victim), 1);
        victim->node[0].partial--;
        stook_slab_drain(victim, 10, o + 10);
        fake_source_end(victim);
}

struct seen {
        void *object[64];
        size_t n;
};

static void see(void *object, void *slab, void *data)
{
        struct seen *seen = data;

        assert_ptr_equal(slab, base_of(object));
        seen->object[seen->n++] = object;
}

static void test_for_each_out(void **unused)
{
        struct stook_slabs *tiny = fake_source(9, 8, 8, false, NULL, NULL);     /* more objects than one window */
        static void *o[4096];
        struct seen seen = { .n = 0 };

        (void)unused;
        assert_int_equal(tiny->objects, 4096);
        stook_slab_fill(tiny, 0, 4096, o, 0);
        stook_slab_drain(tiny, 4095, o + 1);
        stook_slabs_for_each_out(tiny, see, &seen);
        assert_int_equal(seen.n, 1);
        assert_ptr_equal(seen.object[0], o[0]);
        stook_slab_drain(tiny, 1, o);
        seen.n = 0;
        stook_slab_fill(tiny, 0, 40, o, 0);
        stook_slab_drain(tiny, 10, o + 5);
        stook_slabs_for_each_out(tiny, see, &seen);
        assert_int_equal(seen.n, 30);
        stook_slab_drain(tiny, 5, o);
        stook_slab_drain(tiny, 25, o + 15);
        fake_source_end(tiny);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        static const struct CMUnitTest tests[] = {
                TEST(test_double_free_of_head),
                TEST(test_double_free_deep_in_the_list),
                TEST(test_double_free_in_one_array),
                TEST(test_no_false_alarm),
                TEST(test_earlier_life),
                TEST(test_wrong_cache),
                TEST(test_interior),
                TEST(test_never_handed_out),
                TEST(test_never_handed_out_random),
                TEST(test_not_ours),
                TEST(test_mixed),
                TEST(test_for_each_out),
                TEST(test_validate_finds),
                TEST(test_overwritten_link),    /* last: its source keeps a slab */
        };

        fake_start();
        stook_report_set_policy(STOOK_ON_FAULT_REPORT);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
