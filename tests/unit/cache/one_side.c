/*
 * What this proves: a thread that only allocates, by calls that may not wait, lives on refills and
 * on full sheaves of the barn, as one whose calls may wait: nine in ten of its objects at least
 * come out of sheaves, also while the lock of every slab list and of the pages is held by a thread
 * that stands still. (The rest are where the kernel interrupts a section again and again.) The
 * counters tell one from the other: with refills refused each object is taken by itself. All
 * objects are freed by another thread, on another node where there are two. And the sheaves of a
 * cache grow with such calls alone as with others.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "cache/cache.h"
#include "os/os.h"
#include "pages/span.h"

#define SIZE 64
#define MANY 20000

static struct stook_cache *cache, *class_cache;
static void *object[MANY];

static void *blocking(void) { return stook_cache_alloc(cache); }
static void *nolock(void) { return stook_cache_alloc_nolock(cache); }
static void *nowait(void) { return stook_cache_alloc_flags(cache, STOOK_ALLOC_NOWAIT); }
static void *nolock_flag(void) { return stook_cache_alloc_flags(cache, STOOK_ALLOC_NOLOCK); }
static void *malloc_nolock(void) { return stook_malloc_nolock(SIZE); }

static void free_blocking(void *o) { stook_cache_free(cache, o); }
static void free_nolock(void *o) { stook_cache_free_nolock(cache, o); }
static void free_of_malloc(void *o) { stook_free_nolock(o); }

static const struct way {
        void *(*alloc)(void);
        void  (*free)(void *);
} ways[] = {
        { blocking, free_blocking }, { blocking, free_nolock }, { nolock, free_blocking },
        { nolock, free_nolock }, { nowait, free_nolock }, { nolock_flag, free_blocking },
        { malloc_nolock, free_of_malloc },
};

/* Every thread has one slot, and with it one node. */
static void go_to(unsigned slot)
{
        cpu_set_t set;

        __atomic_store_n(&stook_inject.locked_slot, slot + 1, __ATOMIC_RELAXED);
        CPU_ZERO(&set);
        CPU_SET(slot, &set);
        (void)sched_setaffinity(0, sizeof(set), &set);
}

static struct stook_cache_stats stats_of(struct stook_cache *c)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        assert_int_equal(stook_cache_get_stats(c, &s), 0);
        return s;
}

static void *free_all(void *way)
{
        go_to(1);
        for (size_t i = 0; i < MANY; i++)
                ((const struct way *)way)->free(object[i]);
        return NULL;
}

/* Return: of MANY objects, how many were taken from the slabs one by one. */
static uint64_t one_round(const struct way *way)
{
        struct stook_cache *used = way->alloc == malloc_nolock ? class_cache : cache;
        struct stook_cache_stats before, after;
        pthread_t other;

        go_to(0);
        before = stats_of(used);
        for (size_t i = 0; i < MANY; i++) {
                assert_non_null(object[i] = way->alloc());
                memset(object[i], 0x5a, SIZE);
        }
        after = stats_of(used);
        assert_int_equal(after.alloc_fastpath + after.alloc_slowpath - before.alloc_fastpath -
                         before.alloc_slowpath, MANY);
        /* What came out of sheaves came into them: by refills, or in full sheaves of frees. */
        assert_true(after.sheaf_refill + after.barn_get > before.sheaf_refill + before.barn_get ||
                    after.alloc_slowpath - before.alloc_slowpath == MANY);
        assert_int_equal(pthread_create(&other, NULL, free_all, (void *)(uintptr_t)way), 0);
        assert_int_equal(pthread_join(other, NULL), 0);
        return after.alloc_slowpath - before.alloc_slowpath;
}

static void each_way_lives_on_sheaves(void **state)
{
        (void)state;
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(ways); i++)
                for (int round = 0; round < 3; round++)
                        assert_in_range(one_round(&ways[i]), 0, MANY / 10);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
}

/* ---- growth ---- */

/* Frees that meet full sheaves and a full barn, and then allocations that meet empty ones. */
static void sheaves_grow_with_them(void **state)
{
        struct stook_cache *before = cache;
        uint32_t began_at;

        (void)state;
        cache = stook_cache_create("grows", SIZE, NULL);
        assert_non_null(cache);
        began_at = stats_of(cache).sheaf_capacity;
        for (int round = 0; round < 100 && stats_of(cache).sheaf_capacity == began_at; round++) {
                for (size_t i = 0; i < MANY; i++)
                        assert_non_null(object[i] = stook_cache_alloc_nolock(cache));
                for (size_t i = 0; i < MANY; i++)
                        stook_cache_free_nolock(cache, object[i]);
        }
        assert_true(stats_of(cache).sheaf_capacity > began_at);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        cache = before;
}

/* ---- every lock held ---- */

static uint32_t has_all, may_go;        /* atomic */

static void *hold_everything(void *unused)
{
        (void)unused;
        assert_true(stook_slabs_fork_prepare(&cache->slabs));
        assert_true(stook_slabs_fork_prepare(&class_cache->slabs));
        assert_true(stook_pages_fork_prepare());
        __atomic_store_n(&has_all, 1, __ATOMIC_RELEASE);
        stook_os_futex_wake(&has_all);
        while (!__atomic_load_n(&may_go, __ATOMIC_ACQUIRE))
                stook_os_futex_wait(&may_go, 0, 1000000000);
        stook_pages_fork_parent();
        stook_slabs_fork_parent(&class_cache->slabs);
        stook_slabs_fork_parent(&cache->slabs);
        return NULL;
}

/* Nothing is in the sheaves: what comes was refilled, without a lock. */
static void a_lock_that_is_held_refuses_no_refill(void **state)
{
        pthread_t holder;

        (void)state;
        stook_cache_shrink(cache);
        stook_cache_shrink(class_cache);
        assert_int_equal(pthread_create(&holder, NULL, hold_everything, NULL), 0);
        while (!__atomic_load_n(&has_all, __ATOMIC_ACQUIRE))
                stook_os_futex_wait(&has_all, 0, 1000000);
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(ways); i++)
                if (ways[i].alloc != blocking && ways[i].alloc != nowait &&
                    ways[i].free != free_blocking)
                        assert_in_range(one_round(&ways[i]), 0, MANY / 10);
        __atomic_store_n(&may_go, 1, __ATOMIC_RELEASE);
        stook_os_futex_wake(&may_go);
        assert_int_equal(pthread_join(holder, NULL), 0);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
}

/* That is what the counters show of an allocator that refuses them. */
static void a_refused_refill_shows(void **state)
{
        (void)state;
        stook_cache_shrink(cache);
        stook_inject.refill_fail = 1;
        stook_inject.get_fail = 1;
        assert_in_range(one_round(&ways[3]), MANY - MANY / 10, MANY);
        stook_inject.refill_fail = 0;
        stook_inject.get_fail = 0;
        assert_in_range(one_round(&ways[3]), 0, MANY / 10);
}

static int setup(void **state)
{
        (void)state;
        cache = stook_cache_create("one_side", SIZE, NULL);
        class_cache = stook_object_cache(stook_malloc(SIZE));
        return cache && class_cache ? 0 : -1;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_way_lives_on_sheaves),
                cmocka_unit_test(sheaves_grow_with_them),
                cmocka_unit_test(a_lock_that_is_held_refuses_no_refill),
                cmocka_unit_test(a_refused_refill_shows),
        };

        return cmocka_run_group_tests(tests, setup, NULL);
}
