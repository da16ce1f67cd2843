/*
 * What this proves: what a drain refuses (slab_drain.c D1), by exact texts, and that it refuses no
 * more. All else in the array is freed, and the slabs are whole afterwards. A free that comes after
 * its slab is gone changes nothing, whatever the descriptor serves by then (slab_state.h S6, S7).
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

#define TWICE ": it is free in its slab already, or was never handed out"
#define IN_SLAB ": pointer 0x%" PRIxPTR " (cache fake, slab 0x%" PRIxPTR " offset %zu)%s\n"

static void *base_of(const void *object)
{
        return stook_slab_base(
                stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)object))));
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

static void test_double_free(void **unused)
{
        void *o[3];

        (void)unused;
        stook_slab_fill(slabs, 0, 3, o, 0);
        drain(1, o);
        drain(1, o);
        expect("stook: double free" IN_SLAB, o[0], base_of(o[0]), TWICE);
        assert_int_equal(stook_slabs_objects_out(slabs), 2);
        drain(2, o + 1);
}

static void test_double_free_of_many(void **unused)
{
        void *o[40];

        (void)unused;
        stook_slab_fill(slabs, 0, 40, o, 0);
        drain(30, o);
        for (int i = 0; i < 30; i += 7) {
                drain(1, o + i);
                expect("stook: double free" IN_SLAB, o[i], base_of(o[i]), TWICE);
        }
        assert_int_equal(stook_slabs_objects_out(slabs), 10);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drain(10, o + 30);
}

/*
 * In slabs that have their parts in their descriptors, where most frees change the bits alone: the
 * good one of a group is freed, whether the part had free objects before or not.
 */
static void test_double_free_near(void **unused)
{
        struct stook_slabs *near = fake_source(5, 2000, 8, false, NULL, NULL);
        void *o[10], *twice[2], *one;
        unsigned reports;

        (void)unused;
        assert_in_range(near->objects, 11, 128);
        near->min_partial = 0;
        stook_slab_fill(near, 0, 10, o, 0);
        for (int i = 0; i < 8; i += 2) {
                one = o[i];
                stook_slab_drain(near, 1, &one);
                twice[0] = o[i + 1];
                twice[1] = o[i];
                stook_slab_drain(near, 2, twice);
                expect("stook: double free" IN_SLAB, o[i], base_of(o[9]), TWICE);
                assert_int_equal(stook_slabs_objects_out(near), (size_t)(8 - i));
                assert_int_equal(stook_slabs_validate(near), 0);
        }
        stook_slab_drain(near, 2, o + 8);
        fake_report(&reports);
        assert_int_equal(reports, 0);
        assert_int_equal(stook_slabs_count(near), 0);
        fake_source_end(near);
}

static void test_double_free_in_one_array(void **unused)
{
        void *o[4], *twice[6];

        (void)unused;
        stook_slab_fill(slabs, 0, 4, o, 0);
        memcpy(twice, o, sizeof(o));
        twice[4] = o[1];
        drain(5, twice);
        expect("stook: double free" IN_SLAB, o[1], base_of(o[1]), TWICE);
        assert_int_equal(stook_slabs_objects_out(slabs), 0);
}

/*
 * Objects of two slabs in turn: none follows another one of its part. The first of each finds its
 * slab full, the last leaves it empty, and a stranger among them changes nothing.
 */
static void test_parts_in_turn(void **unused)
{
        struct stook_slabs *near = fake_source(5, 2000, 8, false, NULL, NULL);
        void *o[128], *turn[129], *base;
        size_t each = near->objects, n = 0;
        unsigned reports;

        (void)unused;
        assert_in_range(each, 2, 64);
        near->min_partial = 0;
        assert_int_equal(stook_slab_fill(near, 0, 2 * each, o, 0), 2 * each);
        for (size_t i = 0; i < each - 1; i++) {
                turn[n++] = o[i];
                turn[n++] = o[each + i];
                if (i == 0)
                        turn[n++] = (char *)o[0] + 1;
        }
        stook_slab_drain(near, n, turn);
        fake_report(&reports);
        assert_int_equal(reports, 1);
        assert_int_equal(stook_slabs_objects_out(near), 2);
        assert_int_equal(stook_slabs_validate(near), 0);
        assert_int_equal(stook_slabs_count(near), 2);
        base = base_of(o[0]);
        turn[0] = o[each - 1];
        turn[1] = o[0];                                         /* free already */
        turn[2] = o[2 * each - 1];
        stook_slab_drain(near, 3, turn);
        expect("stook: double free" IN_SLAB, o[0], base, TWICE);
        assert_int_equal(stook_slabs_objects_out(near), 0);
        assert_int_equal(stook_slabs_count(near), 0);
        fake_source_end(near);
}

