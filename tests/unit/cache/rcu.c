/*
 * Proves of frees that wait for readers, under an RCU whose grace periods end when the test says so: objects are
 * untouched until then and free after it; full sheaves come back through the barn; barriers leave nothing out;
 * free_rcu and then destroy is legal; and the answers where it cannot be done.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <stook/stook.h>
#include "barn/sheaf.h"
#include "base/compiler.h"
#include "cache/cache_rcu.h"

/* ---- an RCU with grace periods by hand; one thread ---- */

static struct pending {
        struct stook_rcu_head *head;
        void (*done)(struct stook_rcu_head *head);
} pending[100000];
static size_t n_pending, calls;
static int may_wait = 1;

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        pending[n_pending++] = (struct pending){ head, done };
        calls++;
}

static void grace(void)
{
        size_t n = n_pending;

        for (size_t i = 0; i < n; i++) {
                /* these words are the implementation's: it may write there */
                memset(pending[i].head, 0xee, sizeof(*pending[i].head));
                pending[i].done(pending[i].head);
        }
        memmove(pending, pending + n, (n_pending - n) * sizeof(*pending));
        n_pending -= n;
}

static int does_it(void)
{
        return may_wait;
}

static const struct stook_rcu by_hand = {
        .ops_size = sizeof(by_hand), .call = call, .barrier = grace, .may_wait = does_it,
};

static struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_cache_stats(cache, &stats), 0);
        return stats;
}

#define SIZE 72

static struct stook_cache *new_cache(uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags, .rcu = &by_hand };
        struct stook_cache *cache = stook_cache_create("rcu", SIZE, &args);

        assert_non_null(cache);
        return cache;
}

/* ---- what it does ---- */

static void test_an_object_is_untouched_until_its_readers_have_left(void **state)
{
        enum { N = 1000 };
        static char *objects[N];
        struct stook_cache *cache = new_cache((uint64_t)(uintptr_t)*state);

        for (int i = 0; i < N; i++) {
                objects[i] = stook_cache_alloc(cache);
                assert_non_null(objects[i]);
                memset(objects[i], i, SIZE);
        }
        for (int i = 0; i < N; i++)
                assert_int_equal(stook_cache_free_rcu(cache, objects[i]), 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stats_of(cache).free_rcu_sheaf, N);
        assert_true(n_pending > 0);
        /* Nor are they handed out again. */
        for (int i = 0; i < N; i++) {
                char *other = stook_cache_alloc(cache);

                for (int k = 0; k < N; k++)
                        assert_ptr_not_equal(other, objects[k]);
                memset(other, 0xff, SIZE);
        }
        for (int i = 0; i < N; i++)
                for (int b = 0; b < SIZE; b++)
                        assert_int_equal((unsigned char)objects[i][b], (unsigned char)i);
        assert_int_equal(stats_of(cache).objects_live, N);
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
}

