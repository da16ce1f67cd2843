/*
 * What this proves: the front of a cache is closed (slot/slot.h) if it is accounted and not
 * watched, and of no other cache. Then calls in the library go past the section at front.line, and
 * inlined calls find nothing there: both charge each object, whichever frees it. Line 0 of the
 * slots stays empty.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stook/group.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "cache/cache_watch.h"
#include "slot/slot.h"
#include "unit/group/inlined.h"

#define MANY 1000

static struct stook_cache *create(uint32_t watch, uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };
        struct stook_cache *cache;

        stook_cache_options.watch = watch;
        cache = stook_cache_create("closed", 100, &args);
        stook_cache_options.watch = 0;
        assert_non_null(cache);
        return cache;
}

static void accounted_and_not_watched(void **state)
{
        static const uint32_t watches[] = { 0, STOOK_WATCH_DEBUG, STOOK_WATCH_RECORD };

        (void)state;
        for (size_t i = 0; i < sizeof(watches) / sizeof(*watches); i++) {
                struct stook_cache *plain = create(watches[i], 0);
                struct stook_cache *accounted = create(watches[i], STOOK_CACHE_ACCOUNT);

                assert_false(stook_front_is_closed(&plain->front));
                assert_int_equal(stook_front_is_closed(&accounted->front), !watches[i]);
                assert_int_equal(accounted->edge == STOOK_EDGE_ACCOUNT, !watches[i]);
                assert_int_equal(stook_cache_destroy(plain), 0);
                assert_int_equal(stook_cache_destroy(accounted), 0);
        }
}

static void expect_empty_heads(void)
{
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                struct stook_slot_head *head = stook_slots_head(slot);

                if (!head)
                        continue;
                assert_int_equal((uintptr_t)head & (((uintptr_t)1 << STOOK_SLOT_SHIFT) - 1), 0);
                assert_int_equal(head->nothing.lo, (uintptr_t)&stook_sheaf_zero);
                assert_int_equal(head->nothing.hi, 0);
        }
}

static void *get(struct stook_cache *cache, size_t n)
{
        return n % 2 ? inlined_alloc(cache) : stook_cache_alloc(cache);
}

static void put(struct stook_cache *cache, void *object, size_t n)
{
        if (n % 3)
                inlined_free(cache, object);
        else
                stook_cache_free(cache, object);
}

static void each_object_is_charged(void **state)
{
        struct stook_cache *cache = create(0, STOOK_CACHE_ACCOUNT);
        struct stook_group *group = stook_group_create("g", NULL, 0);
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };
        static void *held[MANY];

        (void)state;
        assert_non_null(group);
        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        stook_group_enter(group);
        for (unsigned round = 0; round < 3; round++) {
                for (size_t n = 0; n < MANY; n++) {
                        held[n] = get(cache, n + round);
                        assert_non_null(held[n]);
                        assert_int_equal(stook_group_usage(group), (n + 1) * stats.stride);
                }
                for (size_t n = 0; n < MANY; n++) {
                        put(cache, held[n], n + round);
                        assert_int_equal(stook_group_usage(group), (MANY - 1 - n) * stats.stride);
                }
        }
        expect_empty_heads();
        stook_group_enter(NULL);
        stook_group_destroy(group);
        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        assert_int_equal(stats.alloc_fastpath + stats.alloc_slowpath, 3 * MANY);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(accounted_and_not_watched),
                cmocka_unit_test(each_object_is_charged),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
