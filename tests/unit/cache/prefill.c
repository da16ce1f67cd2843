/*
 * What this proves: prefilled sheaves do what <stook/sheaf.h> says:
 *  - where a sheaf comes from and goes to, each counted;
 *  - more objects than a sheaf holds, and caches without sheaves;
 *  - zeroed objects;
 *  - refills, and refills that fail;
 *  - misuse, reported;
 *  - a sheaf on loan at destroy;
 *  - every count and object in its place afterwards.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "cache/cache.h"
#include "pages/span.h"
#include "report/report.h"

#define ARGS(...) \
        (&(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args), __VA_ARGS__ })
#define CAPACITY 64                     /* of 64-byte objects */
#define MANY     (CAPACITY * 5)

static struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        assert_int_equal(s.objects_live,
                         s.alloc_fastpath + s.alloc_slowpath - s.free_fastpath - s.free_slowpath);
        assert_int_equal(s.objects_cached,
                         s.sheaf_refill + s.free_fastpath - s.alloc_fastpath - s.sheaf_flush);
        assert_int_equal(s.sheaves, s.sheaf_alloc - s.sheaf_free);
        assert_int_equal(s.slabs, s.alloc_slab - s.free_slab);
        return s;
}

static struct stook_cache *cache_of(const char *name, const struct stook_cache_args *args)
{
        /* Barns of a fixed size: neither they nor sheaves grow by themselves. */
        struct stook_cache *cache = stook_cache_create(
                name, 64, args ? args : ARGS(.barn_full = 10, .barn_empty = 10));

        assert_non_null(cache);
        return cache;
}

static void gone(struct stook_cache *cache)
{
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Takes and frees @n objects one by one: all different, all usable. */
static void take(struct stook_cache *cache, struct stook_sheaf *sheaf, size_t n, void **objects)
{
        for (size_t i = 0; i < n; i++) {
                objects[i] = stook_sheaf_alloc(cache, sheaf);
                assert_non_null(objects[i]);
                assert_ptr_equal(stook_object_cache(objects[i]), cache);
                memset(objects[i], (int)i | 1, 64);
        }
        for (size_t i = 0; i < n; i++)
                for (size_t byte = 0; byte < 64; byte++)
                        assert_int_equal(((unsigned char *)objects[i])[byte],
                                         (unsigned char)(i | 1));
}

static void a_sheaf_is_the_slots_spare_and_goes_back_there(void **state)
{
        struct stook_cache *cache = cache_of("spare", NULL);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 5), *again;
        void *objects[CAPACITY];

        (void)state;
        assert_non_null(sheaf);
        assert_int_equal(stook_sheaf_available(sheaf), CAPACITY);
        assert_int_equal(stats_of(cache).sheaf_prefill_slow, 1);        /* nothing there yet */
        take(cache, sheaf, 10, objects);
        assert_int_equal(stook_sheaf_available(sheaf), CAPACITY - 10);
        assert_int_equal(stats_of(cache).objects_live, 10);
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(stats_of(cache).sheaf_return_fast, 1);

        again = stook_sheaf_prefill(cache, 0, CAPACITY - 10);
        assert_ptr_equal(again, sheaf);
        assert_int_equal(stook_sheaf_available(again), CAPACITY - 10);  /* enough: not filled */
        stook_sheaf_return(cache, again);
        again = stook_sheaf_prefill(cache, 0, CAPACITY - 9);
        assert_ptr_equal(again, sheaf);
        assert_int_equal(stook_sheaf_available(again), CAPACITY); /* too few: filled to the top */
        assert_int_equal(stats_of(cache).sheaf_prefill_fast, 2);
        assert_int_equal(stats_of(cache).sheaf_prefill_slow, 1);
        stook_sheaf_return(cache, again);
        stook_cache_free_bulk(cache, 10, objects);
        assert_int_equal(stats_of(cache).sheaf_return_fast, 3);
        assert_int_equal(stats_of(cache).objects_live, 0);
        gone(cache);
}


