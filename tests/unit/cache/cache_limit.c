/*
 * Proves that beyond the last index no cache is made, and nothing is shared. A name is noted once.
 * A cache has nothing of the one that had its index before.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "watch/watch.h"

/* Until none can be had: all have an index of their own, which a destroy makes free. */
static void there_are_so_many_caches(void **state)
{
        static struct stook_cache *caches[STOOK_CACHES_MAX];
        struct stook_cache_args accounted = { .args_size = sizeof(accounted),
                                              .flags = STOOK_CACHE_ACCOUNT };
        unsigned n = 0;

        (void)state;
        errno = 0;
        while (n < STOOK_CACHES_MAX && (caches[n] = stook_cache_create("many", 64, NULL)))
                n++;
        assert_int_equal(errno, EAGAIN);
        assert_in_range(n, 4096, STOOK_CACHES_MAX - 1);
        for (unsigned i = 1; i < n; i++)
                assert_ptr_not_equal(caches[i], caches[i - 1]);
        assert_int_equal(stook_cache_destroy(caches[--n]), 0);
        errno = 0;
        assert_null(stook_cache_create("two indices", 64, &accounted));
        assert_int_equal(errno, EAGAIN);
        caches[n] = stook_cache_create("the last", 64, NULL);
        assert_non_null(caches[n]);
        for (unsigned i = 0; i <= n; i++)
                assert_int_equal(stook_cache_destroy(caches[i]), 0);
        assert_null(stook_cache_find("many"));
        caches[0] = stook_cache_create("two indices", 64, &accounted);
        assert_non_null(caches[0]);
        assert_int_equal(stook_cache_destroy(caches[0]), 0);
}

/* All names of a shared cache find it. One that comes and goes is noted once. */
static void a_name_is_noted_once(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_CACHE_MERGE };
        struct stook_cache *cache = stook_cache_create("first", 72, &args), *again;

        (void)state;
        assert_non_null(cache);
        for (unsigned i = 0; i < 1000; i++) {
                again = stook_cache_create(i % 2 ? "first" : "second", 72, &args);
                assert_ptr_equal(again, cache);
                assert_int_equal(stook_cache_destroy(again), 0);
        }
        assert_ptr_equal(stook_cache_find("second"), cache);
        assert_non_null(stook_cache_seldom(cache)->aliases);
        assert_null(stook_cache_seldom(cache)->aliases->next);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_null(stook_cache_find("second"));
}

/* What few caches use: a limit, debug modes, a long name. All of its counters are far from 0. */
static struct stook_cache *make_and_destroy(const char *name, uint64_t flags)
{
        struct stook_cache_args args = {
                .args_size = sizeof(args), .limit_objects = 900, .flags = flags,
        };
        struct stook_cache *cache = stook_cache_create(name, 72, &args);
        struct stook_seldom *seldom;

        assert_non_null(cache);
        stook_cache_free(cache, stook_cache_alloc(cache));
        assert_ptr_equal(stook_cache_find(name), cache);
        assert_string_equal(stook_cache_name(cache), name);
        seldom = stook_cache_seldom(cache);
        assert_int_equal(seldom->limit.most, 900);
        assert_int_equal(!stook_cache_debug(cache)->flags, !flags);
        memset(cache->counters.near, 1, sizeof(cache->counters.near));
        memset(seldom->counters, 1, sizeof(seldom->counters));
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_null(stook_cache_find(name));
        return cache;
}

static void is_new(struct stook_cache *last, const char *name)
{
        struct stook_cache *cache = stook_cache_create(name, 72, NULL);
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };
        char padded[sizeof(stats.name)] = { 0 };

        assert_ptr_equal(cache, last);
        strcpy(padded, name);
        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        assert_memory_equal(stats.name, padded, sizeof(padded));
        assert_ptr_equal(stook_cache_find(name), cache);
        for (unsigned i = 0; i < STOOK_STAT_COUNT; i++)
                assert_int_equal(stook_counted(&cache->counters, i), 0);
        assert_int_equal(stook_cache_set_limit(cache, 5), -ENOTSUP);
        assert_int_equal(stook_cache_seldom(cache)->limit.most, 0);
        assert_int_equal(stook_cache_debug(cache)->flags, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void an_index_is_used_again(void **state)
{
        static const char *const names[] = {
                "fifteen letters", "sixteen letters!",
                "sixty-three letters, of which there is none that could be more.",
        };

        (void)state;
        for (unsigned i = 0; i < 3; i++)
                for (unsigned j = 0; j < 3; j++)
                        is_new(make_and_destroy(names[i], j == 1 ? STOOK_CACHE_RED_ZONE : 0),
                               names[j]);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(there_are_so_many_caches),
                cmocka_unit_test(a_name_is_noted_once),
                cmocka_unit_test(an_index_is_used_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
