/*
 * What this proves: the table of slab_state.h, transition by transition, on one slab: from each state, by each of
 * take, push, list and release, to the state that the table says; and with the lock held by somebody else, who
 * finds on pending what was left for him (slab_partial.c P1, P2).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/lock.h"
#include "base/thread.h"
#include "fake_pages.h"
#include "pages/pagemap.h"
#include "slab/slab_partial.h"

static struct stook_slabs *slabs;
static void *objects[64];

/* 64 KiB: 16 objects of 4096 bytes; none of the empties kept unless a test says so. */
static int setup(void **unused)
{
        (void)unused;
        slabs = fake_source(3, 4096, 8, false, NULL, NULL);
        slabs->min_partial = 0;
        assert_int_equal(slabs->objects, 16);
        return 0;
}

static int teardown(void **unused)
{
        (void)unused;
        fake_source_end(slabs);
        assert_int_equal(fake_spans_taken(), 0);
        return 0;
}

static struct stook_slab *slab_of(const void *object)
{
        return stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)object)));
}

static uint64_t flags_of(struct stook_slab *slab)
{
        return stook_slab_word(slab) & STOOK_SLAB_FLAGS;
}

static void fill(size_t n)
{
        assert_int_equal(stook_slab_fill(slabs, 0, n, objects, STOOK_FILL_ASCENDING), n);
}

static void drain(size_t from, size_t n)
{
        void *gone[64];

        memcpy(gone, objects + from, n * sizeof(*gone));
        stook_slab_drain(slabs, n, gone);
}

static uint64_t counted(enum stook_counter which)
{
        return stook_counted(slabs->counters, which);
}

/* Somebody else holds the node's lock: a thread that waits is refused after a while. */
static void lock(void) { slabs->node[0].lock.word = 1; }
static void unlock(void) { slabs->node[0].lock.word = 0; }

static void test_new_remainder_listed(void **unused)
{
        (void)unused;
        fill(5);
        assert_int_equal(stook_slab_word(slab_of(objects[0])), stook_word(STOOK_PLACE_NONE, 5, 5, STOOK_SLAB_LISTED));
        assert_int_equal(slabs->node[0].partial, 1);
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 1);
        drain(0, 5);
}

static void test_take_all_is_full(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        fill(16);
        slab = slab_of(objects[0]);
        assert_int_equal(stook_slab_word(slab), stook_word(STOOK_PLACE_NONE, 16, 16, 0));
        assert_int_equal(slabs->node[0].partial, 0);
        drain(0, 16);
        assert_int_equal(fake_spans_taken(), 0);
}

static void test_push_full_lists_at_tail(void **unused)
{
        struct stook_slab *first, *second;

        (void)unused;
        fill(32);
        first = slab_of(objects[0]);
        second = slab_of(objects[16]);
        drain(20, 1);
        assert_int_equal(stook_slab_word(second), stook_word(4 * 4096 / 8, 15, 16, STOOK_SLAB_LISTED));
        assert_int_equal(counted(STOOK_STAT_free_add_partial), 1);
        drain(3, 1);
        assert_ptr_equal(slabs->node[0].list.next, &stook_slab_span(second)->list);
        assert_ptr_equal(slabs->node[0].list.prev, &stook_slab_span(first)->list);
        drain(0, 3); drain(4, 16); drain(21, 11);
}

static void test_push_listed_stays(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        fill(16);
        slab = slab_of(objects[0]);
        drain(0, 1);
        drain(1, 4);
        assert_int_equal(flags_of(slab), STOOK_SLAB_LISTED);
        assert_int_equal(stook_word_inuse(stook_slab_word(slab)), 11);
        assert_int_equal(counted(STOOK_STAT_free_add_partial), 1);
        drain(5, 11);
        assert_int_equal(counted(STOOK_STAT_free_remove_partial), 1);
        assert_int_equal(fake_spans_taken(), 0);
}