/* Two that are none of the cache's, one behind the other, are each refused. */
static void test_strangers_side_by_side(void **unused)
{
        void *o[2], *bad[4];
        unsigned reports;

        (void)unused;
        stook_slab_fill(slabs, 0, 2, o, 0);
        bad[0] = (char *)o[0] + 1;
        bad[1] = (char *)o[0] + 2;
        bad[2] = o[1];
        bad[3] = fake_arena - 1;
        drain(4, bad);
        fake_report(&reports);
        assert_int_equal(reports, 3);
        assert_int_equal(stook_slabs_objects_out(slabs), 1);
        drain(1, o);
}

/* A slab of which only the object that is kept back is at home is full: a free must list it. */
static void test_full_with_one_kept_back(void **unused)
{
        struct stook_slabs *near = fake_source(5, 2000, 8, false, NULL, NULL);
        void *o[128];
        size_t n;

        (void)unused;
        near->kept_first = 1;
        n = near->objects - (size_t)1;
        assert_in_range(n, 2, 63);
        assert_int_equal(stook_slab_fill(near, 0, n, o, 0), n);
        assert_int_equal(near->node[0].partial, 0);
        stook_slab_drain(near, 1, o);
        assert_int_equal(near->node[0].partial, 1);
        assert_int_equal(stook_slabs_validate(near), 0);
        stook_slab_drain(near, n - 1, o + 1);
        fake_source_end(near);
}

/*
 * The second free of an object comes when the group with the first is in its slab already: objects
 * of many slabs lie in between.
 */
static void test_double_free_far_apart(void **unused)
{
        enum { SLABS = 40 };
        static void *o[SLABS * 1024], *gone[SLABS * 3 + 1];
        unsigned reports;
        size_t each = slabs->objects, n = 0;

        (void)unused;
        slabs->min_partial = 100;
        assert_true(each <= 1024);
        assert_int_equal(stook_slab_fill(slabs, 0, SLABS * each, o, 0), SLABS * each);
        for (size_t at = 0; at < 3; at++)
                for (size_t i = 0; i < SLABS; i++)
                        gone[n++] = o[i * each + at * 100];
        gone[n++] = o[100];
        stook_slab_drain(slabs, n, gone);
        expect("stook: double free" IN_SLAB, o[100], base_of(o[100]), TWICE);
        assert_int_equal(stook_slabs_objects_out(slabs), SLABS * each - SLABS * 3);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        stook_slab_drain(slabs, SLABS * each, o); /* those are free already: each is reported */
        fake_report(&reports);
        assert_int_equal(reports, SLABS * 3);
}

/* Not when it was handed out again. */
static void test_no_false_alarm(void **unused)
{
        void *o[8];
        unsigned reports;

        (void)unused;
        for (int round = 0; round < 5; round++) {
                stook_slab_fill(slabs, 0, 8, o, 0);
                drain(8, o);
        }
        fake_report(&reports);
        assert_int_equal(reports, 0);
}

/* The slab went; then its pages serve another cache's slab, and its descriptor another span. */
static void test_slab_is_gone(void **unused)
{
        void *o[60], *p[1];

        (void)unused;
        slabs->min_partial = 0;
        stook_slab_fill(slabs, 0, 60, o, 0);
        drain(60, o);
        assert_int_equal(stook_slabs_count(slabs), 0);
        drain(1, o);
        expect("stook: pointer to no live object: pointer 0x%" PRIxPTR " (cache fake)\n", o[0],
               NULL, "");
        stook_slab_fill(other, 0, 1, p, 0);
        assert_ptr_equal(p[0], o[0]);
        drain(1, o);
        expect("stook: wrong cache" IN_SLAB, o[0], base_of(o[0]), "");
        assert_int_equal(stook_slabs_objects_out(other), 1);
        stook_slab_drain(other, 1, p);
}

