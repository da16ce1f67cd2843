/*
 * What this proves: each fault that debug modes look for is found, once, where it shows first; the
 * process goes on; and the object is never handed out again. Some of these are the expectations of
 * the kernel's own test of its slab debugging.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "pages/pagemap.h"
#include "report/report.h"

#define SIZE 64
#define FZPU (STOOK_CACHE_CHECK | STOOK_CACHE_RED_ZONE | STOOK_CACHE_POISON | \
              STOOK_CACHE_STORE_USER)

/* ---- reports ---- */

static unsigned reports;
static enum stook_fault last_fault;
static const void *last_object;

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        last_fault = report->fault;
        last_object = report->object;
}

/* One report since the last call of this. */
static void expect(enum stook_fault fault, const void *object)
{
        assert_int_equal(reports, 1);
        assert_int_equal(last_fault, fault);
        assert_ptr_equal(last_object, object);
        reports = 0;
}

static int setup(void **state)
{
        (void)state;
        stook_on_report(note, NULL);
        stook_report_set_policy(STOOK_ON_FAULT_ISOLATE);
        return 0;
}

static struct stook_cache *create_of(size_t size, uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };
        struct stook_cache *cache = stook_cache_create("faulty", size, &args);

        assert_non_null(cache);
        reports = 0;
        return cache;
}

static struct stook_cache *create(uint64_t flags)
{
        return create_of(SIZE, flags);
}

/* @object is out for good: of many allocations none is it. The cache ends all the same. */
static void end_without(struct stook_cache *cache, const void *object)
{
        void *objects[300];

        assert_int_equal(reports, 0);
        for (int i = 0; i < 300; i++) {
                assert_non_null(objects[i] = stook_cache_alloc(cache));
                assert_ptr_not_equal(objects[i], object);
        }
        for (int i = 0; i < 300; i++)
                stook_cache_free(cache, objects[i]);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(reports, 0);
}

/* ---- around a live object ---- */

/* Of any size: the red zone begins with the byte behind the object, not with the next word. */
static void an_overrun_by_one_byte(void **state)
{
        (void)state;
        for (size_t size = SIZE - 8; size <= SIZE; size++) {
                struct stook_cache *cache = create_of(size, STOOK_CACHE_RED_ZONE);
                char *object = stook_cache_alloc(cache);

                object[size] = 0;
                assert_int_equal(stook_cache_validate(cache), 1);
                expect(STOOK_FAULT_OVERRUN, object);
                stook_cache_free(cache, object);
                expect(STOOK_FAULT_OVERRUN, object);
                end_without(cache, object);
        }
}

static void an_overrun_of_a_free_object(void **state)
{
        (void)state;
        for (size_t size = SIZE - 8; size <= SIZE; size++) {
                struct stook_cache *cache = create_of(size, STOOK_CACHE_RED_ZONE);
                char *object = stook_cache_alloc(cache);

                stook_cache_free(cache, object);
                object[size] = 0;
                assert_int_equal(stook_cache_validate(cache), 1);
                expect(STOOK_FAULT_OVERRUN, object);
                object[size] = (char)0xbb;
                assert_int_equal(stook_cache_destroy(cache), 0);
        }
}

/* Over the red zone, the state and the red zone of the next object, which is at fault as well. */
static void a_long_overrun(void **state)
{
        struct stook_cache *cache = create(FZPU);
        char *object = stook_cache_alloc(cache), *next = stook_cache_alloc(cache);
        char *low = object < next ? object : next, *high = object < next ? next : object;

        (void)state;
        memset(low, 0, (size_t)(high - low));
        assert_int_equal(stook_cache_validate(cache), 2);
        reports = 0;
        stook_cache_free(cache, low);
        expect(STOOK_FAULT_OVERRUN, low);
        stook_cache_free(cache, high);
        expect(STOOK_FAULT_UNDERRUN, high);
        end_without(cache, low);
}

/* The one whose state was overwritten is freed first: the report is of the one that overran. */
static void a_long_overrun_found_by_the_next_object(void **state)
{
        struct stook_cache *cache = create(FZPU);
        char *object = stook_cache_alloc(cache), *next = stook_cache_alloc(cache);
        char *low = object < next ? object : next, *high = object < next ? next : object;

        (void)state;
        memset(low, 0, (size_t)(high - low));
        stook_cache_free(cache, high);
        expect(STOOK_FAULT_OVERRUN, low);
        stook_cache_free(cache, low);
        expect(STOOK_FAULT_OVERRUN, low);
        end_without(cache, high);
}

