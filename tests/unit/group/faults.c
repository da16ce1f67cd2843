/*
 * What this proves: bad arguments of groups are refused; a second put of a group, and an
 * overwritten word behind an object, are reported.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/group.h>
#include <stook/stook.h>

#include "report/report.h"

#define SIZE 200

static struct stook_cache *cache;       /* accounted */
static uint64_t slot;                   /* bytes an object is charged at */

static int set_up(void **state)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        (void)state;
        cache = stook_cache_create(
                "charged", SIZE,
                &(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args),
                                            .flags = STOOK_CACHE_ACCOUNT });
        assert_non_null(cache);
        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        slot = s.stride;
        assert_true(slot >= SIZE + 8 && stook_cache_object_size(cache) == SIZE);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        return 0;
}

static struct stook_group *group_of(struct stook_group *parent, uint64_t limit)
{
        struct stook_group *group = stook_group_create("g", parent, limit);

        assert_non_null(group);
        return group;
}

static void end(struct stook_group *group)
{
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_destroy(group);
}

static void bad_arguments_are_refused(void **state)
{
        struct stook_group *group = group_of(NULL, 0);
        struct stook_cache *plain = stook_cache_create("plain", SIZE, NULL);
        struct stook_group_stats s = { .stats_size = 8 };
        char name[65];
        void *object;

        (void)state;
        memset(name, 'n', 64);
        name[64] = 0;
        errno = 0;
        assert_null(stook_group_create(NULL, NULL, 0));
        assert_null(stook_group_create("", NULL, 0));
        assert_null(stook_group_create(name, NULL, 0));
        assert_int_equal(errno, EINVAL);
        assert_int_equal(stook_group_set_limit(NULL, 5), -EINVAL);
        assert_int_equal(stook_group_get_stats(group, &s), -EINVAL);
        assert_int_equal(stook_group_get_stats(NULL, &s), -EINVAL);
        errno = 0;
        assert_null(stook_cache_alloc_group(plain, 0, group));
        assert_int_equal(errno, EINVAL);
        errno = 0;
        assert_null(stook_cache_alloc_group(cache, 64, group));
        assert_int_equal(errno, EINVAL);
        stook_group_destroy(NULL);
        stook_group_enter(group);
        object = stook_cache_alloc(plain);
        assert_int_equal(stook_group_usage(group), 0);
        stook_cache_free(plain, object);
        stook_group_enter(NULL);
        assert_int_equal(stook_cache_destroy(plain), 0);
        end(group);
}

static unsigned reports, put_reports;

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        reports += report->fault == STOOK_FAULT_CORRUPT &&
                   strstr(report->text, "overwritten") != NULL;
        put_reports += report->fault == STOOK_FAULT_DOUBLE_FREE &&
                       strstr(report->text, "group that was destroyed") != NULL;
}

static void a_second_put_is_told(void **state)
{
        struct stook_group *group = group_of(NULL, 0);

        (void)state;
        stook_on_report(note, NULL);
        stook_report_set_policy(STOOK_ON_FAULT_LOG);
        stook_group_destroy(group);
        stook_group_destroy(group);
        stook_report_set_policy(STOOK_ON_FAULT_ABORT);
        stook_on_report(NULL, NULL);
        assert_int_equal(put_reports, 1);
        group = group_of(NULL, 0);
        end(group);
}

static void an_overwritten_word_is_told(void **state)
{
        struct stook_group *group = group_of(NULL, 0);
        void *object;

        (void)state;
        stook_on_report(note, NULL);
        stook_report_set_policy(STOOK_ON_FAULT_LOG);
        object = stook_cache_alloc_group(cache, STOOK_ALLOC_ZERO, group);
        memset(object, 0xff, slot);
        stook_cache_free(cache, object);
        stook_report_set_policy(STOOK_ON_FAULT_ABORT);
        stook_on_report(NULL, NULL);
        assert_int_equal(reports, 1);
        assert_int_equal(stook_group_usage(group), slot);       /* lost, as said */
        stook_group_destroy(group);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(bad_arguments_are_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_second_put_is_told, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_overwritten_word_is_told, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