static void test_empty_kept_then_surplus(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        slabs->min_partial = 1;
        fill(32);
        slab = slab_of(objects[0]);
        drain(0, 16);
        assert_int_equal(stook_slab_word(slab) & ~UINT64_C(0xffff), stook_word(0, 0, 16, STOOK_SLAB_LISTED));
        assert_int_equal(fake_spans_taken(), 2);
        drain(16, 16);
        assert_int_equal(fake_spans_taken(), 1);        /* one was enough */
        fill(16);                                       /* from the kept one: no birth */
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 2);
        drain(0, 16);
}

static void test_detached_is_left_alone(void **unused)
{
        struct stook_slab *slab;
        bool left;
        uint64_t w;

        (void)unused;
        fill(16);
        slab = slab_of(objects[0]);
        drain(0, 4);
        stook_list_remove(&stook_slab_span(slab)->list);
        slabs->node[0].partial--;
        stook_slab_detach(slab, stook_self);
        assert_int_equal(flags_of(slab), STOOK_SLAB_DETACHED);
        drain(4, 2);
        assert_int_equal(flags_of(slab), STOOK_SLAB_DETACHED);
        drain(6, 10);                                   /* empty, but the filler's */
        assert_int_equal(flags_of(slab), STOOK_SLAB_DETACHED);
        assert_int_equal(stook_word_inuse(stook_slab_word(slab)), 0);
        /* a take that leaves something keeps the mark, a compare-and-swap with an old word fails */
        w = stook_slab_word(slab) ^ 1 << 16;
        assert_false(stook_slab_take(slab, &w, STOOK_PLACE_NONE, 16, 0, &left));
        assert_int_equal(counted(STOOK_STAT_cmpxchg_double_fail), 1);
        w = stook_slab_word(slab);
        assert_true(stook_slab_take(slab, &w, STOOK_PLACE_NONE, 16, 0, &left));
        assert_false(left);
        assert_int_equal(flags_of(slab), 0);
        drain(0, 16);
}

static void test_list_releases_surplus_only_without_claim(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        fill(1);
        slab = slab_of(objects[0]);
        /* empty, listed and claimed: its claimer is on the way; a filler detaches it */
        __atomic_store_n(&slab->word, stook_word(STOOK_PLACE_NONE, 0, 0, STOOK_SLAB_LISTED | STOOK_SLAB_CLAIM), __ATOMIC_RELAXED);
        stook_slab_detach(slab, stook_self);
        assert_true(stook_slab_list(slab, true));
        assert_int_equal(flags_of(slab), STOOK_SLAB_LISTED | STOOK_SLAB_CLAIM);
        assert_false(stook_slab_retire(slab));
        /* the claimer finds it empty and surplus, kept, detached by then, or full and off again */
        assert_int_equal(stook_slab_settle(slab, 1, 1), STOOK_SETTLED);
        assert_int_equal(flags_of(slab), STOOK_SLAB_LISTED);
        slab->word |= STOOK_SLAB_CLAIM;
        assert_int_equal(stook_slab_settle(slab, 2, 1), STOOK_SETTLED_UNLIST);
        assert_int_equal(flags_of(slab), STOOK_SLAB_RELEASING);
        slab->word = stook_word(STOOK_PLACE_NONE, 0, 0, STOOK_SLAB_DETACHED | STOOK_SLAB_CLAIM);
        assert_int_equal(stook_slab_settle(slab, 2, 1), STOOK_SETTLED);
        assert_int_equal(flags_of(slab), STOOK_SLAB_DETACHED);
        slab->word = stook_word(STOOK_PLACE_NONE, 16, 16, STOOK_SLAB_CLAIM);
        assert_int_equal(stook_slab_settle(slab, 2, 1), STOOK_SETTLED);
        assert_int_equal(flags_of(slab), 0);
        slab->word = stook_word(STOOK_PLACE_NONE, 0, 0, STOOK_SLAB_CLAIM);
        assert_int_equal(stook_slab_settle(slab, 1, 1), STOOK_SETTLED_RELEASE);
        assert_int_equal(flags_of(slab), STOOK_SLAB_RELEASING);
        slab->word = stook_word(STOOK_PLACE_NONE, 3, 3, STOOK_SLAB_CLAIM);
        assert_int_equal(stook_slab_settle(slab, 5, 1), STOOK_SETTLED_LIST);
        assert_int_equal(flags_of(slab), STOOK_SLAB_LISTED);
        slab->word = stook_word(STOOK_PLACE_NONE, 0, 0, STOOK_SLAB_DETACHED);
        assert_false(stook_slab_list(slab, true));
        assert_int_equal(flags_of(slab), STOOK_SLAB_RELEASING);
        slab->word = stook_word(STOOK_PLACE_NONE, 1, 1, STOOK_SLAB_LISTED);
        drain(0, 1);
}

