/*
 * Proves that memory which small objects have left goes back to the system. The slow calls of a
 * program that goes on do it, without a thread, a trim or a large object. First the memory is kept,
 * for a program that takes it again at once. Sheaves of a class that no thread uses any more give
 * up what they hold, by age and when fresh memory is needed.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>
#include "cache/cache.h"
#include "inspect/validate.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "pages/pages_node.h"
#include "pages/purge.h"
#include "pages/span.h"
#include <stook/malloc.h>

#define OBJECTS 65536
#define BYTES   1024                    /* 64 MiB of them */
#define STAYS   512                     /* each 512th stays: one in half a megabyte */
#define OTHERS  16384                   /* far more than a slot and a barn keep of them */
#define ROUNDS  2000                    /* of 5 ms: far more than the decay time */
#define AGE_MS  50
#define HOUR_MS 3600000

static void *objects[OBJECTS];
static void *others[OTHERS];

static size_t free_dirty_bytes(void)
{
        struct stook_pages_stats stats;

        stook_pages_stats(&stats);
        return stats.free_dirty_bytes;
}

/* From now on memory ages within AGE_MS. What was due in an hour is due at once. */
static void let_age(void)
{
        uint32_t now = (uint32_t)stook_os_clock_ms();

        stook_pages_set_decay_ms(AGE_MS);
        for (unsigned node = 0; node < stook_os_node_count(); node++)
                __atomic_store_n(&stook_pages_nodes[node].next_step_ms, now, __ATOMIC_RELAXED);
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                if (stook_slots_head(slot))
                        __atomic_store_n(&stook_slots_head(slot)->reap_due_ms, now,
                                         __ATOMIC_RELAXED);
}

/* Sheaves are refilled and flushed. */
static void go_on(void)
{
        for (size_t i = 0; i < OTHERS; i++)
                others[i] = stook_malloc(48);
        for (size_t i = 0; i < OTHERS; i++)
                stook_free(others[i]);
}

static void test_what_small_objects_left_is_purged(void **state)
{
        const struct timespec pause = { .tv_nsec = 5000000 };
        size_t kept;

        (void)state;
        stook_pages_set_decay_ms(HOUR_MS);
        for (size_t i = 0; i < OBJECTS; i++) {
                objects[i] = stook_malloc(BYTES);
                assert_non_null(objects[i]);
                *(char *)objects[i] = 1;
        }
        /*
         * Those that stay keep free spans apart, of less than 1 MiB each. What is far too much goes
         * at once all the same.
         */
        for (size_t i = 0; i < OBJECTS; i++)
                if (i % STAYS)
                        stook_free(objects[i]);
        kept = free_dirty_bytes();
        assert_true(kept > (size_t)OBJECTS * BYTES / 64);
        assert_true(kept < (size_t)OBJECTS * BYTES / 4);
        let_age();
        for (int i = 0; i < ROUNDS && free_dirty_bytes() > kept / 4; i++) {
                go_on();
                nanosleep(&pause, NULL);
        }
        assert_true(free_dirty_bytes() <= kept / 4);
}

/* ---- a class that goes idle ---- */

#define IDLE_BYTES 80

static struct stook_cache *idle_class(void)
{
        return stook_class_cache(stook_class_of[IDLE_BYTES / 16]);
}

/* Objects that slot and barn hold, with all slabs they come from. */
static void use_and_leave(size_t n)
{
        for (size_t i = 0; i < n; i++)
                assert_non_null(objects[i] = stook_malloc(IDLE_BYTES));
        for (size_t i = 0; i < n; i++)
                stook_free(objects[i]);
}

/*
 * Counters say the same as slabs and sheaves: every object allocated was freed, and lies in its
 * slab again.
 */
static void expect_nothing_out(struct stook_cache *cache)
{
        struct stook_sheaf_sums sums;

        stook_sheaf_sum(cache->index, &sums);
        assert_int_equal(sums.objects, 0);
        assert_int_equal(stook_slot_objects(&cache->front), 0);
        assert_int_equal(stook_slabs_objects_out(&cache->slabs), 0);
        assert_int_equal(sums.pops + stook_counted(&cache->counters, STOOK_STAT_alloc_fastpath) +
                                 stook_counted(&cache->counters, STOOK_STAT_alloc_slowpath),
                         sums.pushes + stook_counted(&cache->counters, STOOK_STAT_free_fastpath) +
                                 stook_counted(&cache->counters, STOOK_STAT_free_slowpath));
        assert_int_equal(stook_slabs_validate(&cache->slabs), 0);
}

static void test_idle_sheaves_are_flushed_by_age(void **state)
{
        struct stook_cache *cache = idle_class();
        const struct timespec pause = { .tv_nsec = 5000000 };

        (void)state;
        assert_int_equal(cache->object_size, IDLE_BYTES);
        stook_pages_set_decay_ms(HOUR_MS);
        use_and_leave(4096);
        assert_true(stook_slot_objects(&cache->front) > 0);
        assert_true(stook_slabs_count(&cache->slabs) > 0);
        let_age();
        for (int i = 0; i < ROUNDS && stook_slabs_count(&cache->slabs); i++) {
                go_on();
                nanosleep(&pause, NULL);
        }
        assert_int_equal(stook_slabs_count(&cache->slabs), 0);
        expect_nothing_out(cache);
        /* And it serves as before. */
        stook_pages_set_decay_ms(HOUR_MS);
        use_and_leave(4096);
        assert_true(stook_slot_objects(&cache->front) > 0);
}

/* No time passes here but what the test itself takes: growth alone says that memory is missed. */
static void test_idle_sheaves_are_flushed_when_memory_is_missed(void **state)
{
        struct stook_cache *cache = idle_class();
        size_t n = 0;

        (void)state;
        stook_pages_set_decay_ms(HOUR_MS);
        go_on();
        use_and_leave(4096);
        assert_true(stook_slot_objects(&cache->front) > 0);
        while (n < OBJECTS && stook_slabs_count(&cache->slabs)) {
                assert_non_null(objects[n] = stook_malloc(BYTES));
                n++;
        }
        assert_int_equal(stook_slabs_count(&cache->slabs), 0);
        expect_nothing_out(cache);
        while (n)
                stook_free(objects[--n]);
}

/* A slot's sheaves are given up by threads that run there: this one stays on one. */
static int stay(void **state)
{
        cpu_set_t one;

        (void)state;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        return sched_setaffinity(0, sizeof(one), &one);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_small_objects_left_is_purged),
                cmocka_unit_test(test_idle_sheaves_are_flushed_by_age),
                cmocka_unit_test(test_idle_sheaves_are_flushed_when_memory_is_missed),
        };

        return cmocka_run_group_tests(tests, stay, NULL);
}
