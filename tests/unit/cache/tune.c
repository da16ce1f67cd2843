/*
 * What this proves: a cache that is tuned while threads use it loses nothing and hands nothing out
 * twice. Sheaves and barns keep what was asked for from then on. Nonsense is refused. A working set
 * that swings beyond slot and barn makes both grow until it stays above the slabs. A cache that no
 * thread uses shrinks again. A reserve is there without the page layer, and stays through shrink.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "barn/barn_inside.h"
#include "base/inject.h"
#include "cache/cache.h"
#include "pages/purge.h"
#include "pages/span.h"
#include "slot/slot_regions.h"
#include "unit/cache/stats_sums.h"

#define ARGS(...) \
        (&(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args), __VA_ARGS__ })
#define THREADS 3
#define HELD    700

static void gone(struct stook_cache *cache)
{
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static int tune(struct stook_cache *cache, unsigned capacity, unsigned full, unsigned empty)
{
        struct stook_tuning t = { sizeof(t), capacity, full, empty };

        return stook_cache_tune(cache, &t);
}

static void test_nonsense_is_refused(void **state)
{
        struct stook_cache *cache = stook_cache_create("nonsense", 64, NULL);
        struct stook_cache *bare = stook_cache_create("bare", 64,
                                                      ARGS(.flags = STOOK_CACHE_NO_SHEAVES));
        struct stook_tuning unknown = { sizeof(unknown) - 1, 0, 0, 0 };

        (void)state;
        assert_int_equal(tune(NULL, 1, 1, 1), -EINVAL);
        assert_int_equal(stook_cache_tune(cache, NULL), -EINVAL);
        assert_int_equal(stook_cache_tune(cache, &unknown), -EINVAL);
        assert_int_equal(tune(cache, 65535, 0, 0), -EINVAL);
        assert_int_equal(tune(cache, STOOK_NONE - 1, 0, 0), -EINVAL);
        assert_int_equal(tune(cache, 0, 4097, 0), -EINVAL);
        assert_int_equal(tune(cache, 0, STOOK_NONE - 1, 0), -EINVAL);
        assert_int_equal(tune(cache, 0, 0, 4097), -EINVAL);
        assert_int_equal(tune(cache, 0, 0, 1u << 31), -EINVAL);
        assert_int_equal(stats_of(cache).sheaf_capacity, 64);
        assert_int_equal(tune(bare, 8, 0, 0), -ENOTSUP);
        assert_int_equal(tune(bare, 0, 3, 0), 0);
        assert_int_equal(tune(bare, STOOK_NONE, 0, 0), 0);
        assert_int_equal(stook_cache_reserve(NULL, 1), -EINVAL);
        assert_int_equal(stook_cache_reserve(cache, SIZE_MAX), -EINVAL);
        errno = 0;
        assert_null(stook_cache_create("barns", 64, ARGS(.barn_full = 4097)));
        assert_int_equal(errno, EINVAL);
        assert_null(stook_cache_create("barns", 64, ARGS(.barn_empty = 4097)));
        gone(cache);
        gone(bare);
}

static void swing(struct stook_cache *cache, size_t n, int rounds)
{
        static void *objects[60000];

        for (int round = 0; round < rounds; round++) {
                for (size_t i = 0; i < n; i++)
                        assert_non_null(objects[i] = stook_cache_alloc(cache));
                for (size_t i = 0; i < n; i++)
                        stook_cache_free(cache, objects[i]);
        }
}

/* Full sheaves a barn has, of the capacity asked for. */
static unsigned barn_count(struct stook_cache *cache)
{
        return stook_tagged_stack_count_racy(&cache->barns.node[0].full);
}