static void test_adopt(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        fill(1);
        slab = slab_of(objects[0]);
        slab->word = stook_word(STOOK_PLACE_NONE, 1, 1, STOOK_SLAB_CLAIM);
        assert_int_equal(stook_slab_adopt(slab, stook_self), STOOK_ADOPTED);
        assert_int_equal(flags_of(slab), STOOK_SLAB_DETACHED);
        assert_true(stook_slab_postpone(slab));
        assert_int_equal(flags_of(slab), STOOK_SLAB_CLAIM);
        slab->word |= STOOK_SLAB_DETACHED;
        assert_false(stook_slab_postpone(slab));        /* somebody else's claim */
        slab->word |= STOOK_SLAB_DETACHED;
        assert_int_equal(stook_slab_adopt(slab, stook_self), STOOK_ADOPT_NOTHING);
        assert_int_equal(flags_of(slab), STOOK_SLAB_DETACHED);
        slab->word = stook_word(STOOK_PLACE_NONE, 16, 16, STOOK_SLAB_CLAIM);
        assert_int_equal(stook_slab_adopt(slab, stook_self), STOOK_ADOPT_NOTHING);
        assert_int_equal(flags_of(slab), 0);
        slab->word = stook_word(STOOK_PLACE_NONE, 1, 1, STOOK_SLAB_LISTED | STOOK_SLAB_CLAIM);
        assert_int_equal(stook_slab_adopt(slab, stook_self), STOOK_ADOPT_LISTED);
        assert_int_equal(flags_of(slab), STOOK_SLAB_LISTED | STOOK_SLAB_CLAIM);
        slab->word = stook_word(STOOK_PLACE_NONE, 1, 1, STOOK_SLAB_LISTED);
        drain(0, 1);
}

/* ---- without the lock ---- */

static void test_locked_push_pends(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        fill(16);
        slab = slab_of(objects[0]);
        lock();
        drain(0, 1);
        assert_int_equal(flags_of(slab), STOOK_SLAB_CLAIM);
        assert_ptr_equal(slabs->node[0].pending.first, &stook_slab_span(slab)->link);
        drain(1, 3);                                    /* claimed already: not there twice */
        assert_ptr_equal(slabs->node[0].pending.first, &stook_slab_span(slab)->link);
        assert_null(stook_slab_span(slab)->link.next);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        unlock();
        fill(1);                                        /* the next one with the lock sees to it */
        assert_true(stook_pending_stack_empty_racy(&slabs->node[0].pending));
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 1);
        assert_int_equal(flags_of(slab), STOOK_SLAB_LISTED);
        objects[3] = objects[0];
        drain(3, 13);
        assert_int_equal(fake_spans_taken(), 0);
}

