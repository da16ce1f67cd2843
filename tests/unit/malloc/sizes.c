/*
 * Proves malloc's calls beyond the C library's: a good size is what an object gets, and wastes
 * nothing, in a group too; an object says what it got; growth in place keeps the object and is
 * charged; an aligned object keeps its content and its alignment at every step; n objects or none.
 * Each is refused where it must be. (For what is no live object: misuse.c.) With a debug mode and
 * with guards sizes are what was asked for.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "off_by.h"

#define MIB ((size_t)1 << 20)

/* Not known to the compiler, or it warns of what is tested here. */
static volatile size_t too_large = (size_t)PTRDIFF_MAX + 1;
static bool watched;                    /* by a debug mode, or large objects have guards */

static void check_good(size_t size)
{
        size_t good = stook_good_size(size);
        void *object = stook_malloc(size), *other = stook_malloc(good);

        assert_true(good >= size);
        assert_int_equal(stook_good_size(good), good);
        if (!getenv("STOOK_DEBUG"))
                assert_int_equal(stook_usable_size(object), good);
        assert_int_equal(stook_usable_size(other), good);
        stook_free(object);
        stook_free(other);
}

static void check_all_good(void)
{
        for (size_t size = 0; size < 40 * MIB; size += 1 + size / 29)
                check_good(size);
        for (size_t size = 128 << 10; size <= 32 * MIB; size *= 2)
                for (size_t off = 0; off < 3; off++)
                        check_good(size + off - 1);
        check_good(0);
}

static void test_good_sizes(void **state)
{
        (void)state;
        check_all_good();
        assert_true(stook_good_size(0) >= 1);
        assert_int_equal(stook_good_size(too_large), too_large);
}

static void test_at_least(void **state)
{
        size_t got = 7;
        char *object;

        (void)state;
        for (size_t size = 0; size < 3 * MIB; size += 1 + size / 5) {
                assert_non_null(object = stook_malloc_at_least(size, &got));
                assert_true(got >= size);
                assert_int_equal(got, stook_usable_size(object));
                memset(object, 1, got);
                stook_free(object);
        }
        assert_non_null(object = stook_malloc_at_least(100, NULL));
        stook_free(object);
        got = 7;
        errno = 0;
        assert_null(stook_malloc_at_least(too_large, &got));
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(got, 7);
}

static void test_expand(void **state)
{
        char *object = stook_malloc(100);
        size_t usable = stook_usable_size(object);

        (void)state;
        assert_false(stook_try_expand(NULL, 1));
        assert_true(stook_try_expand(object, 1));
        assert_true(stook_try_expand(object, usable));
        assert_false(stook_try_expand(object, usable + 1));
        assert_false(stook_try_expand(object, too_large));
        assert_int_equal(stook_usable_size(object), usable);
        stook_free(object);

        /* The last of two large ones grows into what the first leaves behind it, or not at all. */
        char *first = stook_malloc(MIB), *second = stook_malloc(MIB);

        if (first > second) {
                object = first;
                first = second;
                second = object;
        }
        usable = stook_usable_size(first);
        memset(first, 3, usable);
        if (first + usable == second) {
                assert_false(stook_try_expand(first, usable + 1));
                stook_free(second);
                second = NULL;
                assert_int_equal(stook_try_expand(first, usable + 1), !watched);
                assert_true(watched || stook_usable_size(first) > usable);
                assert_int_equal(first[usable - 1], 3);
        } else {
                assert_true(watched);           /* guards, or red zones, lie between them */
                assert_false(stook_try_expand(first, 2 * usable));
        }
        assert_false(stook_try_expand(first, too_large));
        stook_free(first);
        stook_free(second);
}

static void test_aligned(void **state)
{
        static const size_t sizes[] = { 100, 90, 700, 5000, 5001, 140000, 600000, 3 * MIB, MIB,
                                        700000, 60000, 900, 0, 1 };

        (void)state;
        for (size_t align = 1; align <= 1 << 16; align *= 4) {
                unsigned char *object = NULL;
                size_t before = 0;

                for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                        object = stook_aligned_realloc(object, align, sizes[i]);
                        assert_non_null(object);
                        assert_int_equal(off_by(object, align), 0);
                        assert_true(stook_usable_size(object) >= sizes[i]);
                        for (size_t k = 0; k < before && k < sizes[i]; k += 1 + k / 3)
                                assert_int_equal(object[k], (unsigned char)(k * 7));
                        for (size_t k = 0; k < sizes[i]; k++)
                                object[k] = (unsigned char)(k * 7);
                        before = sizes[i];
                }
                stook_free(object);
        }
        /* An object that never had the alignment gets it. Few have it by chance. */
        char *object, *others[64];
        size_t n = 0;

        while (!off_by(object = stook_malloc(100), 4096)) {
                assert_true(n < 64);
                others[n++] = object;
        }
        stook_free_bulk(n, (void **)others);
        object = stook_aligned_realloc(strcpy(object, "kept"), 4096, 100);
        assert_int_equal(off_by(object, 4096), 0);
        assert_string_equal(object, "kept");
        for (size_t align = 0; align < 49; align += 12) {
                errno = 0;
                assert_null(stook_aligned_realloc(object, align, 200));
                assert_int_equal(errno, EINVAL);
        }
        for (size_t align = 1; align <= 1 << 16; align *= 16) {
                errno = 0;
                assert_null(stook_aligned_realloc(object, align, too_large));
                assert_int_equal(errno, ENOMEM);
                assert_string_equal(object, "kept");
        }
        stook_free(object);
}

