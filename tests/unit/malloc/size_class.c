/*
 * Proves what malloc's other files build on: every size finds the smallest class that holds it, by
 * table and by arithmetic alike; the waste is bounded; aligned sizes get aligned classes
 * (size_class.c I1); and a slot can keep no more than the budget (I2), but where a class swings. A
 * class's cache is made when its first object is asked for; where it cannot be, the object is a
 * span.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "barn/sheaf.h"
#include "cache/cache.h"
#include "gate/gate.h"
#include "malloc/malloc.h"
#include "pages/span.h"
#include "slot/slot.h"
#include <stook/malloc.h>
#include <stook/stats.h>

static void test_every_size_has_the_smallest_class(void **state)
{
        (void)state;
        assert_int_equal(stook_class_for(0), 0);
        for (size_t size = 1, class = 0; size <= STOOK_CLASS_MAX; size++) {
                if (size > stook_class_bytes[class])
                        class++;
                assert_int_equal(stook_class_for(size), class);
        }
        assert_int_equal(stook_class_bytes[STOOK_CLASSES - 1], STOOK_CLASS_MAX);
}

/* What the hot paths look up; a group moves all of it away (malloc_miss.c). */
static void test_every_class_has_its_line(void **state)
{
        const uintptr_t *by_class = stook_class_line + STOOK_CLASS_LINE_LARGE;

        (void)state;
        assert_true(stook_gate_start());
        for (size_t size = 0; size <= STOOK_CLASS_TABLE_MAX; size++)
                assert_int_equal(stook_class_line[(size + 15) / 16],
                                 stook_slots_first_line(stook_class_for(size) + 1));
        for (size_t size = STOOK_CLASS_TABLE_MAX + 1; size <= STOOK_CLASS_MAX; size++)
                assert_int_equal(by_class[stook_class_of_large[(size + 63) / 64]],
                                 stook_slots_first_line(stook_class_for(size) + 1));
}

static void test_waste_is_an_eighth_at_most_on_average_and_a_fifth_at_worst(void **state)
{
        (void)state;
        for (unsigned c = 8; c < STOOK_CLASSES; c++) {
                size_t below = stook_class_bytes[c - 1], bytes = stook_class_bytes[c];

                assert_true(bytes > below);
                assert_true((bytes - below) * 5 <= bytes); /* of the smallest size in it */
                assert_true((bytes - below) * 4 <= below);
        }
}

static void test_aligned_sizes_get_aligned_classes(void **state)
{
        (void)state;
        for (size_t align = 16; align <= 65536; align *= 2)
                for (size_t size = align; size <= STOOK_CLASS_MAX; size += align)
                        assert_true(stook_class_bytes[stook_class_for(size)] % align == 0 ||
                                    (stook_class_for(size) ==
                                     stook_class_for(STOOK_CLASS_PAGE_AND_MORE) && align > 64));
        assert_int_equal(stook_class_bytes[stook_class_for(STOOK_CLASS_PAGE_AND_MORE)],
                         STOOK_CLASS_PAGE_AND_MORE);
}

static void test_a_slot_keeps_no_more_than_its_budget(void **state)
{
        size_t sum = 0;

        (void)state;
        assert_true(stook_gate_start());
        for (unsigned c = 0; c < STOOK_CLASSES; c++) {
                struct stook_cache *cache = stook_class_cache(c);
                size_t kept = 2 * (size_t)cache->barns.capacity * stook_class_bytes[c];

                assert_int_equal(cache->object_size, stook_class_bytes[c]);
                assert_int_equal(cache->slabs.stride, stook_class_bytes[c]);
                assert_true(cache->barns.capacity >=
                            stook_class_capacity(c)); /* rounded up to its memory */
                assert_true(kept <= STOOK_CLASS_SLOT_BYTES);
                sum += kept;
                if (stook_class_bytes[c] <= 32768)
                        assert_true(kept > 0);
        }
        assert_true(sum <= (size_t)21 * 1024 * 1024 / 10);
}

static struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        return stats;
}

/* Above 32 KiB a class has no sheaves, until its objects have swung for a while. */
static void test_a_large_class_gets_sheaves_where_it_swings(void **state)
{
        struct stook_cache *cache = stook_class_cache(stook_class_for(40000));
        struct stook_cache_stats warm;

        (void)state;
        stook_free(stook_malloc(40000));
        assert_int_equal(stats_of(cache).sheaf_capacity, 0);
        assert_int_equal(stats_of(cache).objects_cached, 0);
        for (int i = 0; i < 1000; i++)
                stook_free(stook_malloc(40000));
        warm = stats_of(cache);
        assert_int_equal(warm.sheaf_capacity, 1);
        assert_int_equal(warm.objects_cached, 1);
        for (int i = 0; i < 1000; i++)
                stook_free(stook_malloc(40000));
        assert_int_equal(stats_of(cache).alloc_slowpath, warm.alloc_slowpath);
        assert_int_equal(stats_of(cache).free_slowpath, warm.free_slowpath);
}

/* In place of a handler on top of a call that makes a cache. */
static void test_a_class_that_cannot_be_made_is_not_needed(void **state)
{
        unsigned class = stook_class_for(3000);
        struct stook_cache *cache = stook_cache_at(class + 1);
        void *first, *second;

        (void)state;
        stook_free(stook_malloc(16));           /* the first class brings the table of caches */
        assert_int_equal(cache->state, STOOK_CACHE_FREE);
        stook_registry_wait();
        first = stook_malloc(3000);
        assert_non_null(stook_span_large_at((uintptr_t)first));
        assert_true(stook_usable_size(first) >= 3000);
        assert_int_equal(cache->state, STOOK_CACHE_FREE);
        stook_registry_unlock();

        second = stook_malloc(3000);
        assert_int_equal(cache->state, STOOK_CACHE_LIVE);
        assert_ptr_equal(stook_object_cache(second), cache);
        assert_int_equal(stook_usable_size(second), stook_class_bytes[class]);
        stook_free(first);
        stook_free(second);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_size_has_the_smallest_class),
                cmocka_unit_test(test_every_class_has_its_line),
                cmocka_unit_test(test_waste_is_an_eighth_at_most_on_average_and_a_fifth_at_worst),
                cmocka_unit_test(test_aligned_sizes_get_aligned_classes),
                cmocka_unit_test(test_a_class_that_cannot_be_made_is_not_needed),
                cmocka_unit_test(test_a_slot_keeps_no_more_than_its_budget),
                cmocka_unit_test(test_a_large_class_gets_sheaves_where_it_swings),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
