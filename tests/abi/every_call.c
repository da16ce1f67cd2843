/*
 * Proves that the shared library has every call its headers declare. Public structs have the sizes
 * that compiled programs rely on, and the thread record is where layout version 1 says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/layout.h>
#include <stook/stook.h>

static void test_every_call_is_there(void **state)
{
        /*
         * A reference to each, so that a missing one fails the link, and an interposed NULL fails
         * here.
         */
        void (*const calls[])(void) = {
#define CALL(name) (void (*)(void))name
                CALL(stook_cache_create),
                CALL(stook_cache_destroy),
                CALL(stook_cache_destroy_all),
                CALL(stook_cache_for_each_object),
                CALL(stook_cache_find),
                CALL(stook_cache_alloc),
                CALL(stook_cache_zalloc),
                CALL(stook_cache_alloc_node),
                CALL(stook_cache_alloc_flags),
                CALL(stook_cache_free),
                CALL(stook_cache_alloc_bulk),
                CALL(stook_cache_free_bulk),
                CALL(stook_cache_free_bulk_nolock),
                CALL(stook_cache_shrink),
                CALL(stook_object_node),
                CALL(stook_cache_object_size),
                CALL(stook_object_cache),
                CALL(stook_cache_tune),
                CALL(stook_cache_set_limit),
                CALL(stook_cache_reserve),
                CALL(stook_cache_alloc_nolock),
                CALL(stook_cache_free_nolock),
                CALL(stook_malloc_nolock),
                CALL(stook_free_nolock),
                CALL(stook_sheaf_prefill),
                CALL(stook_sheaf_refill),
                CALL(stook_sheaf_available),
                CALL(stook_sheaf_alloc),
                CALL(stook_sheaf_return),
                CALL(stook_malloc),
                CALL(stook_calloc),
                CALL(stook_realloc),
                CALL(stook_reallocarray),
                CALL(stook_aligned_alloc),
                CALL(stook_free),
                CALL(stook_free_sized),
                CALL(stook_free_aligned_sized),
                CALL(stook_usable_size),
                CALL(stook_owns),
                CALL(stook_good_size),
                CALL(stook_malloc_at_least),
                CALL(stook_try_expand),
                CALL(stook_aligned_realloc),
                CALL(stook_malloc_bulk),
                CALL(stook_free_bulk),
                CALL(stook_rcu_use),
                CALL(stook_cache_free_rcu),
                CALL(stook_cache_free_rcu_nolock),
                CALL(stook_cache_free_rcu_bulk),
                CALL(stook_epoch_read_lock),
                CALL(stook_epoch_read_unlock),
                CALL(stook_epoch_synchronize),
                CALL(stook_free_rcu),
                CALL(stook_free_rcu_nolock),
                CALL(stook_cache_rcu_barrier),
                CALL(stook_rcu_barrier),
                CALL(stook_rcu_set_limit),
                CALL(stook_rcu_backlog),
                CALL(stook_cache_get_stats),
                CALL(stook_profile_mark),
                CALL(stook_profile_write),
                CALL(stook_sampling_start), CALL(stook_sampling_stop),
                CALL(stook_sampling_get_stats), CALL(stook_describe),
                CALL(stook_cache_get_node_stats), CALL(stook_stats_print),
                CALL(stook_cache_for_each),
                CALL(stook_group_create),
                CALL(stook_group_enter),
                CALL(stook_group_set_limit),
                CALL(stook_group_usage),
                CALL(stook_group_get_stats),
                CALL(stook_group_on_limit),
                CALL(stook_group_destroy),
                CALL(stook_cache_alloc_group),
                CALL(stook_heap_create),
                CALL(stook_heap_destroy),
                CALL(stook_heap_reset),
                CALL(stook_heap_alloc),
                CALL(stook_heap_calloc),
                CALL(stook_heap_aligned_alloc),
                CALL(stook_heap_realloc),
                CALL(stook_heap_free),
                CALL(stook_heap_of),
                CALL(stook_heap_shrink),
                CALL(stook_heap_set_limit),
                CALL(stook_heap_get_stats),
                CALL(stook_heap_for_each),
                CALL(stook_heap_for_each_object),
                CALL(stook_on_report),
                CALL(stook_set_output),
                CALL(stook_cache_validate),
                CALL(stook_validate_all),
                CALL(stook_leak_check),
                CALL(stook_get_totals),
                CALL(stook_get_totals_approximate),
                CALL(stook_metrics_write),
                CALL(stook_option_get),
                CALL(stook_option_set),
                CALL(stook_option_for_each),
                CALL(stook_get_mode),
                CALL(stook_trim),
                CALL(stook_maintain),
                CALL(stook_on_pressure),
                CALL(stook_on_no_memory),
                CALL(stook_object_get_occupancy),
                CALL(stook_cache_get_name),
                CALL(stook_group_current),
                CALL(stook_group_for_each),
                CALL(stook_maintenance_thread),
                CALL(stook_version),
        };

        (void)state;
        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                assert_true(calls[i] != NULL);
}

static void test_sizes_are_kept(void **state)
{
        (void)state;
        assert_int_equal(offsetof(struct stook_cache_args, dtor), 64);  /* all of the first */
        assert_int_equal(sizeof(struct stook_cache_args), 136);
        assert_int_equal(sizeof(struct stook_heap_args), 24);
        assert_int_equal(sizeof(struct stook_heap_stats), 136);
        assert_int_equal(sizeof(struct stook_report), 64);
        assert_int_equal(sizeof(struct stook_mode), 56);
        assert_int_equal(sizeof(struct stook_thread_v1), 64);
}

static int words, standard_error;

static void begin_listening(void)
{
        words = memfd_create("words", 0);
        standard_error = dup(STDERR_FILENO);
        dup2(words, STDERR_FILENO);
}

static const char *heard(void)
{
        static char text[200];

        dup2(standard_error, STDERR_FILENO);
        text[pread(words, text, sizeof(text) - 1, 0)] = '\0';
        return text;
}

static void test_the_macro_sets_the_size(void **state)
{
        struct stook_cache *cache = stook_cache_create("aligned", 64,
                                                       STOOK_CACHE_ARGS(.align = 1024));
        void *object;

        (void)state;
        assert_non_null(cache);
        object = stook_cache_alloc(cache);
        assert_int_equal((uintptr_t)object % 1024, 0);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
        cache = stook_cache_create("plain", 64, STOOK_CACHE_ARGS());
        assert_non_null(cache);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_a_size_from_another_release_is_refused(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args) + 8 };
        struct stook_cache_args forgotten = { .align = 16 };
        struct stook_mode mode = { .mode_size = 1 };
        struct stook_cache_stats stats = { .stats_size = 8 };
        struct stook_cache *cache = stook_cache_create("abi", 64, NULL);

        (void)state;
        assert_non_null(cache);
        assert_null(stook_cache_create("abi2", 64, &args));
        begin_listening();
        assert_null(stook_cache_create("abi2", 64, &forgotten));
        assert_string_equal(heard(), "stook: args_size is 0, not the size of its structure, 136\n");
        assert_true(stook_get_mode(&mode) < 0);
        assert_null(mode.backend);
        assert_true(stook_cache_get_stats(cache, &stats) < 0);
        assert_int_equal(stats.object_size, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_call_is_there),
                cmocka_unit_test(test_sizes_are_kept),
                cmocka_unit_test(test_the_macro_sets_the_size),
                cmocka_unit_test(test_a_size_from_another_release_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