static void test_what_is_asked_for_holds(void **state)
{
        struct stook_cache *cache = stook_cache_create("tuned", 64, NULL);
        struct stook_cache_stats s;

        (void)state;
        swing(cache, 3000, 3);
        assert_int_equal(tune(cache, 17, 3, 2), 0);
        s = stats_of(cache);
        assert_int_equal(s.sheaf_capacity, 17);
        assert_int_equal(s.objects_cached, 0);
        assert_int_equal(s.sheaves, 0);
        swing(cache, 3000, 50);                 /* and does not grow any more */
        swing(cache, 150,
              50); /* more than a slot holds, not so much that the barn is passed over */
        assert_int_equal(barn_count(cache), 3);
        assert_int_equal(stats_of(cache).sheaf_capacity, 17);
        assert_true(stats_of(cache).objects_cached <= 17 * 5);

        assert_int_equal(tune(cache, 0, STOOK_NONE, 0), 0);
        swing(cache, 3000, 3);
        assert_int_equal(barn_count(cache), 0);
        assert_true(stats_of(cache).objects_cached <= 17 * 2);

        assert_int_equal(tune(cache, STOOK_NONE, 0, 0), 0);
        swing(cache, 100, 1);
        s = stats_of(cache);
        assert_int_equal(s.objects_cached, 0);
        assert_int_equal(s.sheaves, 0);

        assert_int_equal(tune(cache, 300, 10, 10), 0);
        swing(cache, 3000, 3);
        /*
         * 3,000 are 10 sheaves, two of them in the slot; the first refills are small, so that one
         * more may be full.
         */
        assert_in_range(barn_count(cache), 8, 9);
        gone(cache);
}

/* cache.h I3: a generation that a failed destroy ended never comes back. */
static void test_a_failed_destroy_begins_a_generation(void **state)
{
        struct stook_cache *cache = stook_cache_create("failed", 64, NULL);
        struct stook_cache *bare = stook_cache_create("bare", 64,
                                                      ARGS(.flags = STOOK_CACHE_NO_SHEAVES));
        void *object = stook_cache_alloc(cache), *other = stook_cache_alloc(bare);
        uint32_t before = cache->front.config;

        (void)state;
        assert_int_equal(before & 1, 0);
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        assert_int_equal(cache->front.config, before + 2);
        before = bare->front.config;
        assert_int_equal(before & 1, 1);
        assert_int_equal(stook_cache_destroy(bare), -EBUSY);
        assert_int_equal(bare->front.config, before);
        stook_cache_free(cache, object);
        stook_cache_free(bare, other);
        gone(cache);
        gone(bare);
}

/*
 * The first refills of a cache on a slot: 8 objects, and each time as many as before together, up
 * to a sheaf.
 */
static void test_the_first_refills_are_small(void **state)
{
        struct stook_cache *cache = stook_cache_create("first", 64, NULL);
        void *objects[150];
        cpu_set_t one, before;
        uint64_t expected = 0, next = 8;

        (void)state;
        CPU_ZERO(&one);
        assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
        CPU_SET((size_t)sched_getcpu(), &one);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        for (size_t i = 0; i < 150; i++) {
                objects[i] = stook_cache_alloc(cache);
                assert_non_null(objects[i]);
                if (i == expected) {
                        expected += next;
                        next = expected < 64 ? expected : 64;
                }
                assert_int_equal(stats_of(cache).sheaf_refill, expected);
        }
        assert_int_equal(expected, 8 + 8 + 16 + 32 + 64 + 64);
        for (size_t i = 0; i < 150; i++)
                stook_cache_free(cache, objects[i]);
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
        gone(cache);
}

/*
 * The first refill brings no more than a page of objects, also where the cache that had the line
 * before had brought more.
 */
static void test_the_first_refill_is_a_page(void **state)
{
        static const struct { size_t size, brought; } cases[] = {
                { 200, 8 }, { 512, 8 }, { 600, 4 }, { 1500, 2 }, { 3000, 1 },
        };
        cpu_set_t one, before;

        (void)state;
        CPU_ZERO(&one);
        assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
        CPU_SET((size_t)sched_getcpu(), &one);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(cases); i++) {
                struct stook_cache *cache = stook_cache_create("page", cases[i].size, NULL);
                void *object = stook_cache_alloc(cache), *others[64];

                assert_non_null(object);
                assert_int_equal(stats_of(cache).sheaf_refill, cases[i].brought);
                for (size_t k = 0; k < STOOK_ARRAY_SIZE(others); k++)
                        others[k] = stook_cache_alloc(cache);
                for (size_t k = 0; k < STOOK_ARRAY_SIZE(others); k++)
                        stook_cache_free(cache, others[k]);
                stook_cache_free(cache, object);
                gone(cache);
        }
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* From here on refills are whole sheaves. The thread stays on a CPU. */
static void end_small_refills(struct stook_cache *cache)
{
        struct stook_slot_head *own = stook_slot_ops()->own();
        char *line = (char *)own + cache->front.offset;

        if (own)
                __atomic_store_n(&((struct stook_line *)line)->brought, 64, __ATOMIC_RELAXED);
}