static void the_barn_gives_and_takes_where_the_slot_does_not(void **state)
{
        struct stook_cache *cache = cache_of("barn", NULL);
        struct stook_sheaf *sheaves[14];
        struct stook_cache_stats s;

        (void)state;
        for (int i = 0; i < 14; i++) {
                sheaves[i] = stook_sheaf_prefill(cache, 0, 1);
                assert_non_null(sheaves[i]);
                for (int k = 0; k < i; k++)
                        assert_ptr_not_equal(sheaves[i], sheaves[k]);
        }
        s = stats_of(cache);
        assert_int_equal(s.sheaf_prefill_slow, 14);
        assert_int_equal(s.barn_get_fail, 14);
        assert_int_equal(s.sheaf_alloc, 14);
        stook_cache_free(
                cache,
                stook_sheaf_alloc(cache, sheaves[3])); /* into the slabs, or a slot: no matter */
        assert_int_equal(stook_cache_shrink(cache), stats_of(cache).slabs);
        for (int i = 0; i < 14; i++)
                stook_sheaf_return(cache, sheaves[i]);
        s = stats_of(cache);
        assert_int_equal(s.sheaf_return_fast, 1);
        assert_int_equal(s.sheaf_return_slow, 13);
        assert_int_equal(s.barn_put, 10);               /* sheaf 3 filled up first */
        assert_int_equal(s.sheaf_flush, 3 * CAPACITY + 1);
        assert_int_equal(s.objects_cached, 11 * CAPACITY);
        for (int i = 0; i < 14; i++) {
                sheaves[i] = stook_sheaf_prefill(cache, 0, CAPACITY);
                assert_non_null(sheaves[i]);
        }
        s = stats_of(cache);
        assert_int_equal(s.sheaf_prefill_fast, 1);
        assert_int_equal(s.barn_get, 10);
        assert_int_equal(s.barn_get_fail, 14 + 3); /* the last three were empty ones of the barn */
        assert_int_equal(s.sheaf_alloc, 15);            /* one for the free of a single object */
        for (int i = 0; i < 14; i++)
                stook_sheaf_return(cache, sheaves[i]);
        gone(cache);
}

/*
 * {any main, a spare that is neither full nor empty}: what only a return leaves. Misses must live
 * with it.
 */
static void a_partly_filled_spare_is_used_up_and_filled(void **state)
{
        (void)state;
        for (unsigned left = 0; left <= CAPACITY; left++) {
                struct stook_cache *cache = cache_of("partly", NULL);
                struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, CAPACITY);
                void *taken[CAPACITY], *many[MANY];

                take(cache, sheaf, CAPACITY - left, taken);
                stook_sheaf_return(cache, sheaf);
                for (int i = 0; i < MANY; i++)
                        assert_non_null(many[i] = stook_cache_alloc(cache));
                stook_cache_free_bulk(cache, CAPACITY - left, taken);
                sheaf = stook_sheaf_prefill(cache, 0, CAPACITY);
                take(cache, sheaf, CAPACITY - left, taken);
                stook_sheaf_return(cache, sheaf);
                for (int i = 0; i < MANY; i++)
                        stook_cache_free(cache, many[i]);
                assert_int_equal(stats_of(cache).objects_live, CAPACITY - left);
                for (unsigned i = 0; i < CAPACITY - left; i++)
                        stook_cache_free(cache, taken[i]);
                assert_int_equal(stats_of(cache).objects_live, 0);
                gone(cache);
        }
}

static void more_than_a_sheaf_holds_is_made_to_measure(void **state)
{
        static const size_t sizes[] = { CAPACITY + 1, 500, 5000, 65534 };
        static void *objects[65534];
        struct stook_cache *cache = cache_of("oversize", NULL);

        (void)state;
        for (unsigned i = 0; i < 4; i++) {
                struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, sizes[i]);
                size_t some = sizes[i] / 3;

                assert_non_null(sheaf);
                assert_int_equal(stook_sheaf_available(sheaf), sizes[i]);
                assert_int_equal(stats_of(cache).sheaf_prefill_oversize, i + 1);
                take(cache, sheaf, some, objects);
                stook_cache_free_bulk(cache, some, objects);
                assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, sizes[i]), 0);
                assert_int_equal(stook_sheaf_available(sheaf), sizes[i]);
                for (size_t k = 0; k < sizes[i]; k++)
                        assert_non_null(objects[k] = stook_sheaf_alloc(cache, sheaf));
                assert_null(stook_sheaf_alloc(cache, sheaf));
                stook_sheaf_return(cache, sheaf);
                stook_cache_free_bulk(cache, sizes[i], objects);
        }
        assert_int_equal(stats_of(cache).sheaf_return_slow, 4);
        assert_int_equal(stats_of(cache).sheaf_return_fast, 0);
        gone(cache);
}