/*
 * In one run of one array, but in another group: all slabs want the same place in the table of
 * groups. The slab must not go before the second one was refused: claims are settled when all
 * groups of the run were put.
 */
static void test_twice_in_two_groups(void **unused)
{
        struct stook_slabs *large = fake_source(6, 131072, 8, false, NULL, NULL);
        size_t n = large->objects * (size_t)9;
        void *o[64];
        char *base;
        unsigned reports;

        (void)unused;
        large->min_partial = 0;
        assert_true(n < 20);
        assert_int_equal(stook_slab_fill(large, 0, n, o, 0), n);
        base = base_of(o[0]);
        o[n++] = o[0];
        stook_slab_drain(large, n, o);
        expect("stook: double free" IN_SLAB, o[0], base, TWICE);
        assert_int_equal(stook_slabs_count(large), 0);
        fake_report(&reports);
        fake_source_end(large);
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
        expect("stook: double free" IN_SLAB, bad, base_of(o[0]), TWICE);
        assert_int_equal(stook_slabs_objects_out(slabs), 2);
        drain(2, o);
}

/*
 * Behind the last object: in a slab of the usual size, and in a smaller one, where others would
 * have had one.
 */
static void test_behind_the_last(void **unused)
{
        struct stook_slabs *large = fake_source(5, 1000, 8, false, NULL, NULL);
        void *o[2], *bad;

        (void)unused;
        stook_slab_fill(slabs, 0, 2, o, 0);
        bad = (char *)base_of(o[0]) + (size_t)slabs->objects * 48;
        drain(1, &bad);
        expect("stook: interior pointer" IN_SLAB, bad, base_of(o[0]),
               ": it is behind the slab's last object");
        assert_false(stook_slab_object_out(slabs, bad));
        drain(2, o);
        fake_take_max = 4096;
        assert_int_equal(stook_slab_fill(large, 0, 2, o, 0), 2);
        fake_take_max = 0;
        bad = (char *)base_of(o[0]) + 4 * 1000;         /* its page is the slab's, its end is not */
        stook_slab_drain(large, 1, &bad);
        expect("stook: interior pointer" IN_SLAB, bad, base_of(o[0]),
               ": it is behind the slab's last object");
        stook_slab_drain(large, 2, o);
        fake_source_end(large);
}

static void test_never_handed_out_random(void **unused)
{
        struct stook_slabs *random = fake_source(5, 48, 8, true, NULL, NULL);
        void *o[100], *copy[100], *bad;
        bool out[1400] = { false };
        unsigned reports, refused = 0;
        char *base;

        (void)unused;
        stook_slab_fill(random, 0, 100, o, 0);
        base = base_of(o[0]);
        for (int i = 0; i < 100; i++)
                out[((char *)o[i] - base) / 48] = true;
        for (uint32_t i = 0; i < random->objects; i++) {
                bad = base + (size_t)i * 48;
                assert_int_equal(stook_slab_object_out(random, bad), out[i]);
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
        expect("stook: foreign pointer: pointer 0x%" PRIxPTR
               " (cache fake): no memory of this library\n", bad, NULL, "");
        bad = fake_arena + (size_t)FAKE_PAGE * (FAKE_PAGES - 1);
        drain(1, &bad);
        expect("stook: pointer to no live object: pointer 0x%" PRIxPTR " (cache fake)\n", bad, NULL,
               "");
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        static const struct CMUnitTest tests[] = {
                TEST(test_double_free),
                TEST(test_double_free_of_many),
                TEST(test_double_free_near),
                TEST(test_double_free_in_one_array),
                TEST(test_no_false_alarm),
                TEST(test_parts_in_turn),
                TEST(test_strangers_side_by_side),
                TEST(test_full_with_one_kept_back),
                TEST(test_double_free_far_apart),
                TEST(test_slab_is_gone),
                TEST(test_twice_in_two_groups),
                TEST(test_behind_the_last),
                TEST(test_wrong_cache),
                TEST(test_interior),
                TEST(test_never_handed_out),
                TEST(test_never_handed_out_random),
                TEST(test_not_ours),
                TEST(test_mixed),
        };

        fake_start();
        stook_report_set_policy(STOOK_ON_FAULT_LOG);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
