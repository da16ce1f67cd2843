/*
 * What this proves: every call of libstook answers NULL, and other arguments that are none, as its
 * header says. A call that tests for them returns the documented error and does nothing else. A
 * call of the hot path does not test. It ends the process at once, and does not go on with memory
 * that is not the caller's.
 * The list is complete: a call that libstook.sym exports and no test here names is a failure.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

/* Calls made so far, each by its name. */
static const char *seen[192];
static size_t seen_count;

static void note(const char *name)
{
        assert_true(seen_count < sizeof(seen) / sizeof(seen[0]));
        seen[seen_count++] = name;
}

/* Compilers warn of such constants. */
static volatile size_t no_align = 0, odd_align = 24, large_align = (size_t)1 << 63;

/* NAME(arguments...), noted. */
#define CALL(name, ...) (note(#name), name(__VA_ARGS__))

#define REFUSED(error, ...) \
        do { \
                errno = 0; \
                assert_null(__VA_ARGS__); \
                assert_int_equal(errno, error); \
        } while (0)

/* A dead end that no compiler sees through. */
static void *volatile nothing;

static unsigned reports;
static enum stook_fault last_fault;

static void on_report(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        last_fault = report->fault;
}

static struct stook_cache *a_cache(uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };
        struct stook_cache *cache = stook_cache_create("arguments", 64, &args);

        assert_non_null(cache);
        return cache;
}

