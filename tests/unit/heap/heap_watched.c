/*
 * What this proves, of heaps whose caches and large objects have debug modes: red zones, states and
 * tracks are those of other objects. What ends with its heap is looked at as by a free. An object
 * of a heap that nothing leads to is no leak, and what it leads to is none.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "off_by.h"

static unsigned reports;
static enum stook_fault last_fault;

static void on_report(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        last_fault = report->fault;
}

static int begin(void **state)
{
        (void)state;
        reports = 0;
        last_fault = 0;
        stook_on_report(on_report, NULL);
        return 0;
}

static const size_t sizes[] = { 1, 100, 5000, 60000 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void requested_sizes_are_known(void **state)
{
        struct stook_heap *heap = stook_heap_create("watched", NULL);

        (void)state;
        for (size_t i = 0; i < SIZES; i++) {
                void *object = stook_heap_alloc(heap, sizes[i]);
                void *aligned = stook_heap_aligned_alloc(heap, 256, sizes[i]);

                assert_int_equal(stook_usable_size(object), sizes[i]);
                assert_int_equal(off_by(aligned, 256), 0);
                object = stook_heap_realloc(heap, object, 3 * sizes[i]);
                assert_int_equal(stook_usable_size(object), 3 * sizes[i]);
                assert_ptr_equal(stook_heap_of(object), heap);
                memset(object, 1, 3 * sizes[i]);
                memset(aligned, 1, sizes[i]);
        }
        assert_int_equal(stook_heap_destroy(heap), 0);
        assert_int_equal(reports, 0);
}

static void an_overrun_is_found_by_a_free(void **state)
{
        struct stook_heap *heap = stook_heap_create("watched", NULL);

        (void)state;
        for (size_t i = 0; i < SIZES; i++) {
                char *object = stook_heap_alloc(heap, sizes[i]);

                *(volatile char *)(object + sizes[i]) = 1;
                stook_heap_free(heap, object);
                assert_int_equal(reports, i + 1);
                assert_int_equal(last_fault, STOOK_FAULT_OVERRUN);
        }
        assert_int_equal(stook_heap_destroy(heap), 0);
        assert_int_equal(stook_validate_all(), 0);
}

static void an_overrun_is_found_by_the_heap_s_end(void **state)
{
        struct stook_heap *heap = stook_heap_create("watched", NULL);

        (void)state;
        for (size_t i = 0; i < SIZES; i++) {
                char *object = stook_heap_alloc(heap, sizes[i]);

                memset(stook_heap_alloc(heap, sizes[i]), 1, sizes[i]);
                *(volatile char *)(object + sizes[i]) = 1;
        }
        assert_int_equal(stook_heap_reset(heap), 0);
        assert_int_equal(reports, SIZES);
        assert_int_equal(last_fault, STOOK_FAULT_OVERRUN);
        for (size_t i = 0; i < SIZES; i++)
                memset(stook_heap_alloc(heap, sizes[i]), 1, sizes[i]);
        assert_int_equal(stook_heap_destroy(heap), 0);
        assert_int_equal(reports, SIZES);
        assert_int_equal(stook_validate_all(), 0);
}

/* Freed ones wait in a quarantine, where there is one, when the heap ends. */
static void what_was_freed_before_is_not_freed_again(void **state)
{
        struct stook_heap *heap = stook_heap_create("watched", NULL);
        struct stook_heap_stats stats = { .stats_size = sizeof(stats) };

        (void)state;
        for (unsigned round = 0; round < 20; round++)
                for (size_t i = 0; i < SIZES; i++) {
                        void *object = stook_heap_alloc(heap, sizes[i]);

                        assert_non_null(stook_heap_calloc(heap, sizes[i], 1));
                        stook_heap_free(heap, object);
                }
        assert_int_equal(stook_heap_reset(heap), 0);
        assert_int_equal(stook_heap_get_stats(heap, &stats), 0);
        assert_int_equal(stats.bytes, 0);
        assert_int_equal(stook_heap_destroy(heap), 0);
        assert_int_equal(reports, 0);
        assert_int_equal(stook_validate_all(), 0);
}

static void *volatile hidden;           /* by its complement: no pointer to the search */

/* Its own frame, whose words are gone afterwards. */
static __attribute__((noinline)) void lose(struct stook_heap *heap, size_t size)
{
        void *volatile *of_heap = stook_heap_alloc(heap, size);

        *of_heap = stook_malloc(200);
        hidden = (void *)~(uintptr_t)stook_malloc(300);
}

static __attribute__((noinline)) void clear_stack(void)
{
        volatile char bytes[16384];

        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = 0;
}

static void a_heap_s_objects_are_no_leaks(void **state)
{
        struct stook_heap *heap = stook_heap_create("watched", NULL);
        long before = stook_leak_check(), found;

        (void)state;
        assert_true(before >= 0);
        lose(heap, 100);
        lose(heap, 100000);
        clear_stack();
        found = stook_leak_check();
        /* What is hidden was lost twice; of the rest the heap's objects lead to all. */
        assert_int_equal(found - before, 2);
        assert_int_equal(stook_heap_destroy(heap), 0);
        found = stook_leak_check();
        assert_int_equal(found - before, 4);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(requested_sizes_are_known, begin),
                cmocka_unit_test_setup(an_overrun_is_found_by_a_free, begin),
                cmocka_unit_test_setup(an_overrun_is_found_by_the_heap_s_end, begin),
                cmocka_unit_test_setup(what_was_freed_before_is_not_freed_again, begin),
                cmocka_unit_test_setup(a_heap_s_objects_are_no_leaks, begin),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