static void caches_without_sheaves_lend_them_all_the_same(void **state)
{
        struct stook_cache *cache = cache_of("none", ARGS(.flags = STOOK_NO_SHEAVES));
        void *objects[30];

        (void)state;
        for (unsigned round = 1; round <= 5; round++) {
                struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 30);

                assert_non_null(sheaf);
                assert_int_equal(stook_sheaf_available(sheaf), 30);
                take(cache, sheaf, 30, objects);
                assert_null(stook_sheaf_alloc(cache, sheaf));
                stook_cache_free_bulk(cache, 30, objects);
                stook_sheaf_return(cache, sheaf);
                assert_int_equal(stats_of(cache).sheaf_prefill_oversize, round);
                assert_int_equal(stats_of(cache).sheaf_return_slow, round);
                assert_int_equal(stats_of(cache).sheaves, 0);
        }
        gone(cache);
}

static unsigned dirty_bytes(const unsigned char *object)
{
        unsigned dirty = 0;

        for (int i = 0; i < 64; i++)
                dirty += object[i] != 0;
        return dirty;
}

static void objects_are_zeroed_on_request(void **state)
{
        struct stook_cache *cache = cache_of("zero", NULL);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, CAPACITY);
        void *objects[CAPACITY];
        unsigned dirty = 0;

        (void)state;
        take(cache, sheaf, CAPACITY, objects);
        stook_cache_free_bulk(cache, CAPACITY, objects);
        stook_sheaf_return(cache, sheaf);
        for (int round = 0; round < 3; round++) {
                sheaf = stook_sheaf_prefill(cache, STOOK_ZERO | STOOK_NOWAIT, 20);
                for (int i = 0; i < 10; i++) {
                        objects[i] = stook_sheaf_alloc(cache, sheaf);
                        assert_int_equal(dirty_bytes(objects[i]), 0);
                        memset(objects[i], 0xee, 64);
                }
                assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 10), 0);
                objects[10] = stook_sheaf_alloc(cache, sheaf);
                dirty += dirty_bytes(objects[10]);
                assert_int_equal(stook_sheaf_refill(cache, STOOK_ZERO, &sheaf, 5), 0);
                objects[11] = stook_sheaf_alloc(cache, sheaf);
                assert_int_equal(dirty_bytes(objects[11]), 0);
                memset(objects[11], 0xee, 64);
                stook_cache_free_bulk(cache, 12, objects);
                stook_sheaf_return(cache, sheaf);
        }
        assert_true(dirty > 0);                         /* without a request nothing is zeroed */
        gone(cache);
}

static void a_refill_keeps_or_replaces_the_sheaf(void **state)
{
        struct stook_cache *cache = cache_of("refill", NULL);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 5), *first = sheaf;
        void *objects[CAPACITY];

        (void)state;
        take(cache, sheaf, CAPACITY - 10, objects);
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 0), 0);
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 10), 0);
        assert_ptr_equal(sheaf, first);
        assert_int_equal(stook_sheaf_available(sheaf), 10); /* enough: nothing was done */
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 11), 0);
        assert_ptr_equal(sheaf, first);
        assert_int_equal(stook_sheaf_available(sheaf), CAPACITY);
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 1000), 0);
        assert_ptr_not_equal(sheaf, first);
        assert_int_equal(stook_sheaf_available(sheaf), 1000);
        assert_int_equal(stats_of(cache).sheaf_return_fast, 1);         /* the first one */
        assert_int_equal(stats_of(cache).sheaf_prefill_oversize, 1);
        stook_sheaf_return(cache, sheaf);
        stook_cache_free_bulk(cache, CAPACITY - 10, objects);
        gone(cache);
}

static void construct(void *object, void *data)
{
        (void)data;
        memset(object, 0, 64);
}

