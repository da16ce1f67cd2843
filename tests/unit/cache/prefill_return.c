/*
 * What this proves, of the return of prefilled sheaves (<stook/sheaf.h>): a sheaf is returned with
 * any number of objects, by any thread, and in a child of a fork. Misuse is reported, and so is a
 * sheaf on loan at destroy; nothing is lost by either.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/cache/lent.h"
#include "report/report.h"

/*
 * {any main, a spare that is neither full nor empty}: what only a return leaves. Misses must live
 * with it.
 */
static void a_partly_filled_spare_is_used_up_and_filled(void **state)
{
        (void)state;
        for (unsigned left = 0; left <= CAPACITY; left++) {
                struct stook_cache *cache = cache_of("partly", NULL);
                struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, CAPACITY);
                void *taken[CAPACITY], *many[MANY];

                take(cache, sheaf, CAPACITY - left, taken);
                stook_sheaf_return(cache, sheaf);
                for (int i = 0; i < MANY; i++)
                        assert_non_null(many[i] = stook_cache_alloc(cache));
                stook_cache_free_bulk(cache, CAPACITY - left, taken);
                sheaf = stook_sheaf_prefill(cache, 0, CAPACITY);
                take(cache, sheaf, CAPACITY - left, taken);
                stook_sheaf_return(cache, sheaf);
                for (int i = 0; i < MANY; i++)
                        stook_cache_free(cache, many[i]);
                assert_int_equal(stats_of(cache).objects_live, CAPACITY - left);
                for (unsigned i = 0; i < CAPACITY - left; i++)
                        stook_cache_free(cache, taken[i]);
                assert_int_equal(stats_of(cache).objects_live, 0);
                gone(cache);
        }
}

static unsigned reports;
static enum stook_fault told;
static char told_text[300], sum_text[300];       /* of the last report; of the last sum */

static void on_report(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        told = report->fault;
        strncpy(told_text, report->text, sizeof(told_text) - 1);
        if (strstr(report->text, "still allocated"))
                strncpy(sum_text, report->text, sizeof(sum_text) - 1);
}

static void misuse_is_reported_and_loses_nothing(void **state)
{
        struct stook_cache *cache = cache_of("misused", NULL), *other = cache_of("elsewhere", NULL);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 3);
        void *object;

        (void)state;
        stook_on_report(on_report, NULL);
        stook_report_set_policy(STOOK_ON_FAULT_LOG);
        reports = 0;
        stook_sheaf_return(other, sheaf);
        assert_int_equal(reports, 1);
        assert_int_equal(told, STOOK_FAULT_WRONG_CACHE);
        assert_non_null(strstr(told_text, "prefilled sheaf of cache misused"));
        assert_int_equal(stook_sheaf_available(sheaf), CAPACITY);       /* on loan as before */
        assert_non_null(object = stook_sheaf_alloc(cache, sheaf));
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(reports, 1);
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(reports, 2);
        assert_int_equal(told, STOOK_FAULT_DOUBLE_FREE);
        assert_non_null(strstr(told_text, "returned before"));
        stook_report_set_policy(STOOK_ON_FAULT_ABORT);
        stook_on_report(NULL, NULL);
        stook_cache_free(cache, object);
        gone(cache);
        gone(other);
}

static void a_loan_at_destroy_is_reported_and_the_cache_kept(void **state)
{
        struct stook_cache *cache = cache_of("lent", NULL);
        struct stook_sheaf *full = stook_sheaf_prefill(cache, 0, 3),
                           *empty = stook_sheaf_prefill(cache, 0, 200);
        static void *objects[200];

        (void)state;
        take(cache, empty, 200, objects);
        stook_on_report(on_report, NULL);
        reports = 0;
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        assert_int_equal(reports, 1 + 17); /* the loan; the sum and sixteen objects */
        assert_non_null(strstr(sum_text, "200 still allocated"));
        stook_cache_free_bulk(cache, 200, objects);
        reports = 0;
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        assert_int_equal(reports, 1);
        assert_int_equal(told, STOOK_FAULT_OBJECTS_LEFT);
        assert_non_null(strstr(told_text,
                               "2 prefilled sheaves not returned at destroy, 64 objects in them"));
        stook_sheaf_return(cache, full);
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);   /* an empty one is a loan, too */
        assert_non_null(strstr(told_text,
                               "1 prefilled sheaf not returned at destroy, 0 objects in it"));
        assert_ptr_equal(stook_cache_find("lent"), cache);
        stook_sheaf_return(cache, empty);
        full = stook_sheaf_prefill(cache, 0, 3);                /* the cache works as ever */
        stook_sheaf_return(cache, full);
        reports = 0;
        gone(cache);
        assert_int_equal(reports, 0);
        stook_on_report(NULL, NULL);
}

static void *take_all_and_return(void *sheaf)
{
        struct stook_cache *cache = stook_cache_find("handed over");
        uintptr_t taken = 0;
        void *object;

        while ((object = stook_sheaf_alloc(cache, sheaf))) {
                memset(object, 1, 64);
                stook_cache_free(cache, object);
                taken++;
        }
        stook_sheaf_return(cache, sheaf);
        return (void *)taken;
}

static void a_sheaf_may_be_handed_to_another_thread(void **state)
{
        struct stook_cache *cache = cache_of("handed over", NULL);

        (void)state;
        for (int i = 0; i < 20; i++) {
                struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 1 + 10 * (size_t)i);
                size_t has = stook_sheaf_available(sheaf);
                pthread_t thread;
                void *taken;

                assert_int_equal(pthread_create(&thread, NULL, take_all_and_return, sheaf), 0);
                pthread_join(thread, &taken);
                assert_int_equal((uintptr_t)taken, has);
        }
        assert_int_equal(stats_of(cache).objects_live, 0);
        gone(cache);
}

/* The child's copy is its own: it takes and returns, and its heap is whole; so is the parent's. */
static void a_child_of_fork_has_the_sheaf_too(void **state)
{
        struct stook_cache *cache = cache_of("forked", NULL);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 100);
        pid_t child = fork();
        int status;

        (void)state;
        assert_true(child >= 0);
        for (int i = 0; i < 100; i++)
                stook_cache_free(cache, stook_sheaf_alloc(cache, sheaf));
        stook_sheaf_return(cache, sheaf);
        if (!child)
                _exit(stook_cache_validate(cache) || stook_cache_destroy(cache));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        gone(cache);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_partly_filled_spare_is_used_up_and_filled),
                cmocka_unit_test(misuse_is_reported_and_loses_nothing),
                cmocka_unit_test(a_loan_at_destroy_is_reported_and_the_cache_kept),
                cmocka_unit_test(a_sheaf_may_be_handed_to_another_thread),
                cmocka_unit_test(a_child_of_fork_has_the_sheaf_too),
        };

        return cmocka_run_group_tests(tests, stay_on_this_cpu, NULL);
}