static void caches(void **state)
{
        struct stook_cache *cache = a_cache(0);
        struct stook_tuning tuning = { sizeof(tuning), 0, 0, 0 };
        void *object, *none[2] = { NULL, NULL };

        (void)state;
        REFUSED(EINVAL, CALL(stook_cache_create, NULL, 64, NULL));
        assert_int_equal(CALL(stook_cache_destroy, NULL), 0);
        assert_int_equal(CALL(stook_cache_destroy_all, NULL, NULL, NULL), 0);
        assert_int_equal(CALL(stook_cache_for_each_object, NULL, NULL, NULL), -EINVAL);
        assert_int_equal(stook_cache_for_each_object(cache, NULL, NULL), -EINVAL);
        assert_null(CALL(stook_cache_find, NULL));
        REFUSED(EINVAL, CALL(stook_cache_zalloc, NULL));
        REFUSED(EINVAL, CALL(stook_cache_alloc_flags, NULL, 0));
        REFUSED(EINVAL, CALL(stook_cache_alloc_node, NULL, 0, -1));
        REFUSED(EINVAL, stook_cache_alloc_node(NULL, STOOK_ALLOC_THISNODE, 0));
        assert_int_equal(CALL(stook_cache_alloc_bulk, NULL, 0, 2, none), -EINVAL);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 2, NULL), -EINVAL);
        assert_int_equal(CALL(stook_cache_shrink, NULL), -EINVAL);
        assert_int_equal(CALL(stook_cache_tune, NULL, &tuning), -EINVAL);
        assert_int_equal(stook_cache_tune(cache, NULL), -EINVAL);
        assert_int_equal(CALL(stook_cache_set_limit, NULL, 1), -EINVAL);
        assert_int_equal(CALL(stook_cache_reserve, NULL, 1), -EINVAL);
        assert_int_equal(CALL(stook_object_node, NULL), -EINVAL);
        assert_int_equal(CALL(stook_cache_object_size, NULL), 0);
        assert_null(CALL(stook_object_cache, NULL));

        /* No pointers: nothing; NULL among them is no object, and told. */
        reports = 0;
        CALL(stook_cache_free_bulk, cache, 0, NULL);
        stook_cache_free_bulk(NULL, 0, NULL);
        CALL(stook_cache_free_bulk_nolock, cache, 0, NULL);
        stook_cache_free_bulk_nolock(NULL, 0, NULL);
        assert_int_equal(reports, 0);
        object = none[1] = stook_cache_alloc(cache);
        assert_non_null(object);
        stook_cache_free_bulk(cache, 2, none);
        assert_int_equal(reports, 1);
        assert_int_equal(last_fault, STOOK_FAULT_FOREIGN);
        none[0] = NULL;
        object = none[1] = stook_cache_alloc(cache);
        assert_non_null(object);
        stook_cache_free_bulk_nolock(cache, 2, none);
        assert_int_equal(reports, 2);
        assert_int_equal(last_fault, STOOK_FAULT_FOREIGN);

        stook_cache_free(cache, NULL);
        stook_cache_free_nolock(cache, NULL);
        assert_int_equal(reports, 2);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void sheaves(void **state)
{
        struct stook_cache *cache = a_cache(0);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 2), *none = NULL, *same = sheaf;

        (void)state;
        assert_non_null(sheaf);
        REFUSED(EINVAL, CALL(stook_sheaf_prefill, NULL, 0, 2));
        assert_int_equal(CALL(stook_sheaf_refill, NULL, 0, &same, 2), -EINVAL);
        assert_int_equal(stook_sheaf_refill(cache, 0, NULL, 2), -EINVAL);
        assert_int_equal(stook_sheaf_refill(cache, 0, &none, 2), -EINVAL);
        assert_null(none);
        assert_ptr_equal(same, sheaf);
        assert_int_equal(CALL(stook_sheaf_available, NULL), 0);
        reports = 0;
        CALL(stook_sheaf_return, NULL, NULL);
        stook_sheaf_return(cache, NULL);
        assert_int_equal(reports, 0);
        stook_sheaf_return(NULL, sheaf);
        assert_int_equal(reports, 1);
        assert_int_equal(last_fault, STOOK_FAULT_WRONG_CACHE);
        assert_true(stook_sheaf_available(sheaf) >= 2);         /* still the caller's */
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(reports, 1);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void groups(void **state)
{
        struct stook_cache *plain = a_cache(0), *cache = a_cache(STOOK_CACHE_ACCOUNT);
        struct stook_group_stats stats = { .stats_size = sizeof(stats) };
        struct stook_group *group = stook_group_create("g", NULL, 0);
        void *object;

        (void)state;
        assert_non_null(group);
        REFUSED(EINVAL, CALL(stook_group_create, NULL, NULL, 0));
        assert_null(CALL(stook_group_enter, NULL));
        assert_int_equal(CALL(stook_group_set_limit, NULL, 1), -EINVAL);
        assert_int_equal(CALL(stook_group_usage, NULL), 0);
        assert_int_equal(CALL(stook_group_get_stats, NULL, &stats), -EINVAL);
        assert_int_equal(stook_group_get_stats(group, NULL), -EINVAL);
        assert_int_equal(CALL(stook_group_on_limit, NULL, NULL, NULL), -EINVAL);
        CALL(stook_group_destroy, NULL);
        REFUSED(EINVAL, CALL(stook_cache_alloc_group, NULL, 0, group));
        REFUSED(EINVAL, stook_cache_alloc_group(plain, 0, group));
        object = stook_cache_alloc_group(cache, 0, NULL);       /* no group is charged */
        assert_non_null(object);
        assert_int_equal(stook_group_usage(group), 0);
        stook_cache_free(cache, object);
        stook_group_destroy(group);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_cache_destroy(plain), 0);
}