static void test_full_sheaves_come_back_through_the_barn(void **state)
{
        enum { N = 600 };
        void *objects[N];
        struct stook_cache *cache = new_cache(0);
        struct stook_cache_stats before, after;

        (void)state;
        for (int i = 0; i < N; i++)
                objects[i] = stook_cache_alloc(cache);
        for (int i = 0; i < N; i++)
                assert_int_equal(stook_cache_free_rcu(cache, objects[i]), 0);
        before = stats_of(cache);
        assert_int_equal(n_pending, N / before.sheaf_capacity + 1);     /* and the one that looks after open sheaves */
        grace();
        after = stats_of(cache);
        assert_int_equal(after.barn_put - before.barn_put, N / before.sheaf_capacity);
        assert_int_equal(after.sheaf_flush, before.sheaf_flush);
        assert_int_equal(after.free_rcu_sheaf, N);
        for (int i = 0; i < N; i++)
                objects[i] = stook_cache_alloc(cache);
        assert_true(stats_of(cache).barn_get >= after.barn_get + N / before.sheaf_capacity - 1);
        stook_cache_free_bulk(cache, N, objects);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_free_rcu_then_destroy_is_legal(void **state)
{
        (void)state;
        for (int n = 1; n < 200; n += 7) {
                struct stook_cache *cache = new_cache(n & 1 ? STOOK_RCU : 0);

                for (int i = 0; i < n; i++)
                        assert_int_equal(stook_cache_free_rcu(cache, stook_cache_alloc(cache)), 0);
                assert_int_equal(stook_cache_destroy(cache), 0);
                assert_int_equal(n_pending, 0);
        }
}

static void test_nolock_never_calls_the_implementation(void **state)
{
        struct stook_cache *cache = new_cache(0);
        size_t before = calls;

        (void)state;
        for (int i = 0; i < 1000; i++)
                assert_int_equal(stook_cache_free_rcu_nolock(cache, stook_cache_alloc(cache)), 0);
        assert_int_equal(calls, before);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_true(calls > before);
}

static void test_without_a_sheaf_there_is_the_hidden_word(void **state)
{
        struct stook_cache *cache = new_cache(STOOK_RCU), *other = new_cache(0);
        void *objects[100], *kept = stook_cache_alloc(other);

        (void)state;
        assert_true(stats_of(cache).slot_size >= SIZE + 8);
        for (int i = 0; i < 100; i++)
                objects[i] = memset(stook_cache_alloc(cache), i, SIZE);
        stook_sheaf_fail_every = 1;
        for (int i = 0; i < 100; i++)
                assert_int_equal(stook_cache_free_rcu(cache, objects[i]), 0);
        assert_int_equal(stook_cache_free_rcu(other, kept), -EAGAIN);
        stook_sheaf_fail_every = 0;
        assert_true(stats_of(cache).free_rcu_sheaf_fail > 0);
        for (int i = 0; i < 100; i++)
                for (int b = 0; b < SIZE; b++)
                        assert_int_equal(((unsigned char *)objects[i])[b], i);
        stook_cache_rcu_barrier(cache);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        stook_cache_free(other, kept);
        assert_int_equal(stook_cache_destroy(other), 0);
}

/* ---- type-stable caches ---- */

/* Freed, given up by a shrink, destroyed even: a reader finds what was there, and nobody else, until a grace period. */
static void test_type_stable_memory_waits_for_readers(void **state)
{
        enum { N = 3000 };
        static unsigned char *objects[N];
        struct stook_cache *cache = new_cache(STOOK_TYPESAFE_BY_RCU);
        size_t slabs, bytes;
        int n_spans;

        (void)state;
        stook_rcu_barrier();
        grace();
        for (int i = 0; i < N; i++)
                objects[i] = memset(stook_cache_alloc(cache), i, SIZE);
        slabs = stats_of(cache).slabs;
        bytes = stats_of(cache).slab_bytes;
        for (int i = 0; i < N; i++)
                stook_cache_free(cache, objects[i]);
        assert_int_equal(stats_of(cache).slabs, slabs);         /* not by frees */
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        n_spans = (int)n_pending;
        assert_int_equal(n_spans, slabs);
        for (int i = 0; i < 200; i++) {
                unsigned char *other = stook_malloc(bytes + 150000);    /* pages for anybody */

                for (int k = 0; k < N; k++)
                        assert_false(objects[k] >= other && objects[k] < other + bytes + 150000);
                memset(other, 0xff, bytes + 150000);
                stook_free(other);
        }
        for (int i = 0; i < N; i++)
                for (int b = 0; b < SIZE; b++)
                        assert_int_equal(objects[i][b], (unsigned char)i);
        grace();
        assert_int_equal(n_pending, 0);
}

/* ---- the process's default, and malloc's objects ---- */

static void test_without_an_rcu_it_says_so(void **state)
{
        struct stook_cache *cache = stook_cache_create("none", SIZE, NULL);
        void *object = stook_cache_alloc(cache), *other = stook_malloc(1 << 20);
        struct stook_rcu wrong = by_hand;

        (void)state;
        assert_int_equal(stook_cache_free_rcu(cache, object), -ENOTSUP);
        assert_int_equal(stook_free_rcu(other), -ENOTSUP);
        stook_cache_rcu_barrier(cache);
        stook_rcu_barrier();
        wrong.ops_size--;
        assert_int_equal(stook_rcu_use(&wrong), -EINVAL);
        assert_int_equal(stook_rcu_use(NULL), -EINVAL);
        stook_cache_free(cache, object);
        stook_free(other);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_any_object_of_malloc(void **state)
{
        static const size_t sizes[] = { 1, 100, 5000, 60000, 128 << 10, 200 << 10, 5 << 20 };
        static const struct stook_rcu another = { .ops_size = sizeof(another), .call = call, .barrier = grace };
        char *objects[STOOK_ARRAY_SIZE(sizes)];

        (void)state;
        assert_int_equal(stook_rcu_use(&another), 0);   /* nothing was freed yet */
        assert_int_equal(stook_rcu_use(&by_hand), 0);
        for (int round = 0; round < 50; round++) {
                for (size_t i = 0; i < STOOK_ARRAY_SIZE(sizes); i++) {
                        objects[i] = memset(stook_malloc(sizes[i]), (int)i + round, sizes[i]);
                        assert_int_equal(stook_free_rcu(objects[i]), 0);
                }
                for (size_t i = 0; i < STOOK_ARRAY_SIZE(sizes); i++)
                        for (size_t b = 0; b < sizes[i]; b += 777)
                                assert_int_equal((unsigned char)objects[i][b], (unsigned char)(i + (size_t)round));
                if (round % 10 == 9)
                        grace();
        }
        stook_rcu_barrier();
        assert_int_equal(n_pending, 0);
        assert_int_equal(stook_rcu_use(&another), -EBUSY);
        assert_int_equal(stook_rcu_use(&by_hand), 0);
        assert_false(stook_owns(objects[STOOK_ARRAY_SIZE(sizes) - 1]));
}

static void test_any_object_without_calling_the_implementation(void **state)
{
        static const size_t sizes[] = { 1, 100, 5000, 60000, 200 << 10, 5 << 20 };
        struct stook_cache *cache = new_cache(0);
        size_t before = calls;
        char *object;

        (void)state;
        for (int round = 0; round < 50; round++)
                for (size_t i = 0; i < STOOK_ARRAY_SIZE(sizes); i++) {
                        object = memset(stook_malloc(sizes[i]), 7, sizes[i]);
                        assert_int_equal(stook_free_rcu_nolock(object), 0);
                        for (size_t b = 0; b < sizes[i]; b += 777)
                                assert_int_equal(object[b], 7);
                }
        for (int i = 0; i < 200; i++)
                assert_int_equal(stook_free_rcu_nolock(stook_cache_alloc(cache)), 0);
        assert_int_equal(calls, before);
        assert_int_equal(stats_of(cache).objects_live, 0);
        stook_rcu_barrier();
        assert_true(calls > before);
        assert_int_equal(n_pending, 0);
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* ---- what it refuses ---- */

static unsigned reports;
static enum stook_fault fault;

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        fault = report->fault;
}

/* No grace period ever ends: readers are stalled. */
static void test_what_waits_is_bounded(void **state)
{
        enum { LIMIT = 100000, N = 20000 };
        struct stook_cache *cache = new_cache(0), *sure = new_cache(STOOK_RCU);
        uint64_t slack = stats_of(cache).sheaf_capacity * stats_of(cache).slot_size;
        static void *kept[N];
        int refused = 0;

        (void)state;
        stook_rcu_barrier();
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_rcu_limit(LIMIT, 0), 0);
        for (int i = 0; i < N; i++) {
                void *object = stook_cache_alloc(cache);
                int error = i & 1 ? stook_cache_free_rcu(cache, object) : stook_cache_free_rcu_nolock(cache, object);

                assert_true(error == 0 || error == -EAGAIN);
                if (error)
                        kept[refused++] = object;
        }
        assert_true(refused > 0);
        assert_true(stook_rcu_backlog() >= LIMIT && stook_rcu_backlog() < LIMIT + slack);
        /* At most what is in open sheaves went besides. */
        assert_true((uint64_t)(N - refused) * stats_of(cache).slot_size < LIMIT + 20 * slack);
        /* Not these: but it is told, once. */
        stook_on_report(note, NULL);
        reports = 0;
        for (int i = 0; i < 500; i++)
                assert_int_equal(stook_cache_free_rcu(sure, stook_cache_alloc(sure)), 0);
        assert_int_equal(reports, 1);
        assert_int_equal(fault, STOOK_FAULT_RCU);
        stook_on_report(NULL, NULL);
        /* The readers leave. */
        stook_rcu_barrier();
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_free_rcu(cache, kept[--refused]), 0);
        assert_int_equal(stook_rcu_limit(0, 1000), 0);
        while (refused)
                assert_int_equal(stook_cache_free_rcu(cache, kept[--refused]), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_cache_destroy(sure), 0);
}

