/*
 * Proves: figures go to no file but one of ours that STOOK_STATS names. Without the variable
 * nothing is done. A file that is relative, missing, foreign or short is refused and left alone.
 * Fakes: as in stats_page.c. Each test is a process of its own.
 */
#include "stat/counter.h"
#include "unit/inspect/stats_page_test.h"

static void body_unset(void)
{
        stats_variable = NULL;
        stook_stats_page_start();
        CHECK(!stook_stats_page_hook);
        stook_stats_page_tick();
        stook_stats_page_end();
        CHECK(taken() == 0);
}

static void test_nothing_without_the_variable(void **state)
{
        (void)state;
        in_process(body_unset);
}

static void body_below_proc(void)
{
        char link[64];

        /* Has a name: another process's by now. Not opened, and nothing is said. */
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)getpid(), file_fd);
        stats_variable = link;
        stook_stats_page_start();
        CHECK(taken() == 0 && refusals == 0);
        unlink(path);
        stook_stats_page_start();
        CHECK(taken() == 1 && refusals == 0);
}

static void test_below_proc(void **state)
{
        (void)state;
        in_process(body_below_proc);
}

static void body_relative(void)
{
        CHECK(!chdir("/tmp"));
        stats_variable = strrchr(path, '/') + 1;
        stook_stats_page_start();
        CHECK(refusals == 1 && !stook_stats_page_hook && taken() == 0);
}

static void body_missing(void)
{
        stats_variable = "/nonexistent/stook-stats";
        stook_stats_page_start();
        CHECK(refusals == 0 && !stook_stats_page_hook);
}

static void body_foreign(void)
{
        uint64_t magic = 1;

        CHECK(pwrite(file_fd, &magic, sizeof magic, 0) == sizeof magic);
        stook_stats_page_start();
        stook_stats_page_tick();
        stook_stats_page_end();
        CHECK(refusals == 1 && !stook_stats_page_hook && taken() == 0);
}

static void body_short(void)
{
        CHECK(!ftruncate(file_fd, 4096));
        stook_stats_page_start();
        CHECK(refusals == 1 && !stook_stats_page_hook && taken() == 0);
}

static void test_files_that_are_not_ours(void **state)
{
        (void)state;
        in_process(body_relative);
        in_process(body_missing);
        in_process(body_foreign);
        in_process(body_short);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_nothing_without_the_variable, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_below_proc, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_files_that_are_not_ours, set_up, tear_down),
        };

        make_heap();
        return cmocka_run_group_tests_name("files for figures", tests, NULL, NULL);
}
