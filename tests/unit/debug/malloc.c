/*
 * What this proves: malloc under debug modes. The bytes that were asked for are what may be used,
 * and one byte more is found, for every way to allocate and to change the size. Run once for each
 * set of modes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/debug.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "malloc/malloc.h"
#include "off_by.h"
#include "report/report.h"
#include "watch/watch.h"

static unsigned reports;
static enum stook_fault last_fault;

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        last_fault = report->fault;
}

static int setup(void **state)
{
        (void)state;
        stook_on_report(note, NULL);
        stook_report_set_policy(STOOK_ON_FAULT_ISOLATE);
        return stook_malloc_is_watched ? 0 : -1;
}

static void expect(enum stook_fault fault)
{
        assert_int_equal(reports, 1);
        assert_int_equal(last_fault, fault);
        reports = 0;
}

static uint64_t modes_of(const void *object)
{
        return stook_cache_debug(stook_object_cache(object))->flags;
}

static void usable_is_what_was_asked_for(void **state)
{
        (void)state;
        for (size_t size = 0; size <= STOOK_CLASS_MAX; size += size / 7 + 1) {
                char *object = stook_malloc(size);

                assert_non_null(object);
                assert_true(stook_owns(object));
                assert_int_equal(stook_usable_size(object), size);
                assert_int_equal(off_by(object, 16), 0);
                memset(object, 1, size);
                stook_free(object);
        }
        assert_int_equal(reports, 0);
}

static void zeroed_objects(void **state)
{
        (void)state;
        for (size_t size = 1; size <= 32 << 10; size += size / 3 + 1) {
                char *object = stook_calloc(1, size);

                for (size_t i = 0; i < size; i++)
                        assert_int_equal(object[i], 0);
                assert_int_equal(stook_usable_size(object), size);
                stook_free(object);
        }
        assert_int_equal(reports, 0);
}

static void aligned_objects(void **state)
{
        (void)state;
        for (size_t align = 8; align <= 4096; align *= 2)
                for (size_t size = 1; size < 9000; size += 611) {
                        char *object = stook_aligned_alloc(align, size);

                        assert_int_equal(off_by(object, align), 0);
                        assert_int_equal(stook_usable_size(object), size);
                        memset(object, 1, size);
                        stook_free_aligned_sized(object, align, size);
                }
        assert_int_equal(reports, 0);
}

static void another_size(void **state)
{
        unsigned char *object = NULL;
        size_t had = 0;

        (void)state;
        for (size_t i = 0; i < 400; i++) {
                size_t size = (i * 7919) % 5000;

                assert_non_null(object = stook_realloc(object, size));
                assert_int_equal(stook_usable_size(object), size);
                for (size_t k = 0; k < had && k < size; k++)
                        assert_int_equal(object[k], 0x42);
                memset(object, 0x42, size);
                had = size;
        }
        stook_free(object);
        assert_int_equal(reports, 0);
}

static void an_overrun_by_one_byte(void **state)
{
        static const size_t sizes[] = { 0, 1, 15, 16, 17, 100, 1000, 5000, 131072 };

        (void)state;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                size_t size = sizes[i];
                char *objects[] = {
                        stook_malloc(size), stook_malloc(size), stook_aligned_alloc(64, size),
                        stook_realloc(stook_malloc(size / 2 + 1), size),
                };

                if (!(modes_of(objects[0]) & STOOK_CACHE_RED_ZONE))
                        skip();
                for (int k = 0; k < 4; k++)
                        objects[k][size] ^= 1;
                stook_free(objects[0]);
                expect(STOOK_FAULT_OVERRUN);
                stook_free_nolock(objects[1]);
                expect(STOOK_FAULT_OVERRUN);
                stook_free(objects[2]);
                expect(STOOK_FAULT_OVERRUN);
                errno = 0;
                assert_null(stook_realloc(objects[3], size));
                assert_int_equal(errno, EINVAL);
                expect(STOOK_FAULT_OVERRUN);
        }
}

static void frees_of_what_is_free(void **state)
{
        char *object = stook_malloc(40);

        (void)state;
        stook_free(object);
        stook_free(object);
        expect(STOOK_FAULT_DOUBLE_FREE);
        assert_null(stook_realloc(object, 30));
        assert_int_equal(reports, 1);           /* of what is in its slab it is "no live object" */
        reports = 0;
        assert_int_equal(stook_usable_size(object), 0);
        stook_free_sized(object = stook_malloc(40), 40);
        assert_int_equal(reports, 0);
        object = stook_malloc(40);
        if (!(modes_of(object) & STOOK_CACHE_CHECK))
                skip();
        stook_free_sized(object, 48);
        expect(STOOK_FAULT_WRONG_SIZE);
}

/* Of any size: it is at most that large from then on, wherever it lies. */
static void shrinking_without_memory(void **state)
{
        static const size_t sizes[][2] = {
                { 1000, 100 }, { 40000, 530 }, { 200000, 530 }, { 5000000, 140000 },
        };

        const struct stook_fail_terms all = {
                .terms_size = sizeof(all), .interval = 1, .probability = 100, .times = -1,
        };

        (void)state;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                char *object = stook_malloc(sizes[i][0]);
                size_t size = sizes[i][1];

                assert_non_null(object);
                assert_int_equal(stook_set_fail(&all), 0);
                object = stook_realloc(object, size);
                assert_int_equal(stook_set_fail(NULL), 0);
                assert_non_null(object);
                assert_int_equal(stook_usable_size(object), size);
                memset(object, 1, size);
                stook_free_sized(object, size);
        }
        assert_int_equal(reports, 0);
}

static void objects_of_groups(void **state)
{
        struct stook_group *group = stook_group_create("debugged", NULL, 1 << 20), *before;
        char *object;

        (void)state;
        assert_non_null(group);
        before = stook_group_enter(group);
        for (size_t size = 1; size < 3000; size += 131) {
                assert_non_null(object = stook_malloc(size));
                assert_int_equal(stook_usable_size(object), size);
                memset(object, 1, size);
                assert_non_null(object = stook_realloc(object, size + 9));
                assert_true(stook_group_usage(group) > size);
                stook_free(object);
        }
        assert_non_null(object = stook_malloc(20));
        stook_group_enter(before);
        if (modes_of(object) & STOOK_CACHE_RED_ZONE) {
                object[20] ^= 1;
                stook_free(object);
                expect(STOOK_FAULT_OVERRUN);
        } else {
                stook_free(object);
        }
        assert_int_equal(reports, 0);
        stook_group_destroy(group);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(usable_is_what_was_asked_for),
                cmocka_unit_test(zeroed_objects),
                cmocka_unit_test(aligned_objects),
                cmocka_unit_test(another_size),
                cmocka_unit_test(an_overrun_by_one_byte),
                cmocka_unit_test(frees_of_what_is_free),
                cmocka_unit_test(shrinking_without_memory),
                cmocka_unit_test(objects_of_groups),
        };

        return cmocka_run_group_tests(tests, setup, NULL);
}