static struct stook_cache *busy;

static void barrier_inside(struct stook_rcu_head *head)
{
        (void)head;
        stook_cache_rcu_barrier(busy);
        stook_rcu_barrier();
}

/* All that waits was put by by handlers: the ordinary call that finds it too much hands it in, or nothing would ever become less. */
static void test_what_nolock_calls_put_by_does_not_refuse_for_ever(void **state)
{
        enum { LIMIT = 100000, N = 20000 };
        struct stook_cache *cache = new_cache(0);
        static void *kept[N];
        int n = 0;

        (void)state;
        stook_rcu_barrier();
        assert_int_equal(stook_rcu_limit(LIMIT, 0), 0);
        do
                assert_true(n < N);
        while (!stook_cache_free_rcu_nolock(cache, kept[n++] = stook_cache_alloc(cache)));
        assert_true(stook_rcu_backlog() >= LIMIT);
        n--;
        if (stook_cache_free_rcu(cache, kept[n]))
                grace();
        else
                kept[n] = stook_cache_alloc(cache);
        grace();
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_free_rcu(cache, kept[n]), 0);
        assert_int_equal(stook_rcu_limit(0, 1000), 0);
        stook_rcu_barrier();
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_a_barrier_that_could_not_end_is_reported(void **state)
{
        struct stook_rcu_head head;

        (void)state;
        stook_on_report(note, NULL);
        busy = new_cache(0);
        assert_int_equal(stook_cache_free_rcu(busy, stook_cache_alloc(busy)), 0);
        reports = 0;
        may_wait = 0;
        barrier_inside(&head);
        may_wait = 1;
        assert_int_equal(reports, 2);
        assert_int_equal(fault, STOOK_FAULT_RCU);
        assert_int_equal(stook_cache_destroy(busy), 0);
        stook_on_report(NULL, NULL);
}