/* 0 objects are a number like any other, in caches with and without sheaves. */
static void no_objects_are_enough(void **state)
{
        struct stook_cache *caches[2] = { cache_of("none", NULL),
                                          cache_of("bare", ARGS(.flags = STOOK_NO_SHEAVES)) };

        (void)state;
        for (unsigned i = 0; i < 2; i++) {
                struct stook_sheaf *sheaf = stook_sheaf_prefill(caches[i], 0, 0), *same = sheaf;

                assert_non_null(sheaf);
                assert_int_equal(stook_sheaf_refill(caches[i], 0, &sheaf, 0), 0);
                assert_ptr_equal(sheaf, same);
                assert_int_equal(stook_sheaf_refill(caches[i], 0, &sheaf, 3), 0);
                assert_true(stook_sheaf_available(sheaf) >= 3);
                stook_sheaf_return(caches[i], sheaf);
                gone(caches[i]);
        }
}

/* The same flags as an allocation. */
static void all_flags_are_taken(void **state)
{
        unsigned flags = STOOK_ZERO | STOOK_THISNODE | STOOK_NOWAIT | STOOK_NOLOCK;
        struct stook_cache *cache = cache_of("flags", NULL);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, flags, 3);
        void *object;

        (void)state;
        assert_non_null(sheaf);
        assert_int_equal(stook_sheaf_refill(cache, flags, &sheaf, 5), 0);
        object = stook_sheaf_alloc(cache, sheaf);
        assert_non_null(object);
        for (unsigned i = 0; i < 64; i++)
                assert_int_equal(((char *)object)[i], 0);
        memset(object, 0x5a, 64);
        stook_cache_free(cache, object);
        stook_sheaf_return(cache, sheaf);
        gone(cache);
}

static void bad_arguments_are_refused(void **state)
{
        struct stook_cache *cache = cache_of("bad", NULL), *other = cache_of("other", NULL);
        struct stook_cache *made = cache_of("ctor", ARGS(.ctor = construct));
        static const struct { size_t n; unsigned flags; } bad[] = {
                { 65535, 0 }, { SIZE_MAX, 0 }, { 1, 16 }, { 0, 16 }, { 1, 1u << 31 },
        };
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 3), *same = sheaf, *none = NULL;

        (void)state;
        for (unsigned i = 0; i < 5; i++) {
                errno = 0;
                assert_null(stook_sheaf_prefill(cache, bad[i].flags, bad[i].n));
                assert_int_equal(errno, EINVAL);
                assert_int_equal(stook_sheaf_refill(cache, bad[i].flags, &sheaf, bad[i].n),
                                 -EINVAL);
        }
        errno = 0;
        assert_null(stook_sheaf_prefill(made, STOOK_ZERO, 1));
        assert_int_equal(errno, EINVAL);
        assert_int_equal(stook_sheaf_refill(cache, 0, NULL, 1), -EINVAL);
        assert_int_equal(stook_sheaf_refill(cache, 0, &none, 1), -EINVAL);
        assert_int_equal(stook_sheaf_refill(other, 0, &sheaf, 1), -EINVAL);
        assert_ptr_equal(sheaf, same);
        assert_int_equal(stook_sheaf_available(sheaf), CAPACITY);
        stook_sheaf_return(cache, NULL);
        errno = 4711;
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(errno, 4711);
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 1), -EINVAL); /* no longer on loan */
        gone(cache);
        gone(other);
        gone(made);
}

static unsigned reports;
static enum stook_fault told;
static char told_text[300];

static void on_report(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        told = report->fault;
        strncpy(told_text, report->text, sizeof(told_text) - 1);
}

static void misuse_is_reported_and_loses_nothing(void **state)
{
        struct stook_cache *cache = cache_of("misused", NULL), *other = cache_of("elsewhere", NULL);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 3);
        void *object;

        (void)state;
        stook_on_report(on_report, NULL);
        stook_report_set_policy(STOOK_ON_FAULT_LOG);
        reports = 0;
        stook_sheaf_return(other, sheaf);
        assert_int_equal(reports, 1);
        assert_int_equal(told, STOOK_FAULT_WRONG_CACHE);
        assert_non_null(strstr(told_text, "prefilled sheaf of cache misused"));
        assert_int_equal(stook_sheaf_available(sheaf), CAPACITY);       /* on loan as before */
        assert_non_null(object = stook_sheaf_alloc(cache, sheaf));
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(reports, 1);
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(reports, 2);
        assert_int_equal(told, STOOK_FAULT_DOUBLE_FREE);
        assert_non_null(strstr(told_text, "returned before"));
        stook_report_set_policy(STOOK_ON_FAULT_ABORT);
        stook_on_report(NULL, NULL);
        stook_cache_free(cache, object);
        gone(cache);
        gone(other);
}

