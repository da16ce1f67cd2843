/*
 * What this proves, of prefilled sheaves (<stook/sheaf.h>): where a sheaf comes from, each way
 * counted; zeroed objects; refills, and refills that fail; arguments that are refused; a sheaf at
 * its mark; and that nothing is lost without memory, or where the slot refuses. Their return:
 * prefill_return.c. More objects than a sheaf holds: prefill_oversize.c.
 */
#include "unit/cache/lent.h"

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
                sheaf = stook_sheaf_prefill(cache, STOOK_ALLOC_ZERO | STOOK_ALLOC_NOWAIT, 20);
                for (int i = 0; i < 10; i++) {
                        objects[i] = stook_sheaf_alloc(cache, sheaf);
                        assert_int_equal(dirty_bytes(objects[i]), 0);
                        memset(objects[i], 0xee, 64);
                }
                assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 10), 0);
                objects[10] = stook_sheaf_alloc(cache, sheaf);
                dirty += dirty_bytes(objects[10]);
                assert_int_equal(stook_sheaf_refill(cache, STOOK_ALLOC_ZERO, &sheaf, 5), 0);
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
                                          cache_of("bare", ARGS(.flags = STOOK_CACHE_NO_SHEAVES)) };

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
        unsigned flags = STOOK_ALLOC_ZERO | STOOK_ALLOC_THISNODE | STOOK_ALLOC_NOWAIT |
                STOOK_ALLOC_NOLOCK;
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
        assert_null(stook_sheaf_prefill(made, STOOK_ALLOC_ZERO, 1));
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

/* The owner of a lent sheaf gives it a new count: the library's call, to which inlined ones go. */
static void a_sheaf_that_comes_to_its_mark(void **state)
{
        struct stook_cache *cache = cache_of("marked", NULL);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 5);
        void *objects[5];

        (void)state;
        sheaf->word = stook_word_rearmed(sheaf->word, 2);
        take(cache, sheaf, 2, objects);
        assert_true(stook_word_is_marked(sheaf->word));
        take(cache, sheaf, 3, objects + 2);
        assert_int_equal(stook_word_to_mark(sheaf->word), STOOK_WORD_COUNTS - 3);
        assert_int_equal(stats_of(cache).objects_live, 5);
        stook_sheaf_return(cache, sheaf);
        stook_cache_free_bulk(cache, 5, objects);
        assert_int_equal(stats_of(cache).alloc_fastpath, 5);
        gone(cache);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_sheaf_is_the_slots_spare_and_goes_back_there),
                cmocka_unit_test(the_barn_gives_and_takes_where_the_slot_does_not),
                cmocka_unit_test(objects_are_zeroed_on_request),
                cmocka_unit_test(a_refill_keeps_or_replaces_the_sheaf),
                cmocka_unit_test(no_objects_are_enough),
                cmocka_unit_test(all_flags_are_taken),
                cmocka_unit_test(bad_arguments_are_refused),
                cmocka_unit_test(without_memory_nothing_is_lost),
                cmocka_unit_test(no_memory_for_sheaves),
                cmocka_unit_test(a_slot_that_refuses_is_passed_by),
                cmocka_unit_test(a_sheaf_that_comes_to_its_mark),
        };

        return cmocka_run_group_tests(tests, stay_on_this_cpu, NULL);
}
