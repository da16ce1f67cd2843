/*
 * What this proves: a list that is made anew after a jump (stook_slab_relist) takes in its own
 * slabs alone, whatever becomes of a descriptor between two looks at it. Other threads go on there:
 * they give a slab back, and its descriptor serves another span, or another cache. A function that
 * is called between the looks stands for a thread that is stopped there.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "base/inject.h"
#include "base/lock.h"
#include "fake_pages.h"
#include "pages/pagemap.h"
#include "slab/slab_inside.h"

static struct stook_slabs *slabs;

/*
 * A list is made anew after a jump, while another thread gives a slab of the same cache back and
 * its descriptor serves another span: the slab's own words are that one's now. What is behind the
 * nodes may not be read.
 */
static void test_beside_a_release(void **unused)
{
        const size_t bytes = 64 << 10;
        struct stook_slabs_node *node;
        struct stook_slab_hold hold;
        struct stook_span *span;
        struct stook_slab *other;
        void *o[2];
        char *room;

        (void)unused;
        room = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(room, MAP_FAILED);
        assert_int_equal(mprotect(room, bytes, PROT_READ | PROT_WRITE), 0);
        node = (struct stook_slabs_node *)(void *)(room + bytes) - 1;
        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        *node = slabs->node[0];
        stook_list_init(&node->list);
        slabs->node = node;
        assert_int_equal(stook_slab_fill(slabs, 0, 2, o, 0), 2);

        span = stook_span_take(0, FAKE_PAGE, 0);
        assert_non_null(span);
        other = stook_slab_of(span);
        memset(span->slab, 0, sizeof(span->slab));
        other->slabs = slabs;
        other->node = UINT8_MAX;
        span->kind = STOOK_SPAN_SLAB;
        assert_true(stook_slab_hold(&hold, slabs, node, false));
        stook_slab_relist(&hold);
        assert_int_equal(node->partial, 1);
        stook_slab_unhold(&hold);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        span->kind = STOOK_SPAN_TAKEN;
        stook_span_give(span);
        stook_slab_drain(slabs, 2, o);
        fake_source_end(slabs);
        munmap(room, 2 * bytes);
}

/* ---- one descriptor, two slabs ---- */

static struct stook_slabs *other;
static struct stook_slab *slab;         /* of the list, then of the other cache */
static struct stook_link *dead;         /* it, until the thread that retired it gives it back */
static void *first[1], *second[1];
static unsigned steps;

static struct stook_slab *slab_of(const void *object)
{
        return stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)object)));
}

static void *move_to_other_cache(void *unused)
{
        stook_slab_release(dead);
        assert_int_equal(stook_slab_fill(other, 0, 1, second, 0), 1);
        assert_ptr_equal(slab_of(second[0]), slab);
        assert_ptr_equal(slab->slabs, other);
        assert_true(slab->listed);
        return unused;
}

/* Before its flags are looked at the slab is one of the other cache, with a listed part. */
static void go_on_elsewhere(void *span)
{
        pthread_t thread;

        if (stook_slab_of(span) != slab || steps++)
                return;
        assert_int_equal(pthread_create(&thread, NULL, move_to_other_cache, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A slab that a thread took out of the cache, and has not given to the pages yet. */
static void retire_one(void)
{
        struct stook_slab_hold hold;

        slabs->min_partial = 1;
        assert_int_equal(stook_slab_fill(slabs, 0, 1, first, 0), 1);
        slab = slab_of(first[0]);
        stook_slab_drain(slabs, 1, first);
        slabs->min_partial = 0;
        assert_true(stook_slab_hold(&hold, slabs, &slabs->node[0], false));
        assert_true(stook_slab_retire(slab));
        stook_slab_bury(&hold, slab);
        dead = hold.dead;
        hold.dead = NULL;
        stook_slab_unhold(&hold);
}

/* @size: of 64 bytes a slab's parts are a block of their own; of 4 KiB the descriptor has them. */
static void test_of_another_cache_by_then(void **size)
{
        struct stook_slab_hold hold;
        unsigned reports;

        slabs = fake_source(3, (size_t)*size, 8, false, NULL, NULL);
        other = fake_source(4, (size_t)*size, 8, false, NULL, NULL);
        slabs->min_partial = other->min_partial = 0;
        retire_one();

        steps = 0;
        stook_inject.relisting = go_on_elsewhere;
        assert_true(stook_slab_hold(&hold, slabs, &slabs->node[0], false));
        stook_slab_relist(&hold);
        stook_slab_unhold(&hold);
        stook_inject.relisting = NULL;
        assert_int_equal(steps, 1);
        assert_int_equal(slabs->node[0].partial, 0);
        assert_int_equal(other->node[0].partial, 1);
        assert_true(slab->listed);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        assert_int_equal(stook_slabs_validate(other), 0);
        fake_report(&reports);
        assert_int_equal(reports, 0);

        assert_int_equal(stook_slab_fill(slabs, 0, 1, first, 0), 1);
        assert_ptr_not_equal(slab_of(first[0]), slab);
        stook_slab_drain(slabs, 1, first);
        stook_slab_drain(other, 1, second);
        fake_source_end(slabs);
        fake_source_end(other);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_beside_a_release),
                cmocka_unit_test_prestate(test_of_another_cache_by_then, (void *)64),
                cmocka_unit_test_prestate(test_of_another_cache_by_then, (void *)4096),
        };

        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