static void an_underrun_by_one_byte(void **state)
{
        struct stook_cache *cache = create(STOOK_CACHE_RED_ZONE);
        char *object = stook_cache_alloc(cache);

        (void)state;
        object[-1] = 0;
        assert_int_equal(stook_cache_validate(cache), 1);
        expect(STOOK_FAULT_UNDERRUN, object);
        stook_cache_free(cache, object);
        expect(STOOK_FAULT_UNDERRUN, object);
        end_without(cache, object);
}

/* The words that other layers have behind an object belong to no user either. */
static void an_overrun_into_hidden_words(void **state)
{
        static const uint64_t flags[] = { STOOK_CACHE_ACCOUNT, STOOK_CACHE_RCU,
                                          STOOK_CACHE_RCU | STOOK_CACHE_ACCOUNT };

        (void)state;
        for (int i = 0; i < 3; i++) {
                struct stook_cache *cache = create(STOOK_CACHE_RED_ZONE | flags[i]);
                char *object = stook_cache_alloc(cache);

                object[SIZE] ^= 1;
                stook_cache_free(cache, object);
                expect(STOOK_FAULT_OVERRUN, object);
                end_without(cache, object);
        }
}

/* ---- free objects ---- */

static void a_write_after_free(void **state)
{
        static const int offsets[] = { 0, 1, 50, SIZE - 1 };

        (void)state;
        for (int i = 0; i < 4; i++) {
                struct stook_cache *cache = create(FZPU);
                char *object = stook_cache_alloc(cache);

                stook_cache_free(cache, object);
                object[offsets[i]] ^= 1;
                assert_int_equal(stook_cache_validate(cache), 1);
                expect(STOOK_FAULT_WRITE_AFTER_FREE, object);
                assert_ptr_not_equal(stook_cache_alloc_nolock(cache), object);
                expect(STOOK_FAULT_WRITE_AFTER_FREE, object);
                object[offsets[i]] ^= 1;                /* too late */
                assert_int_equal(stook_cache_destroy(cache), -EBUSY);
                reports = 0;
        }
}

static void a_write_behind_a_free_object(void **state)
{
        struct stook_cache *cache = create(FZPU);
        char *object = stook_cache_alloc(cache);

        (void)state;
        stook_cache_free(cache, object);
        object[SIZE] = 0;
        stook_cache_free(cache, stook_cache_alloc(cache));
        expect(STOOK_FAULT_OVERRUN, object);
        end_without(cache, object);
}

static void a_write_to_an_object_in_quarantine(void **state)
{
        struct stook_cache *cache = create(FZPU | STOOK_CACHE_QUARANTINE);
        char *object = stook_cache_alloc(cache);

        (void)state;
        stook_cache_free(cache, object);
        for (int i = 0; i < 50; i++) {          /* it is not handed out meanwhile */
                char *other = stook_cache_alloc(cache);

                assert_ptr_not_equal(other, object);
                stook_cache_free(cache, other);
        }
        object[7] = 0;
        assert_int_equal(stook_cache_destroy(cache), 0);        /* all leave */
        expect(STOOK_FAULT_WRITE_AFTER_FREE, object);
}

/* It was never handed out, and cannot be refused: the caller gets another one. */
static void a_write_to_an_object_of_a_prefilled_sheaf(void **state)
{
        struct stook_cache *cache = create(FZPU);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 3);
        char *object, *wrong;

        (void)state;
        assert_non_null(object = stook_sheaf_alloc(cache, sheaf));
        wrong = *((void **)((char *)sheaf + STOOK_SHEAF_OBJECTS) + 1);
        wrong[3] = 0;
        assert_int_equal(stook_cache_validate(cache), 1);
        expect(STOOK_FAULT_WRITE_AFTER_FREE, wrong);
        stook_cache_free(cache, object);
        assert_non_null(object = stook_sheaf_alloc(cache, sheaf));
        expect(STOOK_FAULT_WRITE_AFTER_FREE, wrong);
        assert_ptr_not_equal(object, wrong);
        stook_cache_free(cache, object);
        stook_sheaf_return(cache, sheaf);
        end_without(cache, wrong);
}

/* ---- frees ---- */

