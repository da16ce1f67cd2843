/*
 * What this proves: under each debug mode and kind of cache, every call does what it does without:
 * single, bulk, nolock and prefilled allocations, zeroes, groups, frees by RCU, destroy, shrink and
 * tune. Nothing is reported where nothing is wrong, and all objects are of the cache and aligned.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "report/report.h"

#define N    150                        /* more than a slab of some of the caches has */
#define FZPU (STOOK_CACHE_CHECK | STOOK_CACHE_RED_ZONE | STOOK_CACHE_POISON | \
              STOOK_CACHE_STORE_USER)

static const uint64_t modes[] = {
        STOOK_CACHE_CHECK, STOOK_CACHE_RED_ZONE, STOOK_CACHE_POISON, STOOK_CACHE_STORE_USER,
        STOOK_CACHE_MAY_FAIL, STOOK_CACHE_QUARANTINE,
        FZPU, FZPU | STOOK_CACHE_QUARANTINE,
};

struct kind {
        const char *name;
        size_t size, align;
        uint64_t flags;
        bool constructed;
};

static const struct kind kinds[] = {
        { "small", 8, 0, 0, false },
        { "one-byte", 1, 0, 0, false },
        { "odd", 100, 0, 0, false },
        { "aligned", 100, 64, 0, false },
        { "page", 4096, 4096, 0, false },
        { "largest", STOOK_OBJECT_MAX, 0, 0, false },
        { "lines", 72, 0, STOOK_CACHE_HWCACHE_ALIGN, false },
        { "merge", 72, 0, STOOK_CACHE_MERGE, false },
        { "random", 40, 0, STOOK_CACHE_RANDOM_ORDER, false },
        { "accounted", 61, 0, STOOK_CACHE_ACCOUNT, false },
        { "rcu", 56, 0, STOOK_CACHE_RCU, false },
        { "rcu-accounted", 57, 0, STOOK_CACHE_RCU | STOOK_CACHE_ACCOUNT, false },
        { "typesafe", 48, 0, STOOK_CACHE_TYPESAFE_BY_RCU, false },
        { "constructed", 64, 0, 0, true },
        { "constructed-typesafe", 64, 0, STOOK_CACHE_TYPESAFE_BY_RCU, true },
};

/* ---- an RCU whose grace periods end when the test says so ---- */

static struct stook_rcu_head *waiting[4096];
static void (*waiting_done[4096])(struct stook_rcu_head *head);
static unsigned n_waiting;

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        assert_true(n_waiting < 4096);
        waiting[n_waiting] = head;
        waiting_done[n_waiting++] = done;
}

static void grace(void)
{
        unsigned n = n_waiting;

        for (unsigned i = 0; i < n; i++)
                waiting_done[i](waiting[i]);
        memmove(waiting, waiting + n, (n_waiting - n) * sizeof(*waiting));
        memmove(waiting_done, waiting_done + n, (n_waiting - n) * sizeof(*waiting_done));
        n_waiting -= n;
}

static const struct stook_rcu by_hand = {
        .ops_size = sizeof(by_hand), .call = call, .barrier = grace,
};

/* ---- what is done with each cache ---- */

static void construct(void *object, void *data)
{
        (void)data;
        memset(object, 0x11, 64);
}

static struct stook_cache *create(const struct kind *kind, uint64_t mode)
{
        struct stook_cache_args args = {
                .args_size = sizeof(args), .align = kind->align, .flags = kind->flags | mode,
                .ctor = kind->constructed ? construct : NULL,
        };
        struct stook_cache *cache = stook_cache_create(kind->name, kind->size, &args);

        assert_non_null(cache);
        return cache;
}

/* All of it is the user's, and it is no one else's. */
static void fill(const struct kind *kind, struct stook_cache *cache, void *object, int i)
{
        assert_non_null(object);
        assert_ptr_equal(stook_object_cache(object), cache);
        assert_int_equal((uintptr_t)object % (kind->align ? kind->align : 1), 0);
        if (kind->constructed) {
                for (size_t k = 0; k < kind->size; k++)
                        assert_int_equal(((unsigned char *)object)[k], 0x11);
                return;
        }
        memset(object, i, kind->size);
}