static void check_bulk(size_t size, size_t n)
{
        void **objects = calloc(n, sizeof(*objects));
        struct stook_totals before = { .totals_size = sizeof(before) }, after = before;

        assert_int_equal(stook_get_totals(&before), 0);
        assert_int_equal(stook_malloc_bulk(size, n, objects), 0);
        for (size_t i = 0; i < n; i++) {
                assert_true(stook_usable_size(objects[i]) >= size);
                memset(objects[i], (int)i, size);
        }
        for (size_t i = 0; i < n && size; i++)
                assert_int_equal(*(unsigned char *)objects[i], (unsigned char)i);
        assert_int_equal(stook_get_totals(&after), 0);
        assert_int_equal(after.objects_live, before.objects_live + n);
        stook_free_bulk(n, objects);
        assert_int_equal(stook_get_totals(&after), 0);
        if (!getenv("STOOK_DEBUG"))             /* there they wait in a quarantine */
                assert_int_equal(after.objects_live, before.objects_live);
        free(objects);
}

static void test_bulk(void **state)
{
        void *mixed[3] = { stook_malloc(10), stook_malloc(MIB), stook_malloc(2000) };

        (void)state;
        check_bulk(0, 100);
        check_bulk(100, 1);
        check_bulk(100, 5000);
        check_bulk(100000, 100);
        check_bulk(MIB, 5);
        stook_free_bulk(3, mixed);
        stook_free_bulk(0, NULL);
        assert_int_equal(stook_malloc_bulk(1, 0, NULL), 0);
        assert_int_equal(stook_malloc_bulk(1, 1, NULL), -EINVAL);
        errno = 7;
        assert_int_equal(stook_malloc_bulk(too_large, 2, mixed), -ENOMEM);
        assert_int_equal(stook_malloc_bulk(1, SIZE_MAX, mixed), -ENOMEM);
        assert_int_equal(errno, 7);
}

/* The last: malloc's hot paths are off from here on. */
static void test_group(void **state)
{
        struct stook_group *group = stook_group_create("sizes", NULL, 8 * MIB);
        void *objects[64];
        char *object;
        uint64_t usage;
        size_t usable;

        (void)state;
        assert_non_null(group);
        stook_group_enter(group);
        for (size_t size = 0; size < 3 * MIB; size += 1 + size / 19)
                check_good(size);
        assert_int_equal(stook_malloc_bulk(1000, 64, objects), 0);
        usage = stook_group_usage(group);
        assert_true(usage >= 64 * 1000);
        stook_free_bulk(64, objects);
        assert_true(getenv("STOOK_DEBUG") || stook_group_usage(group) + 64 * 1000 <= usage);
        /* Not all of them fit: none is kept. */
        usage = stook_group_usage(group);
        assert_int_equal(stook_malloc_bulk(MIB, 20, objects), -ENOMEM);
        assert_true(getenv("STOOK_DEBUG") || stook_group_usage(group) == usage);
        /* What grows in place is charged, and refused where that is too much. */
        assert_non_null(object = stook_malloc(MIB));
        usable = stook_usable_size(object);
        usage = stook_group_usage(group);
        if (stook_try_expand(object, usable + 1))
                assert_int_equal(stook_group_usage(group) - usage,
                                 stook_usable_size(object) - usable);
        else
                assert_int_equal(stook_group_usage(group), usage);
        usage = stook_group_usage(group);
        stook_group_set_limit(group, usage);
        usable = stook_usable_size(object);
        assert_false(stook_try_expand(object, usable + 1));
        assert_int_equal(stook_usable_size(object), usable);
        assert_int_equal(stook_group_usage(group), usage);
        stook_free(object);
        stook_group_enter(NULL);
        stook_group_destroy(group);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_good_sizes),
                cmocka_unit_test(test_at_least),
                cmocka_unit_test(test_expand),
                cmocka_unit_test(test_aligned),
                cmocka_unit_test(test_bulk),
                cmocka_unit_test(test_group),
        };

        watched = getenv("STOOK_DEBUG") || getenv("STOOK_HARDEN");
        return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