static void a_loan_at_destroy_is_reported_and_the_cache_kept(void **state)
{
        struct stook_cache *cache = cache_of("lent", NULL);
        struct stook_sheaf *full = stook_sheaf_prefill(cache, 0, 3),
                           *empty = stook_sheaf_prefill(cache, 0, 200);
        static void *objects[200];

        (void)state;
        take(cache, empty, 200, objects);
        stook_on_report(on_report, NULL);
        reports = 0;
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        assert_int_equal(reports, 1 + 17); /* the loan; sixteen objects and their sum */
        assert_non_null(strstr(told_text, "200 still allocated"));
        stook_cache_free_bulk(cache, 200, objects);
        reports = 0;
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        assert_int_equal(reports, 1);
        assert_int_equal(told, STOOK_FAULT_OBJECTS_LEFT);
        assert_non_null(strstr(told_text,
                               "2 prefilled sheaves not returned at destroy, 64 objects in them"));
        stook_sheaf_return(cache, full);
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);   /* an empty one is a loan, too */
        assert_non_null(strstr(told_text,
                               "1 prefilled sheaves not returned at destroy, 0 objects in them"));
        assert_ptr_equal(stook_cache_find("lent"), cache);
        stook_sheaf_return(cache, empty);
        full = stook_sheaf_prefill(cache, 0, 3);                /* the cache works as ever */
        stook_sheaf_return(cache, full);
        reports = 0;
        gone(cache);
        assert_int_equal(reports, 0);
        stook_on_report(NULL, NULL);
}

static void without_memory_nothing_is_lost(void **state)
{
        struct stook_cache *cache = cache_of("oom", NULL);
        struct stook_sheaf *sheaf, *other;
        static void *objects[2000];
        uint64_t cached;

        (void)state;
        /* All pages fail: what slot, barn and slabs have can still be lent, and no more. */
        for (int i = 0; i < 500; i++)
                objects[i] = stook_cache_alloc(cache);
        for (int i = 0; i < 500; i++)
                stook_cache_free(cache, objects[i]);
        stook_inject.span_fail_from = 1;
        cached = stats_of(cache).objects_cached;
        assert_true(cached > 3 * CAPACITY);
        errno = 0;
        assert_null(stook_sheaf_prefill(cache, 0, 2000));
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(stats_of(cache).objects_live, 0);
        sheaf = stook_sheaf_prefill(cache, 0, 2 * CAPACITY);
        assert_non_null(sheaf);
        other = stook_sheaf_prefill(cache, 0, 1);
        assert_non_null(other);
        while (stook_cache_alloc_bulk(cache, 0, 1, objects) ==
               0) /* kept: nothing is left anywhere */
                ;
        assert_int_equal(stook_sheaf_refill(cache, 0, &other, 1000), -ENOMEM);
        cached = stook_sheaf_available(other);
        for (size_t i = 0; i < cached; i++)
                assert_non_null(stook_sheaf_alloc(cache, other));
        assert_null(stook_sheaf_alloc(cache, other));
        assert_int_equal(stook_sheaf_refill(cache, 0, &other, 1), -ENOMEM);
        stook_cache_free(cache, stook_sheaf_alloc(cache, sheaf));
        assert_int_equal(stook_sheaf_refill(cache, 0, &other, 2),
                         stook_sheaf_available(other) >= 2 ? 0 : -ENOMEM);
        stook_sheaf_return(cache, other);
        stook_sheaf_return(cache, sheaf);
        stook_inject.span_fail_from = 0;
        stats_of(cache);
        assert_int_equal(stook_cache_validate(cache), 0);
}

static void no_memory_for_sheaves(void **state)
{
        struct stook_cache *cache = cache_of("no sheaves", NULL);

        (void)state;
        stook_inject.sheaf_fail_every = 1;
        errno = 0;
        assert_null(stook_sheaf_prefill(cache, 0, 1));
        assert_int_equal(errno, ENOMEM);
        assert_null(stook_sheaf_prefill(cache, 0, 1000));
        stook_inject.sheaf_fail_every = 0;
        gone(cache);
}