static void check(const struct kind *kind, const void *object, int i)
{
        const unsigned char *bytes = object;

        if (kind->constructed)
                i = 0x11;
        assert_int_equal(bytes[0], i & 0xff);
        assert_int_equal(bytes[kind->size - 1], i & 0xff);
}

static size_t count_of(const struct kind *kind)
{
        return kind->size > 4096 ? 10 : N;
}

static void alone(const struct kind *kind, struct stook_cache *cache)
{
        size_t n = count_of(kind);
        void *objects[N];

        for (size_t i = 0; i < n; i++)
                fill(kind, cache, objects[i] = stook_cache_alloc(cache), (int)i);
        assert_int_equal(stook_cache_validate(cache), 0);
        for (size_t i = 0; i < n; i++)
                check(kind, objects[i], (int)i);
        for (size_t i = 0; i < n; i += 2)
                stook_cache_free(cache, objects[i]);
        assert_int_equal(stook_cache_validate(cache), 0);
        for (size_t i = 0; i < n; i += 2)
                fill(kind, cache, objects[i] = stook_cache_alloc_nolock(cache), (int)i);
        for (size_t i = 0; i < n; i++)
                check(kind, objects[i], (int)i);
        for (size_t i = 0; i < n; i++)
                stook_cache_free_nolock(cache, objects[i]);
}

static void in_bulk(const struct kind *kind, struct stook_cache *cache)
{
        size_t n = count_of(kind);
        void *objects[N];

        assert_int_equal(stook_cache_alloc_bulk(cache, 0, n, objects), 0);
        for (size_t i = 0; i < n; i++)
                fill(kind, cache, objects[i], (int)i);
        for (size_t i = 0; i < n; i++)
                check(kind, objects[i], (int)i);
        stook_cache_free_bulk(cache, n / 2, objects);
        stook_cache_free_bulk(NULL, n - n / 2, objects + n / 2);
}

static void zeroed(const struct kind *kind, struct stook_cache *cache)
{
        unsigned char *object;

        if (kind->constructed) {
                errno = 0;
                assert_null(stook_cache_zalloc(cache));
                assert_int_equal(errno, EINVAL);
                return;
        }
        assert_non_null(object = stook_cache_zalloc(cache));
        for (size_t k = 0; k < kind->size; k++)
                assert_int_equal(object[k], 0);
        stook_cache_free(cache, object);
}

/* The rest of a sheaf goes back as it came: those objects were never handed out. */
static void prefilled(const struct kind *kind, struct stook_cache *cache)
{
        unsigned flags = kind->constructed ? 0 : STOOK_ALLOC_ZERO;
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, flags, 10);
        void *objects[7];

        assert_non_null(sheaf);
        for (int i = 0; i < 7; i++) {
                assert_non_null(objects[i] = stook_sheaf_alloc(cache, sheaf));
                if (flags)
                        check(kind, objects[i], 0);
                fill(kind, cache, objects[i], i);
        }
        assert_int_equal(stook_sheaf_refill(cache, flags, &sheaf, 5), 0);
        assert_int_equal(stook_cache_validate(cache), 0);
        for (int i = 0; i < 7; i++) {
                check(kind, objects[i], i);
                stook_cache_free(cache, objects[i]);
        }
        stook_sheaf_return(cache, sheaf);
}

/* A reader sees the object as it was until the grace period is over. */
static void by_rcu(const struct kind *kind, struct stook_cache *cache)
{
        void *objects[20];

        for (int i = 0; i < 20; i++) {
                int error;

                fill(kind, cache, objects[i] = stook_cache_alloc(cache), i);
                error = i % 2 ? stook_cache_free_rcu(cache, objects[i])
                              : stook_cache_free_rcu_nolock(cache, objects[i]);
                assert_int_equal(error, 0);
        }
        assert_int_equal(stook_cache_validate(cache), 0);
        for (int i = 0; i < 20; i++)
                check(kind, objects[i], i);
        stook_cache_rcu_barrier(cache);
}