static void a_double_free_in_every_position(void **state)
{
        struct stook_cache *cache = create(FZPU);
        void *objects[100];

        (void)state;
        for (int i = 0; i < 100; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (int i = 0; i < 100; i++)
                stook_cache_free(cache, objects[i]);
        for (int i = 0; i < 100; i++) {
                stook_cache_free(cache, objects[i]);
                expect(STOOK_FAULT_DOUBLE_FREE, objects[i]);
                stook_cache_free_bulk(NULL, 1, &(void *){ objects[i] });
                expect(STOOK_FAULT_DOUBLE_FREE, objects[i]);
                assert_int_equal(stook_cache_free_rcu(cache, objects[i]), -EINVAL);
                expect(STOOK_FAULT_DOUBLE_FREE, objects[i]);
        }
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void a_double_free_of_an_object_in_quarantine(void **state)
{
        struct stook_cache *cache = create(STOOK_CACHE_QUARANTINE);
        void *object = stook_cache_alloc(cache);

        (void)state;
        stook_cache_free(cache, object);
        stook_cache_free_nolock(cache, object);
        expect(STOOK_FAULT_DOUBLE_FREE, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void a_free_of_an_object_that_was_never_handed_out(void **state)
{
        struct stook_cache *cache = create(FZPU);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 2);
        void *inside = *(void **)((char *)sheaf + STOOK_SHEAF_OBJECTS);
        char *object = stook_sheaf_alloc(cache, sheaf);
        size_t stride = cache->slabs.stride;
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        char *first = object - stook_entry_offset(entry, (uintptr_t)object);

        (void)state;
        stook_cache_free(cache, inside);
        expect(STOOK_FAULT_DOUBLE_FREE, inside);
        stook_cache_free(cache, first);                 /* it is kept back for ever */
        assert_int_equal(reports, 1);
        reports = 0;
        stook_cache_free(cache, first + 50 * stride);
        assert_int_equal(reports, 1);
        reports = 0;
        stook_cache_free(cache, object + 8);
        expect(STOOK_FAULT_INTERIOR, object + 8);
        stook_cache_free(cache, object);
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void a_free_to_another_cache(void **state)
{
        struct stook_cache *cache = create(FZPU), *other = create(FZPU);
        void *object = stook_cache_alloc(cache);

        (void)state;
        stook_cache_free(other, object);
        expect(STOOK_FAULT_WRONG_CACHE, object);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_cache_destroy(other), 0);
}

static void a_free_with_another_size(void **state)
{
        struct stook_cache *cache = create(STOOK_CACHE_CHECK);
        void *object = stook_cache_alloc(cache), *good = stook_cache_alloc(cache);

        (void)state;
        stook_free_sized(good, SIZE);
        assert_int_equal(reports, 0);
        stook_free_sized(object, SIZE + 1);
        /* Only malloc's frees that miss look at sizes; the cache is found by the object. */
        expect(STOOK_FAULT_WRONG_SIZE, object);
        end_without(cache, object);
}

/* ---- the end ---- */

static void objects_left(void **state)
{
        struct stook_cache *cache = create(FZPU | STOOK_CACHE_QUARANTINE);
        void *object = stook_cache_alloc(cache);

        (void)state;
        stook_cache_free(cache, stook_cache_alloc(cache));      /* no one's fault */
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        assert_int_equal(reports, 2);                           /* the object, and how many */
        assert_int_equal(last_fault, STOOK_FAULT_OBJECTS_LEFT);
        reports = 0;
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_overrun_by_one_byte),
                cmocka_unit_test(an_overrun_of_a_free_object),
                cmocka_unit_test(a_long_overrun),
                cmocka_unit_test(a_long_overrun_found_by_the_next_object),
                cmocka_unit_test(an_underrun_by_one_byte),
                cmocka_unit_test(an_overrun_into_hidden_words),
                cmocka_unit_test(a_write_after_free),
                cmocka_unit_test(a_write_behind_a_free_object),
                cmocka_unit_test(a_write_to_an_object_in_quarantine),
                cmocka_unit_test(a_write_to_an_object_of_a_prefilled_sheaf),
                cmocka_unit_test(a_double_free_in_every_position),
                cmocka_unit_test(a_double_free_of_an_object_in_quarantine),
                cmocka_unit_test(a_free_of_an_object_that_was_never_handed_out),
                cmocka_unit_test(a_free_to_another_cache),
                cmocka_unit_test(a_free_with_another_size),
                cmocka_unit_test(objects_left),
        };

        return cmocka_run_group_tests(tests, setup, NULL);
}