/*
 * What swings by a whole sheaf, and no more, fills and empties one: main and spare stay where they
 * are.
 */
static void test_a_batch_of_a_sheaf_stays_in_one(void **state)
{
        struct stook_cache *cache = stook_cache_create("batch", 64, NULL);
        void *objects[64];
        cpu_set_t one, before;
        struct stook_pair pair = { 0 };

        (void)state;
        CPU_ZERO(&one);
        assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
        CPU_SET((size_t)sched_getcpu(), &one);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        end_small_refills(cache);
        for (size_t round = 0; round < 20; round++) {
                for (size_t i = 0; i < 64; i++)
                        assert_non_null(objects[i] = stook_cache_alloc(cache));
                for (size_t i = 0; i < 64; i++)
                        stook_cache_free(cache, objects[i]);
                if (!round)
                        pair = stook_slot_ops()->look(cache->front.offset);
                assert_true(stook_slot_ops()->look(cache->front.offset).lo == pair.lo);
                assert_true(stook_slot_ops()->look(cache->front.offset).hi == pair.hi);
        }
        assert_int_equal(stats_of(cache).sheaf_refill, 64);
        assert_int_equal(stats_of(cache).objects_cached, 64);
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
        gone(cache);
}

/* ---- under load ---- */

static struct stook_cache *loaded;
static bool stop;

static void *work(void *arg)
{
        uintptr_t me = (uintptr_t)arg;
        void *held[HELD] = { NULL }, *some[32];
        uint64_t r = me * 77777, faults = 0;

        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                size_t i = (size_t)((r = r * UINT64_C(6364136223846793005) + 1442695040888963407) >>
                                    33) %
                           HELD;

                if (r >> 60 == 0) {
                        /* many at once: all of 64 neighbours, freed and had again in bulk */
                        i = i / 64 * 64 % (HELD - 64);
                        for (size_t k = i; k < i + 64; k++) {
                                if (held[k])
                                        faults += *(uintptr_t *)held[k] != me;
                                stook_cache_free(loaded, held[k]);
                        }
                        if (stook_cache_alloc_bulk(loaded, 0, 64, held + i))
                                return (void *)UINTPTR_MAX;
                        for (size_t k = i; k < i + 64; k++)
                                *(uintptr_t *)held[k] = me;
                        memcpy(some, held + i, sizeof(some));
                        stook_cache_free_bulk(loaded, 32, some);
                        memset(held + i, 0, sizeof(some));
                } else if (held[i]) {
                        faults += *(uintptr_t *)held[i] != me;
                        *(uintptr_t *)held[i] = 0;
                        stook_cache_free(loaded, held[i]);
                        held[i] = NULL;
                } else {
                        held[i] = stook_cache_alloc(loaded);
                        if (!held[i])
                                return (void *)UINTPTR_MAX;
                        *(uintptr_t *)held[i] = me;
                }
        }
        for (size_t i = 0; i < HELD; i++) {
                if (held[i])
                        faults += *(uintptr_t *)held[i] != me;
                stook_cache_free(loaded, held[i]);
        }
        return (void *)(uintptr_t)faults;
}

static void test_tuned_under_load(void **state)
{
        static const int capacities[] = { 0, 1, 7, 64, 300, 2, 124, 32 };
        const char *asked = getenv("STOOK_TUNINGS");
        int rounds = asked ? atoi(asked) : 200;
        pthread_t threads[THREADS];

        (void)state;
        loaded = stook_cache_create("loaded", 48, NULL);
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
        for (int round = 0; round < rounds; round++) {
                assert_int_equal(tune(loaded, capacities[round % 8], round % 5 * 3, round % 3 * 5),
                                 0);
                if (round % 16 == 15)
                        stook_cache_shrink(loaded);
                sched_yield();
        }
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        for (int i = 0; i < THREADS; i++) {
                void *faults;

                pthread_join(threads[i], &faults);
                assert_null(faults);
        }
        assert_int_equal(tune(loaded, 64, 10, 10), 0);
        gone(loaded);
}