static void heaps(void **state)
{
        struct stook_heap_stats stats = { .stats_size = sizeof(stats) };
        struct stook_heap *heap = stook_heap_create("arguments", NULL);
        void *object;

        (void)state;
        assert_non_null(heap);
        REFUSED(EINVAL, CALL(stook_heap_create, NULL, NULL));
        assert_int_equal(CALL(stook_heap_destroy, NULL), 0);
        assert_int_equal(CALL(stook_heap_reset, NULL), -EINVAL);
        assert_int_equal(CALL(stook_heap_shrink, NULL), -EINVAL);
        assert_int_equal(CALL(stook_heap_set_limit, NULL, 1), -EINVAL);
        assert_int_equal(CALL(stook_heap_for_each_object, NULL, NULL, NULL), -EINVAL);
        assert_int_equal(CALL(stook_heap_get_stats, NULL, &stats), -EINVAL);
        assert_int_equal(stook_heap_get_stats(heap, NULL), -EINVAL);
        assert_int_equal(CALL(stook_heap_for_each, NULL, NULL), -EINVAL);
        assert_null(CALL(stook_heap_of, NULL));
        REFUSED(ENOMEM, CALL(stook_heap_calloc, heap, SIZE_MAX, 2));
        REFUSED(EINVAL, CALL(stook_heap_aligned_alloc, heap, no_align, 8));
        object = CALL(stook_heap_realloc, heap, NULL, 10);
        assert_non_null(object);
        reports = 0;
        stook_heap_free(heap, NULL);
        assert_int_equal(reports, 0);
        stook_heap_free(NULL, object);
        assert_int_equal(reports, 1);
        assert_int_equal(last_fault, STOOK_FAULT_WRONG_CACHE);
        assert_int_equal(stook_heap_destroy(heap), 0);
}