static void in_a_group(const struct kind *kind, struct stook_cache *cache)
{
        struct stook_group *group, *before;
        void *objects[5];

        if (!(kind->flags & STOOK_CACHE_ACCOUNT))
                return;
        assert_non_null(group = stook_group_create("debugged", NULL, 1 << 20));
        before = stook_group_enter(group);
        for (int i = 0; i < 5; i++)
                fill(kind, cache, objects[i] = stook_cache_alloc(cache), i);
        stook_group_enter(before);
        for (int i = 0; i < 5; i++)
                stook_cache_free(cache, objects[i]);
        stook_group_destroy(group);
}

static void tuned(struct stook_cache *cache)
{
        struct stook_tuning tuning = { .tuning_size = sizeof(tuning), .sheaf_capacity = 8 };

        assert_int_equal(stook_cache_tune(cache, &tuning), -ENOTSUP);
        assert_int_equal(stook_cache_reserve(cache, 30), 0);
        assert_true(stook_cache_shrink(cache) >= 0);
        assert_int_equal(stook_cache_reserve(cache, 0), 0);
}

static void every_call_works(void **state)
{
        uint64_t reports = stook_report_count();

        (void)state;
        for (size_t m = 0; m < sizeof(modes) / sizeof(*modes); m++)
                for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
                        struct stook_cache *cache = create(&kinds[k], modes[m]);

                        alone(&kinds[k], cache);
                        in_bulk(&kinds[k], cache);
                        zeroed(&kinds[k], cache);
                        prefilled(&kinds[k], cache);
                        by_rcu(&kinds[k], cache);
                        in_a_group(&kinds[k], cache);
                        tuned(cache);
                        assert_int_equal(stook_cache_validate(cache), 0);
                        assert_int_equal(stook_cache_destroy(cache), 0);
                }
        assert_int_equal(stook_report_count(), reports);
}

/* ---- what free objects look like ---- */

static void poison_is_where_none_minds(void **state)
{
        struct stook_cache *poisoned = create(&kinds[2], STOOK_CACHE_POISON);
        struct stook_cache *typesafe = create(&kinds[12], FZPU);
        unsigned char *object = stook_cache_alloc(poisoned), *stable = stook_cache_alloc(typesafe);

        (void)state;
        memset(object, 1, 100);
        memset(stable, 1, 48);
        stook_cache_free(poisoned, object);
        stook_cache_free(typesafe, stable);
        assert_int_equal(object[0], 0x6b);
        assert_int_equal(object[98], 0x6b);
        assert_int_equal(object[99], 0xa5);
        assert_int_equal(stable[0], 1);
        assert_int_equal(stook_cache_destroy(poisoned), 0);
        assert_int_equal(stook_cache_destroy(typesafe), 0);
}

static void the_quarantine_is_bounded_and_first_in_first_out(void **state)
{
        struct stook_cache *cache = create(&kinds[4], STOOK_CACHE_QUARANTINE | STOOK_CACHE_POISON);
        void *first = stook_cache_alloc(cache), *object;
        unsigned frees = 0;

        (void)state;
        stook_cache_free(cache, first);
        /* 1 MiB has room for 128 of these, with their zones. It comes back when it has left. */
        do {
                assert_non_null(object = stook_cache_alloc(cache));
                stook_cache_free(cache, object);
                frees++;
        } while (object != first && frees < 10000);
        assert_ptr_equal(object, first);
        assert_in_range(frees, 100, 1000);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Before the start of any cache that uses RCU. */
static int setup(void **state)
{
        (void)state;
        return stook_rcu_use(&by_hand);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_call_works),
                cmocka_unit_test(poison_is_where_none_minds),
                cmocka_unit_test(the_quarantine_is_bounded_and_first_in_first_out),
        };

        return cmocka_run_group_tests(tests, setup, NULL);
}
