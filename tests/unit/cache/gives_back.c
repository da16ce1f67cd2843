/*
 * Proves that a call that fails gives back what it had by then: objects of the slot and of slabs, a
 * group's charge, the span of a large object. And that a cache that a destroy could not end works
 * as before: its barns, too.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>
#include <stook/group.h>

#include "barn/barn_inside.h"
#include "base/inject.h"
#include "cache/cache.h"
#include "pages/span.h"

#define SIZE 200
#define MANY 5000

static void *objects[MANY];

static struct stook_cache *create(uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };
        struct stook_cache *cache = stook_cache_create("gives back", SIZE, &args);

        assert_non_null(cache);
        return cache;
}

static struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        return stats;
}

/* There is no memory meanwhile: as many as the cache has. */
static size_t take_all(struct stook_cache *cache)
{
        size_t n = 0;

        while (n < MANY && (objects[n] = stook_cache_alloc(cache)))
                n++;
        assert_in_range(n, 1, MANY - 1);
        return n;
}

static void bulks_that_fail_keep_nothing(void **state)
{
        struct stook_cache *cache = create((uint64_t)(uintptr_t)*state);
        size_t n, per_slab;

        for (n = 0; n < 500; n++)
                assert_non_null(objects[n] = stook_cache_alloc(cache));
        while (n)
                stook_cache_free(cache, objects[--n]);
        per_slab = stats_of(cache).objects_per_slab;
        stook_inject.span_fail_from = 1;
        n = take_all(cache);
        assert_true(n >= 500);
        stook_cache_free_bulk(cache, n, objects);
        /* From the slot alone, from the slabs alone, and from both. */
        for (size_t more = 1; n + more < MANY; more += per_slab) {
                memset(objects, 0, sizeof(objects));
                assert_int_equal(stook_cache_alloc_bulk(cache, 0, n + more, objects), -ENOMEM);
                assert_int_equal(stats_of(cache).objects_live, 0);
        }
        assert_int_equal(take_all(cache), n);
        stook_inject.span_fail_from = 0;
        stook_cache_free_bulk(cache, n, objects);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void charges_without_an_object_end(void **state)
{
        struct stook_cache *cache = create(STOOK_CACHE_ACCOUNT);
        struct stook_group *group = stook_group_create("charged", NULL, 0);
        size_t n, stride = stats_of(cache).stride;

        (void)state;
        assert_non_null(group);
        stook_group_enter(group);
        stook_cache_free(cache, stook_cache_alloc(cache));
        stook_inject.span_fail_from = 1;
        n = take_all(cache);
        for (unsigned i = 0; i < 100; i++)
                assert_null(stook_cache_alloc(cache));
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 100, objects + n), -ENOMEM);
        assert_int_equal(stook_group_usage(group), n * stride);
        stook_cache_free_bulk(cache, n, objects);
        assert_int_equal(stook_group_usage(group), 0);
        /* Refused by the limit, the objects are there again. */
        stook_group_set_limit(group, 10 * stride);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 11, objects), -ENOMEM);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_set_limit(group, 0);
        assert_int_equal(take_all(cache), n);
        stook_inject.span_fail_from = 0;
        stook_cache_free_bulk(cache, n, objects);
        stook_group_enter(NULL);
        stook_group_destroy(group);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void a_large_object_beyond_the_limit_keeps_no_span(void **state)
{
        struct stook_group *group = stook_group_create("large", NULL, 1 << 20);
        size_t before;

        (void)state;
        assert_non_null(group);
        stook_group_enter(group);
        before = stook_pages_taken(0);
        for (unsigned i = 0; i < 4; i++)
                assert_null(stook_malloc((size_t)4 << 20));
        assert_int_equal(stook_pages_taken(0), before);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_enter(NULL);
        stook_group_destroy(group);
}

/* The old place of what moved is free, whatever it moved to. */
static void what_is_resized_leaves_nothing(void **state)
{
        size_t before = 0;

        (void)state;
        for (unsigned i = 0; i < 20000; i++) {
                char *object = stook_malloc(100);

                assert_non_null(object);
                object = stook_realloc(object, 1000);
                assert_non_null(object);
                object = stook_realloc(object, 50);
                assert_non_null(object);
                stook_free(object);
                if (i == 2000)
                        before = stook_pages_taken(0);
        }
        assert_true(stook_pages_taken(0) <= before + ((size_t)1 << 20));
}

static void a_cache_that_stays_has_barns(void **state)
{
        struct stook_cache *cache = create(0);
        void *kept = stook_cache_alloc(cache);
        uint64_t put;

        (void)state;
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        put = stats_of(cache).barn_put;
        for (size_t n = 0; n < 1000; n++)
                assert_non_null(objects[n] = stook_cache_alloc(cache));
        for (size_t n = 0; n < 1000; n++)
                stook_cache_free(cache, objects[n]);
        assert_true(stats_of(cache).barn_put > put);
        put = stats_of(cache).barn_get;
        for (size_t n = 0; n < 1000; n++)
                assert_non_null(objects[n] = stook_cache_alloc(cache));
        assert_true(stats_of(cache).barn_get > put);
        for (size_t n = 0; n < 1000; n++)
                stook_cache_free(cache, objects[n]);
        stook_cache_free(cache, kept);
        /* They are emptied with the others. */
        assert_true(stook_tagged_stack_count_racy(&cache->barns.node[0].full) > 0);
        stook_barns_give_all();
        assert_int_equal(stook_tagged_stack_count_racy(&cache->barns.node[0].full), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(bulks_that_fail_keep_nothing),
                cmocka_unit_test_prestate(bulks_that_fail_keep_nothing,
                                          (void *)(uintptr_t)STOOK_CACHE_NO_SHEAVES),
                cmocka_unit_test(charges_without_an_object_end),
                cmocka_unit_test(a_large_object_beyond_the_limit_keeps_no_span),
                cmocka_unit_test(what_is_resized_leaves_nothing),
                cmocka_unit_test(a_cache_that_stays_has_barns),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