/* ---- by itself ---- */

/*
 * Table 1.1 of the figures: 1,000 objects of 64 bytes, allocated, then freed, in sheaves that begin
 * with 32.
 */
static void test_what_swings_stays_above_the_slabs(void **state)
{
        struct stook_cache *cache = stook_cache_create("swings", 64, NULL);
        struct stook_cache_stats warm, after;

        (void)state;
        assert_int_equal(tune(cache, 32, 10, 10), 0);
        stook_barns_let_grow(&cache->barns);
        swing(cache, 1000, 400);
        warm = stats_of(cache);
        swing(cache, 1000, 100);
        after = stats_of(cache);
        assert_int_equal(after.sheaf_refill, warm.sheaf_refill);
        assert_int_equal(after.sheaf_flush, warm.sheaf_flush);
        assert_int_equal(after.alloc_slowpath, warm.alloc_slowpath);
        assert_int_equal(after.free_slowpath, warm.free_slowpath);
        assert_true(after.sheaf_capacity > 32);

        /* Bounded: 60,000 do not fit. */
        swing(cache, 60000, 20);
        assert_true(stats_of(cache).sheaf_capacity * 64 <= STOOK_SLOT_CACHE_BYTES);
        assert_true(stats_of(cache).objects_cached * 64 <=
                    2 * STOOK_SLOT_CACHE_BYTES * stook_slots_ready() +
                    STOOK_BARN_NODE_BYTES / 2);
        stook_barns_shrink(&cache->barns);
        assert_int_equal(stats_of(cache).sheaf_capacity, 32);
        gone(cache);
}

static void count_smaller(struct stook_sheaf *sheaf, void *smaller)
{
        *(unsigned *)smaller += stook_sheaf_capacity(sheaf) < 8;
}

/*
 * Batches of objects of which a sheaf holds one: in the end they stay in a slot. (After small first
 * refills a smaller sheaf may stay as a spare that does.)
 */
static void test_sheaves_of_few_objects_grow_and_replace_the_smaller_ones(void **state)
{
        struct stook_cache *cache = stook_cache_create("few", 20000, NULL);
        struct stook_cache_stats warm, after;
        unsigned smaller = 0;

        (void)state;
        end_small_refills(cache);
        assert_int_equal(stats_of(cache).sheaf_capacity, 1);
        swing(cache, 10, 1);
        assert_int_equal(stats_of(cache).sheaf_capacity, 1);
        swing(cache, 10, 2000);
        warm = stats_of(cache);
        assert_int_equal(warm.sheaf_capacity, 8);
        swing(cache, 10, 100);
        after = stats_of(cache);
        assert_int_equal(after.barn_get, warm.barn_get);
        assert_int_equal(after.barn_put, warm.barn_put);
        assert_int_equal(after.sheaf_refill, warm.sheaf_refill);
        assert_int_equal(after.sheaf_flush, warm.sheaf_flush);
        assert_int_equal(after.alloc_slowpath, warm.alloc_slowpath);

        stook_sheaf_for_each(cache->barns.cache_index, count_smaller, &smaller);
        assert_int_equal(smaller, 0);
        gone(cache);
}

/* One visit of this slot's idle reaper, and no other: time does not count, fresh memory does. */
static void look(void)
{
        struct stook_span *fresh = stook_span_take(0, (size_t)8 << 20, 0);

        assert_non_null(fresh);
        for (int i = 0; i < 100; i++)
                stook_slot_reap_idle();
        stook_span_give(fresh);
        stook_pages_purge(0);
}

/* No barn is asked where a slot's own sheaves do. They stay as they are while they are used. */
static void test_grown_sheaves_stay_while_they_are_used(void **state)
{
        struct stook_cache *cache = stook_cache_create("used", 20000, NULL);

        (void)state;
        stook_pages_set_decay_ms(3600 * 1000);
        swing(cache, 10, 2000);
        assert_int_equal(stats_of(cache).sheaf_capacity, 8);
        for (int i = 0; i < 10; i++) {
                look();
                swing(cache, 10, 1);
        }
        assert_int_equal(stats_of(cache).sheaf_capacity, 8);
        for (int i = 0; i < 4; i++)
                look();
        assert_int_equal(stats_of(cache).sheaf_capacity, 1);
        assert_int_equal(stats_of(cache).objects_cached, 0);
        stook_pages_set_decay_ms(1000);
        gone(cache);
}