/* A slot that refuses every n-th exchange, down to all of them: then the barn does it. */
static void a_slot_that_refuses_is_passed_by(void **state)
{
        (void)state;
        for (uint32_t every = 1; every < 4; every++) {
                struct stook_cache *cache = cache_of("refusing", NULL);

                stook_inject.lend_fail = every;
                for (int i = 0; i < 100; i++) {
                        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 7);

                        assert_non_null(sheaf);
                        stook_cache_free(cache, stook_sheaf_alloc(cache, sheaf));
                        stook_sheaf_return(cache, sheaf);
                }
                if (every == 1) {
                        assert_int_equal(stats_of(cache).sheaf_prefill_fast, 0);
                        assert_int_equal(stats_of(cache).sheaf_return_fast, 0);
                        assert_true(stats_of(cache).barn_get > 90);
                } else {
                        assert_true(stats_of(cache).sheaf_prefill_fast > 0);
                }
                stook_inject.lend_fail = 0;
                gone(cache);
        }
}

static void *take_all_and_return(void *sheaf)
{
        struct stook_cache *cache = stook_cache_find("handed over");
        uintptr_t taken = 0;
        void *object;

        while ((object = stook_sheaf_alloc(cache, sheaf))) {
                memset(object, 1, 64);
                stook_cache_free(cache, object);
                taken++;
        }
        stook_sheaf_return(cache, sheaf);
        return (void *)taken;
}

static void a_sheaf_may_be_handed_to_another_thread(void **state)
{
        struct stook_cache *cache = cache_of("handed over", NULL);

        (void)state;
        for (int i = 0; i < 20; i++) {
                struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 1 + 10 * (size_t)i);
                size_t has = stook_sheaf_available(sheaf);
                pthread_t thread;
                void *taken;

                assert_int_equal(pthread_create(&thread, NULL, take_all_and_return, sheaf), 0);
                pthread_join(thread, &taken);
                assert_int_equal((uintptr_t)taken, has);
        }
        assert_int_equal(stats_of(cache).objects_live, 0);
        gone(cache);
}

/* The child's copy is its own: it takes and returns, and its heap is whole; so is the parent's. */
static void a_child_of_fork_has_the_sheaf_too(void **state)
{
        struct stook_cache *cache = cache_of("forked", NULL);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 100);
        pid_t child = fork();
        int status;

        (void)state;
        assert_true(child >= 0);
        for (int i = 0; i < 100; i++)
                stook_cache_free(cache, stook_sheaf_alloc(cache, sheaf));
        stook_sheaf_return(cache, sheaf);
        if (!child)
                _exit(stook_cache_validate(cache) || stook_cache_destroy(cache));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        gone(cache);
}

/* Which sheaf is the spare is a matter of the CPU. */
static int stay_on_this_cpu(void **state)
{
        cpu_set_t one;

        (void)state;
        CPU_ZERO(&one);
        CPU_SET((unsigned)sched_getcpu(), &one);
        return sched_setaffinity(0, sizeof(one), &one);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_sheaf_is_the_slots_spare_and_goes_back_there),
                cmocka_unit_test(the_barn_gives_and_takes_where_the_slot_does_not),
                cmocka_unit_test(a_partly_filled_spare_is_used_up_and_filled),
                cmocka_unit_test(more_than_a_sheaf_holds_is_made_to_measure),
                cmocka_unit_test(caches_without_sheaves_lend_them_all_the_same),
                cmocka_unit_test(objects_are_zeroed_on_request),
                cmocka_unit_test(a_refill_keeps_or_replaces_the_sheaf),
                cmocka_unit_test(no_objects_are_enough),
                cmocka_unit_test(all_flags_are_taken),
                cmocka_unit_test(bad_arguments_are_refused),
                cmocka_unit_test(misuse_is_reported_and_loses_nothing),
                cmocka_unit_test(a_loan_at_destroy_is_reported_and_the_cache_kept),
                cmocka_unit_test(without_memory_nothing_is_lost),
                cmocka_unit_test(no_memory_for_sheaves),
                cmocka_unit_test(a_slot_that_refuses_is_passed_by),
                cmocka_unit_test(a_sheaf_may_be_handed_to_another_thread),
                cmocka_unit_test(a_child_of_fork_has_the_sheaf_too),
        };

        return cmocka_run_group_tests(tests, stay_on_this_cpu, NULL);
}
