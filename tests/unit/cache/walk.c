/*
 * What this proves: in a callback of stook_cache_for_each, every call that takes the list of caches
 * is refused and reported, instead of waiting for itself; allocation and statistics work there; and
 * all is well after the walk. Beside it: validation of a cache that another visitor does not leave
 * is refused, too.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"

static unsigned reports;
static struct stook_cache *mine;

static void on_report(const struct stook_report *report, void *data)
{
        (void)data;
        assert_int_equal(report->fault, STOOK_FAULT_DEADLOCK);
        assert_non_null(strstr(report->text, "that must not take the list of caches"));
        reports++;
}

static int each(struct stook_cache *cache, void *count)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };
        struct stook_tuning tuning = { sizeof(tuning), 8, 0, 0 };
        void *object = stook_cache_alloc(mine), *other = stook_malloc(777);
        struct stook_group *none;

        ++*(unsigned *)count;
        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        assert_non_null(object);
        assert_non_null(other); /* the first of its class: it has no cache yet */
        stook_cache_free(mine, object);
        stook_free(other);

        reports = 0;
        assert_int_equal(stook_cache_shrink(cache), -EDEADLK);
        assert_int_equal(stook_cache_tune(cache, &tuning), -EDEADLK);
        assert_int_equal(stook_cache_reserve(cache, 1), -EDEADLK);
        assert_int_equal(stook_cache_validate(cache), -EDEADLK);
        assert_int_equal(stook_cache_destroy(mine), -EDEADLK);
        assert_int_equal(stook_cache_for_each(each, count), -EDEADLK);
        assert_int_equal(stook_trim(0), 0);
        errno = 0;
        assert_null(stook_cache_create("another", 64, NULL));
        assert_int_equal(errno, EDEADLK);
        errno = 0;
        assert_null(stook_cache_find("mine"));
        assert_int_equal(errno, EDEADLK);
        errno = 0;
        none = stook_group_create("first", NULL, 0);
        assert_null(none);
        assert_int_equal(errno, EDEADLK);
        assert_int_equal(reports, 10);
        return 0;
}

static void calls_that_would_wait_for_the_walk_are_refused(void **state)
{
        struct stook_tuning tuning = { sizeof(tuning), 8, 0, 0 };
        struct stook_group *group;
        unsigned count = 0;

        (void)state;
        mine = stook_cache_create("mine", 64, NULL);
        assert_non_null(mine);
        stook_on_report(on_report, NULL);
        assert_int_equal(stook_cache_for_each(each, &count), 0);
        assert_true(count > 0);
        stook_on_report(NULL, NULL);

        assert_ptr_equal(stook_cache_find("mine"), mine);
        assert_int_equal(stook_cache_tune(mine, &tuning), 0);
        assert_true(stook_cache_shrink(mine) >= 0);
        assert_int_equal(stook_cache_reserve(mine, 1), 0);
        assert_int_equal(stook_cache_validate(mine), 0);
        stook_trim(0);
        group = stook_group_create("first", NULL, 0);
        assert_non_null(group);
        stook_group_destroy(group);
        assert_int_equal(stook_cache_destroy(mine), 0);
}

static void a_cache_with_a_visitor_is_not_validated(void **state)
{
        struct stook_cache *cache = stook_cache_create("visited", 64, NULL);

        (void)state;
        assert_non_null(cache);
        assert_true(stook_barns_visit_begin(&cache->barns));
        assert_int_equal(stook_cache_validate(cache), -EBUSY);
        assert_true(stook_barns_visit_begin(&cache->barns));          /* they are open */
        stook_barns_visit_end(&cache->barns);
        stook_barns_visit_end(&cache->barns);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(calls_that_would_wait_for_the_walk_are_refused),
                cmocka_unit_test(a_cache_with_a_visitor_is_not_validated),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
