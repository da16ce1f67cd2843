/*
 * What this proves: where reports of misuse do not abort, realloc of what is no live object is
 * reported once, does nothing, and says so: NULL with errno EINVAL (likewise an aligned one, and a
 * growth in place, which is false), for a freed object (in place,
 * by copy, a large one), one that was never handed out, the inside of one, and a pointer that is
 * not ours. Run with STOOK_ON_FAULT=report.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>
#include "one_cpu.h"

static unsigned reports;
static enum stook_fault last;
static const void *about;               /* the pointer of the last one */

static void on_report(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        last = report->fault;
        about = report->object;
}

static void *volatile hidden;           /* from compilers, which know what free and realloc do */

static void refused(void *object, size_t size, enum stook_fault fault)
{
        hidden = object;
        reports = 0;
        errno = 0;
        assert_null(stook_realloc(hidden, size));
        assert_int_equal(errno, EINVAL);
        assert_int_equal(reports, 1);
        assert_int_equal(last, fault);
        assert_ptr_equal(about, object);
        errno = 0;
        assert_null(stook_aligned_realloc(hidden, 64, size));
        assert_int_equal(errno, EINVAL);
        assert_int_equal(reports, 2);
        assert_int_equal(last, fault);
        assert_ptr_equal(about, object);
        about = NULL;
        assert_false(stook_try_expand(hidden, size));
        assert_int_equal(reports, 3);
        assert_int_equal(last, fault);
        assert_ptr_equal(about, object);
}

static uint64_t live(void)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };
        static const char *const classes[] = { "malloc-112", "malloc-1024", "malloc-32" };
        uint64_t n = 0;

        for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
                struct stook_cache *cache = stook_cache_find(classes[i]);

                if (!cache)
                        continue;               /* made when it is used first */
                assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
                n += stats.objects_live;
        }
        return n;
}

static void a_freed_object(void **state)
{
        static const size_t sizes[] = { 100, 112, 60, 1000, 20 };
        uint64_t before;
        char *object;

        (void)state;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                object = stook_malloc(100);
                assert_non_null(object);
                hidden = object;
                stook_free(hidden);
                before = live();
                refused(object, sizes[i], STOOK_FAULT_DOUBLE_FREE);
                assert_int_equal(live(), before);
                /* Once it is live again all is well. */
                assert_ptr_equal(stook_malloc(100), object);
                hidden = stook_realloc(object, sizes[i]);
                assert_non_null(hidden);
                stook_free(hidden);
        }
}

static void a_freed_large_object(void **state)
{
        void *object = stook_malloc(1 << 20);

        (void)state;
        hidden = object;
        stook_free(hidden);
        refused(object, 2 << 20, STOOK_FAULT_NOT_LIVE);
        refused(object, 100, STOOK_FAULT_NOT_LIVE);
}

static void what_never_was_one(void **state)
{
        struct stook_cache *cache = stook_cache_create("slab", 64, NULL);
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };
        char *object = stook_cache_alloc(cache), here[64];

        (void)state;
        assert_non_null(object);
        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        refused(object + (stats.objects_per_slab - 1) * 64, 200, STOOK_FAULT_NOT_LIVE);
        refused(object + 8, 200, STOOK_FAULT_INTERIOR);
        refused(here, 200, STOOK_FAULT_FOREIGN);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_freed_object),
                cmocka_unit_test(a_freed_large_object),
                cmocka_unit_test(what_never_was_one),
        };

        stay_on_one_cpu();
        stook_on_report(on_report, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
