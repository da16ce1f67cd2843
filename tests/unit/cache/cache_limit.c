/*
 * Proves that there is no end of plain caches: beyond the last index one shares a cache of the same
 * geometry, its objects are whole, and the others still fail. A name is noted once. Nothing is
 * shared where that was not wanted. A cache has nothing of the one that had its index before.
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

#define MANY 100000

static size_t many_size(unsigned n)
{
        return 8 + n % 100;
}

/* More than there are indices. The last ones share those of the first; each has its objects. */
static void many_caches(void **state)
{
        static struct stook_cache *caches[MANY];
        static void *objects[MANY];
        struct stook_cache_args of_its_own = { .args_size = sizeof(of_its_own),
                                               .flags = STOOK_NO_SHEAVES };
        unsigned shared = 0;

        (void)state;
        for (unsigned i = 0; i < MANY; i++) {
                caches[i] = stook_cache_create("many", many_size(i), NULL);
                assert_non_null(caches[i]);
                if (i % 97 == 0 && stook_cache_object_size(caches[i]) != many_size(i))
                        shared++;       /* larger: another user's size */
        }
        assert_true(shared);
        assert_null(stook_cache_seldom(caches[0])->aliases);
        errno = 0;
        assert_null(stook_cache_create("alone", 64, &of_its_own));
        assert_int_equal(errno, ENFILE);
        errno = 0;
        assert_null(stook_cache_create("no such geometry", STOOK_OBJECT_MAX, NULL));
        assert_int_equal(errno, ENFILE);
        for (unsigned i = 0; i < MANY; i += 97) {
                objects[i] = stook_cache_alloc(caches[i]);
                assert_non_null(objects[i]);
                memset(objects[i], (int)i, many_size(i));
                assert_ptr_equal(stook_object_cache(objects[i]), caches[i]);
        }
        for (unsigned i = 0; i < MANY; i += 97) {
                assert_int_equal(*(unsigned char *)objects[i], i & 0xff);
                assert_int_equal(((unsigned char *)objects[i])[many_size(i) - 1], i & 0xff);
                stook_cache_free(caches[i], objects[i]);
        }
        for (unsigned i = 0; i < MANY; i++)
                assert_int_equal(stook_cache_destroy(caches[i]), 0);
        assert_null(stook_cache_find("many"));
        caches[0] = stook_cache_create("alone", 64, &of_its_own);
        assert_non_null(caches[0]);
        assert_int_equal(stook_cache_destroy(caches[0]), 0);
}

/* All names of a shared cache find it. One that comes and goes is noted once. */
static void a_name_is_noted_once(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_MERGE };
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

/* A program that asked for no sharing, or for hardening, gets none. */
static void no_caches_are_shared_where_none_may_be(void **state)
{
        static struct stook_cache *caches[STOOK_CACHES_MAX];
        int merge = stook_cache_options.merge;
        unsigned n = 0;

        (void)state;
        while (n < STOOK_CACHES_MAX && (caches[n] = stook_cache_create("many", 64, NULL)) &&
               (!n || caches[n] != caches[0]))
                n++;
        assert_in_range(n, 4096, STOOK_CACHES_MAX - 1);
        assert_ptr_equal(caches[n], caches[0]);
        stook_cache_options.merge = 0;
        errno = 0;
        assert_null(stook_cache_create("many", 64, NULL));
        assert_int_equal(errno, ENFILE);
        stook_cache_options.merge = merge;
        stook_cache_options.alone = true;
        assert_null(stook_cache_create("many", 64, NULL));
        stook_cache_options.alone = false;
        for (unsigned i = 0; i <= n; i++)
                assert_int_equal(stook_cache_destroy(caches[i]), 0);
}

/* What few caches use: a limit, debug modes, a long name. All of its counters are far from 0. */
static struct stook_cache *make_and_destroy(const char *name, uint64_t flags)
{
        struct stook_cache_args args = {
                .args_size = sizeof(args), .limit = 900, .flags = flags,
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
                        is_new(make_and_destroy(names[i], j == 1 ? STOOK_DEBUG_Z : 0), names[j]);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(many_caches),
                cmocka_unit_test(a_name_is_noted_once),
                cmocka_unit_test(no_caches_are_shared_where_none_may_be),
                cmocka_unit_test(an_index_is_used_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