static void by_rcu(void **state)
{
        struct stook_cache *cache = a_cache(0);
        void *object = stook_cache_alloc(cache);

        (void)state;
        assert_non_null(object);
        assert_int_equal(CALL(stook_rcu_use, NULL), -EINVAL);
        assert_int_equal(CALL(stook_cache_free_rcu, NULL, object), -EINVAL);
        assert_int_equal(CALL(stook_cache_free_rcu_nolock, NULL, object), -EINVAL);
        assert_int_equal(stook_cache_free_rcu(NULL, NULL), -EINVAL);
        assert_int_equal(stook_cache_free_rcu(cache, NULL), 0);
        assert_int_equal(stook_cache_free_rcu_nolock(cache, NULL), 0);
        assert_int_equal(CALL(stook_cache_free_rcu_bulk, NULL, 1, &object), -EINVAL);
        assert_int_equal(stook_cache_free_rcu_bulk(cache, 1, NULL), -EINVAL);
        assert_int_equal(stook_cache_free_rcu_bulk(cache, 0, NULL), 0);
        assert_int_equal(CALL(stook_free_rcu, NULL), 0);
        assert_int_equal(CALL(stook_free_rcu_nolock, NULL), 0);
        CALL(stook_cache_rcu_barrier, NULL);
        CALL(stook_rcu_barrier);
        CALL(stook_rcu_set_limit, 0, 1000);
        assert_int_equal(CALL(stook_rcu_backlog), 0);
        CALL(stook_epoch_read_lock);
        CALL(stook_epoch_read_unlock);
        assert_int_equal(CALL(stook_epoch_synchronize), 0);
        note("stook_rcu_epoch");                /* a table */
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void by_size(void **state)
{
        void *object;

        (void)state;
        reports = 0;
        object = CALL(stook_realloc, NULL, 10);
        assert_non_null(object);
        stook_free(object);
        object = CALL(stook_reallocarray, NULL, 2, 10);
        assert_non_null(object);
        stook_free(object);
        REFUSED(ENOMEM, stook_reallocarray(NULL, SIZE_MAX, 2));
        REFUSED(ENOMEM, CALL(stook_malloc, SIZE_MAX));
        REFUSED(ENOMEM, CALL(stook_malloc_nolock, SIZE_MAX));
        REFUSED(ENOMEM, CALL(stook_calloc, SIZE_MAX, 2));
        REFUSED(EINVAL, CALL(stook_aligned_alloc, no_align, 8));
        REFUSED(EINVAL, stook_aligned_alloc(odd_align, 8));
        REFUSED(ENOMEM, stook_aligned_alloc(large_align, 8));
        REFUSED(ENOMEM, stook_aligned_alloc(large_align >> 1, SIZE_MAX));
        REFUSED(ENOMEM, stook_aligned_alloc(32, SIZE_MAX));
        CALL(stook_free, NULL);
        CALL(stook_free_nolock, NULL);
        CALL(stook_free_sized, NULL, 8);
        CALL(stook_free_aligned_sized, NULL, 8, 8);
        assert_int_equal(CALL(stook_usable_size, NULL), 0);
        assert_false(CALL(stook_owns, NULL));
        REFUSED(EINVAL, CALL(stook_aligned_realloc, NULL, no_align, 8));
        REFUSED(ENOMEM, stook_aligned_realloc(NULL, 32, SIZE_MAX));
        REFUSED(ENOMEM, CALL(stook_malloc_at_least, SIZE_MAX, NULL));
        assert_int_equal(CALL(stook_good_size, SIZE_MAX), SIZE_MAX);
        assert_false(CALL(stook_try_expand, NULL, 8));
        assert_int_equal(CALL(stook_malloc_bulk, 8, 0, NULL), 0);
        assert_int_equal(stook_malloc_bulk(8, 1, NULL), -EINVAL);
        CALL(stook_free_bulk, 0, NULL);
        assert_int_equal(reports, 0);
}

static void figures_and_control(void **state)
{
        struct stook_cache *cache = a_cache(0);
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };
        struct stook_cache_node_stats node = { .stats_size = sizeof(node) };

        (void)state;
        assert_int_equal(CALL(stook_cache_get_stats, NULL, &stats), -EINVAL);
        assert_int_equal(stook_cache_get_stats(cache, NULL), -EINVAL);
        assert_int_equal(CALL(stook_cache_get_node_stats, NULL, 0, &node), -EINVAL);
        assert_int_equal(stook_cache_get_node_stats(cache, 0, NULL), -EINVAL);
        assert_int_equal(stook_cache_get_node_stats(cache, UINT32_MAX, &node), -EINVAL);
        assert_int_equal(CALL(stook_cache_for_each, NULL, NULL), -EINVAL);
        assert_int_equal(CALL(stook_cache_validate, NULL), -EINVAL);
        assert_int_equal(CALL(stook_profile_write, NULL), -ENOTSUP);    /* none was asked for */
        assert_int_equal(CALL(stook_profile_mark), -ENOTSUP);
        assert_int_equal(CALL(stook_sampling_get_stats, NULL), -EINVAL);
        assert_int_equal(CALL(stook_describe, NULL, NULL, 0), -EINVAL);
        assert_int_equal(CALL(stook_sampling_stop), -ENOTSUP);
        assert_int_equal(CALL(stook_sampling_start, NULL), 0);  /* as usual */
        assert_int_equal(stook_sampling_stop(), 0);
        assert_int_equal(CALL(stook_stats_print, NULL), -EINVAL);
        assert_int_equal(CALL(stook_set_fail, NULL), 0);
        assert_int_equal(CALL(stook_leak_check), -ENODATA);
        assert_true(CALL(stook_validate_all) <= 0);     /* no fault; a child may not be had */
        assert_int_equal(CALL(stook_fail_count), 0);
        assert_int_equal(CALL(stook_get_mode, NULL), -EINVAL);
        assert_null(CALL(stook_cache_get_name, NULL));
        assert_int_equal(CALL(stook_object_get_occupancy, NULL, NULL), -EINVAL);
        assert_null(CALL(stook_group_current));
        assert_int_equal(CALL(stook_group_for_each, NULL, NULL), -EINVAL);
        CALL(stook_on_pressure, NULL, NULL);
        CALL(stook_on_no_memory, NULL, NULL);
        assert_int_equal(CALL(stook_option_get, "thp", NULL, 8), -EINVAL);
        assert_int_equal(stook_option_get(NULL, NULL, 0), -EINVAL);
        assert_int_equal(CALL(stook_option_set, "thp", NULL), -EINVAL);
        assert_int_equal(stook_option_set(NULL, "never"), -EINVAL);
        assert_int_equal(CALL(stook_option_for_each, NULL, NULL), -EINVAL);
        assert_int_equal(CALL(stook_get_totals, NULL), -EINVAL);
        assert_int_equal(CALL(stook_get_totals_approximate, NULL), -EINVAL);
        assert_int_equal(CALL(stook_metrics_write, NULL, STOOK_METRICS_PROMETHEUS), -EINVAL);
        CALL(stook_on_report, NULL, NULL);
        CALL(stook_set_output, NULL, NULL);
        stook_on_report(on_report, NULL);
        assert_non_null(CALL(stook_version));
        CALL(stook_maintain);
        (void)CALL(stook_trim, SIZE_MAX);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void the_maintenance_thread_is_on_or_off(void **state)
{
        static const int neither[] = { 7, 2, -1, -EINVAL };

        (void)state;
        for (size_t i = 0; i < sizeof(neither) / sizeof(neither[0]); i++)
                assert_int_equal(CALL(stook_maintenance_thread, neither[i]), -EINVAL);
        assert_int_equal(stook_maintenance_thread(0), 0);
}

/* ---- those that do not look ---- */

static void alloc_from_nothing(void)     { nothing = CALL(stook_cache_alloc, nothing); }
static void alloc_nolock_nothing(void)   { nothing = CALL(stook_cache_alloc_nolock, nothing); }
static void free_to_nothing(void)        { CALL(stook_cache_free, nothing, stook_malloc(8)); }
static void free_nolock_to_nothing(void)
{
        CALL(stook_cache_free_nolock, nothing, stook_malloc(8));
}
static void alloc_from_no_heap(void)     { nothing = CALL(stook_heap_alloc, nothing, 8); }
static void take_from_nothing(void)      { nothing = CALL(stook_sheaf_alloc, nothing, nothing); }
static void free_an_array_of_nothing(void) { stook_cache_free_bulk(nothing, 2, nothing); }

static void dies(void (*call)(void))
{
        int status = 0;
        pid_t child = fork();

        assert_true(child >= 0);
        if (!child) {
                setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
                signal(SIGSEGV, SIG_DFL);
                if (!freopen("/dev/null", "w", stderr))
                        _exit(0);
                call();
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        assert_int_not_equal(status, 0);        /* the sanitizer was there first */
#else
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSEGV);
#endif
}

static void the_fast_path_does_not_look(void **state)
{
        static void (*const calls[])(void) = { alloc_from_nothing, alloc_nolock_nothing,
                                               free_to_nothing,    free_nolock_to_nothing,
                                               take_from_nothing,  free_an_array_of_nothing,
                                               alloc_from_no_heap };
        static const char *const names[] = { "stook_cache_alloc", "stook_cache_alloc_nolock",
                                             "stook_cache_free", "stook_cache_free_nolock",
                                             "stook_sheaf_alloc", "stook_heap_alloc",
                                             "stook_heap_free" };

        (void)state;
        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                dies(calls[i]);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                note(names[i]);                 /* the children's notes went with them */
}

/* ---- all of them ---- */

static int is_seen(const char *name)
{
        for (size_t i = 0; i < seen_count; i++)
                if (!strcmp(seen[i], name))
                        return 1;
        return 0;
}

static void no_call_is_left_out(void **state)
{
        char path[4096], line[256], name[128];
        unsigned calls = 0;
        FILE *list;

        (void)state;
        snprintf(path, sizeof(path), "%s/src/libstook.sym",
                 getenv("STOOK_SOURCE") ? getenv("STOOK_SOURCE") : ".");
        list = fopen(path, "r");
        assert_non_null(list);
        while (fgets(line, sizeof(line), list)) {
                if (sscanf(line, " %127[a-z0-9_];", name) != 1 || strncmp(name, "stook_", 6) ||
                    strstr(name, "_v1"))
                        continue;
                calls++;
                if (!is_seen(name))
                        fail_msg("%s is not tried with NULL here", name);
        }
        fclose(list);
        assert_true(calls >= 60);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(caches),
                cmocka_unit_test(sheaves),
                cmocka_unit_test(groups),
                cmocka_unit_test(heaps),
                cmocka_unit_test(by_rcu),
                cmocka_unit_test(by_size),
                cmocka_unit_test(figures_and_control),
                cmocka_unit_test(the_maintenance_thread_is_on_or_off),
                cmocka_unit_test(the_fast_path_does_not_look),
                cmocka_unit_test(no_call_is_left_out),
        };

        stook_on_report(on_report, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