static void test_what_is_no_object_is_reported(void **state)
{
        struct stook_cache *cache = new_cache(0), *other = new_cache(0);
        char *object = stook_cache_alloc(cache), *of_other = stook_cache_alloc(other);

        (void)state;
        stook_on_report(note, NULL);
        reports = 0;
        assert_int_equal(stook_cache_free_rcu(cache, object + 8), -EINVAL);
        assert_int_equal(fault, STOOK_FAULT_INTERIOR);
        assert_int_equal(stook_cache_free_rcu(cache, of_other), -EINVAL);
        assert_int_equal(fault, STOOK_FAULT_WRONG_CACHE);
        assert_int_equal(stook_free_rcu(&reports), -EINVAL);
        assert_int_equal(fault, STOOK_FAULT_FOREIGN);
        assert_int_equal(reports, 3);
        assert_int_equal(stook_cache_free_rcu(cache, NULL), 0);
        assert_int_equal(stook_free_rcu(NULL), 0);
        stook_on_report(NULL, NULL);
        assert_int_equal(stook_cache_free_rcu(cache, object), 0);
        stook_cache_free(other, of_other);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_cache_destroy(other), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_without_an_rcu_it_says_so),
                cmocka_unit_test_prestate(test_an_object_is_untouched_until_its_readers_have_left, (void *)(uintptr_t)0),
                cmocka_unit_test_prestate(test_an_object_is_untouched_until_its_readers_have_left,
                                          (void *)(uintptr_t)STOOK_RCU),
                cmocka_unit_test(test_full_sheaves_come_back_through_the_barn),
                cmocka_unit_test(test_free_rcu_then_destroy_is_legal),
                cmocka_unit_test(test_nolock_never_calls_the_implementation),
                cmocka_unit_test(test_without_a_sheaf_there_is_the_hidden_word),
                cmocka_unit_test(test_type_stable_memory_waits_for_readers),
                cmocka_unit_test(test_any_object_of_malloc),
                cmocka_unit_test(test_any_object_without_calling_the_implementation),
                cmocka_unit_test(test_what_waits_is_bounded),
                cmocka_unit_test(test_what_nolock_calls_put_by_does_not_refuse_for_ever),
                cmocka_unit_test(test_a_barrier_that_could_not_end_is_reported),
                cmocka_unit_test(test_what_is_no_object_is_reported),
        };

        stook_rcu_round_ms = 0;                 /* each grace() is a round */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