static void test_locked_fill_takes_pending(void **unused)
{
        (void)unused;
        fill(16);
        lock();
        drain(0, 10);
        assert_int_equal(stook_slab_fill(slabs, 0, 4, objects, STOOK_FILL_NOLOCK), 4);
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 1);
        assert_false(stook_pending_stack_empty_racy(&slabs->node[0].pending));
        /* the rest of it, then a fresh slab, whose remainder goes there as well */
        assert_int_equal(stook_slab_fill(slabs, 0, 16, objects + 16, STOOK_FILL_NOLOCK), 16);
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 2);
        assert_int_equal(slabs->node[0].partial, 0);
        assert_int_equal(stook_slab_fill(slabs, 0, 6, objects + 4, 0), 6);      /* one that waits, in vain */
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 2);
        unlock();
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drain(0, 32);
        assert_int_equal(fake_spans_taken(), 0);
}

static void test_locked_listed_stays_pending(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        fill(3);
        slab = slab_of(objects[0]);
        lock();
        drain(0, 3);                                    /* listed, emptied, surplus: to be released */
        assert_int_equal(flags_of(slab), STOOK_SLAB_LISTED | STOOK_SLAB_CLAIM);
        fill(2);                                        /* may not be taken from: a fresh slab */
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 2);
        assert_int_equal(flags_of(slab), STOOK_SLAB_LISTED | STOOK_SLAB_CLAIM);
        /* as the holder does it: after the release he looks */
        stook_slab_unhold(&(struct stook_slab_hold){ .slabs = slabs, .node = &slabs->node[0] });
        assert_int_equal(fake_spans_taken(), 1);
        assert_int_equal(slabs->node[0].partial, 1);
        drain(0, 2);
        assert_int_equal(fake_spans_taken(), 0);
}

/* ---- placement ---- */

static void test_fullest_first_leftovers_to_tail(void **unused)
{
        struct stook_slab *a, *b, *c;

        (void)unused;
        fill(48);
        a = slab_of(objects[0]);
        b = slab_of(objects[16]);
        c = slab_of(objects[32]);
        drain(0, 8);
        drain(16, 2);
        drain(32, 5);
        /* list: a b c; fullest first: b (2), c (3 of 5), left-overs of c behind a */
        fill(5);
        assert_int_equal(stook_word_inuse(stook_slab_word(a)), 8);
        assert_int_equal(flags_of(b), 0);
        assert_int_equal(stook_word_inuse(stook_slab_word(c)), 14);
        assert_ptr_equal(slabs->node[0].list.next, &stook_slab_span(a)->list);
        assert_ptr_equal(slabs->node[0].list.prev, &stook_slab_span(c)->list);
        memcpy(objects + 32, objects, 5 * sizeof(*objects));
        drain(8, 8); drain(18, 14); drain(32, 16);
}

static void test_shrink_sorts(void **unused)
{
        struct stook_list *e;

        (void)unused;
        slabs->min_partial = 4;
        fill(64);
        drain(0, 9); drain(16, 1); drain(32, 4); drain(48, 16);
        assert_int_equal(stook_slabs_shrink(slabs), 3);
        e = slabs->node[0].list.next;
        assert_ptr_equal(e, &stook_slab_span(slab_of(objects[17]))->list);
        assert_ptr_equal(e->next, &stook_slab_span(slab_of(objects[36]))->list);
        assert_ptr_equal(e->next->next, &stook_slab_span(slab_of(objects[9]))->list);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drain(9, 7); drain(17, 15); drain(36, 12);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        static const struct CMUnitTest tests[] = {
                TEST(test_new_remainder_listed),
                TEST(test_take_all_is_full),
                TEST(test_push_full_lists_at_tail),
                TEST(test_push_listed_stays),
                TEST(test_empty_kept_then_surplus),
                TEST(test_detached_is_left_alone),
                TEST(test_list_releases_surplus_only_without_claim),
                TEST(test_adopt),
                TEST(test_locked_push_pends),
                TEST(test_locked_fill_takes_pending),
                TEST(test_locked_listed_stays_pending),
                TEST(test_fullest_first_leftovers_to_tail),
                TEST(test_shrink_sorts),
        };

        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