/* As many as no slot keeps, and back: the slot goes to its barn. */
static void use_slot(struct stook_cache *cache)
{
        static void *objects[3000];

        for (unsigned i = 0; i < 3000; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (unsigned i = 0; i < 3000; i++)
                stook_cache_free(cache, objects[i]);
}

static bool is_used(unsigned locked_slot)
{
        struct stook_slot_head *head = stook_slots_head(stook_regions.rseq_slots + locked_slot);

        return head && head->used;
}

/* What sheaves grow by is divided among slots that are used, not among those that are ready. */
static void test_a_slot_counts_when_it_is_used(void **state)
{
        struct stook_cache *cache = stook_cache_create("slots", 64, NULL);
        bool locked = !stook_regions.rseq_slots;
        unsigned count, more;

        (void)state;
        use_slot(cache);
        count = stook_barn_slots;
        assert_true(count > 0);
        if (!locked)
                stook_regions_ready(stook_regions.rseq_slots < 64 ? stook_regions.rseq_slots - 1
                                                                  : 63);
        assert_non_null(stook_regions_locked(0));
        assert_non_null(stook_regions_locked(1));
        assert_int_equal(stook_barn_slots, count);
        more = !is_used(0) + !is_used(1);
        assert_true(more > 0);
        for (unsigned i = 0; locked && i < 4; i++) {
                stook_inject.locked_slot = i % 2 + 1;
                use_slot(cache);
        }
        stook_inject.locked_slot = 0;
        if (locked)
                assert_int_equal(stook_barn_slots, count + more);
        gone(cache);
}

static void test_a_reserve_is_there(void **state)
{
        static void *objects[5000];
        struct stook_cache *cache = stook_cache_create("reserve", 200,
                                                       ARGS(.flags = STOOK_CACHE_NO_SHEAVES));
        size_t n;
        int slabs;

        (void)state;
        assert_int_equal(stook_cache_reserve(cache, 5000), 0);
        stook_inject.span_fail_from = 1;
        for (n = 0; n < 5000; n++) {
                objects[n] = stook_cache_alloc(cache);
                if (!objects[n])
                        break;
        }
        assert_int_equal(n, 5000);
        assert_int_equal(stook_cache_reserve(cache, 1000000), -ENOMEM);
        stook_inject.span_fail_from = 0;
        assert_int_equal(stook_cache_reserve(cache, 5000), 0);
        while (n)
                stook_cache_free(cache, objects[--n]);
        slabs = stook_cache_shrink(cache);
        assert_true((size_t)slabs * stats_of(cache).objects_per_slab >= 5000);
        assert_int_equal(stook_cache_reserve(cache, 0), 0);
        assert_int_equal(stook_cache_shrink(cache), 0);

        /* A destroy that is refused leaves it; one that is not gives it up. */
        assert_int_equal(stook_cache_reserve(cache, 1000), 0);
        slabs = stook_cache_shrink(cache);
        assert_true((size_t)slabs * stats_of(cache).objects_per_slab >= 1000);
        objects[0] = stook_cache_alloc(cache);
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        while (n < 1000)
                objects[++n] = stook_cache_alloc(cache);
        do
                stook_cache_free(cache, objects[n]);
        while (n--);
        assert_int_equal(stook_cache_shrink(cache), slabs);
        gone(cache);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_failed_destroy_begins_a_generation),
                cmocka_unit_test(test_the_first_refills_are_small),
                cmocka_unit_test(test_a_batch_of_a_sheaf_stays_in_one),
                cmocka_unit_test(test_nonsense_is_refused),
                cmocka_unit_test(test_what_is_asked_for_holds),
                cmocka_unit_test(test_what_swings_stays_above_the_slabs),
                cmocka_unit_test(test_sheaves_of_few_objects_grow_and_replace_the_smaller_ones),
                cmocka_unit_test(test_grown_sheaves_stay_while_they_are_used),
                cmocka_unit_test(test_a_slot_counts_when_it_is_used),
                cmocka_unit_test(test_a_reserve_is_there),
                cmocka_unit_test(test_tuned_under_load),
                cmocka_unit_test(test_the_first_refill_is_a_page),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
