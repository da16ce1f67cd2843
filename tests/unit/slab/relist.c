/*
 * What this proves: a list that is made anew after a jump (stook_slab_relist) takes in its own
 * slabs alone, whatever becomes of a descriptor between two looks at it. Other threads go on there:
 * they give a slab back, and its descriptor serves another span, another list of the cache, then
 * another cache. A function that is called between the looks stands for a thread that is stopped
 * there.
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

/* ---- one descriptor, three slabs ---- */

static struct stook_slabs *other;
static struct stook_slab *slab;         /* of list 0, then of list 1, then of the other cache */
static struct stook_link *dead;         /* it, until the thread that retired it gives it back */
static void *first[1], *second[1];
static unsigned steps;

static struct stook_slab *slab_of(const void *object)
{
        return stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)object)));
}

static void in_a_thread(void *(*work)(void *))
{
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        steps++;
}

static void *move_to_list_1(void *unused)
{
        stook_slab_release(dead);
        stook_inject.slab_list_plus_1 = 2;
        assert_int_equal(stook_slab_fill(slabs, 0, 1, first, STOOK_FILL_NOLOCK), 1);
        assert_ptr_equal(slab_of(first[0]), slab);
        assert_true(slab->listed);
        assert_int_equal(stook_slab_span(slab)->list_number, 1);
        return unused;
}

static void *move_to_other_cache(void *unused)
{
        stook_slab_drain(slabs, 1, first);
        stook_inject.slab_list_plus_1 = 0;
        assert_int_equal(stook_slab_fill(other, 0, 1, second, 0), 1);
        assert_ptr_equal(slab_of(second[0]), slab);
        assert_ptr_equal(slab->slabs, other);
        assert_true(slab->listed);
        assert_int_equal(stook_slab_span(slab)->list_number, 0);
        return unused;
}

/*
 * Before its flags are looked at the slab is one of another list, with a listed part. Before the
 * number of its list is looked at again it is one of the other cache.
 */
static void go_on_elsewhere(enum stook_relisting at)
{
        if (at == STOOK_RELIST_PARTS && steps == 0)
                in_a_thread(move_to_list_1);
        else if (at == STOOK_RELIST_NUMBER && steps == 1)
                in_a_thread(move_to_other_cache);
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
        __atomic_fetch_add(&slabs->node[0].going, 1, __ATOMIC_RELAXED);
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
        stook_slabs_divide(slabs, &slabs->node[0]);
        assert_int_equal(stook_slabs_lists(&slabs->node[0]), 2);
        stook_inject.slab_list_plus_1 = 1;
        retire_one();

        steps = 0;
        stook_inject.relisting = go_on_elsewhere;
        assert_true(stook_slab_hold(&hold, slabs, &slabs->node[0], false));
        stook_slab_relist(&hold);
        stook_slab_unhold(&hold);
        stook_inject.relisting = NULL;
        assert_int_equal(steps, 2);
        assert_int_equal(slabs->node[0].partial, 0);
        assert_int_equal(other->node[0].partial, 1);
        assert_true(slab->listed);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        assert_int_equal(stook_slabs_validate(other), 0);
        fake_report(&reports);
        assert_int_equal(reports, 0);

        stook_inject.slab_list_plus_1 = 1;
        assert_int_equal(stook_slab_fill(slabs, 0, 1, first, 0), 1);
        assert_ptr_not_equal(slab_of(first[0]), slab);
        stook_slab_drain(slabs, 1, first);
        stook_slab_drain(other, 1, second);
        stook_inject.slab_list_plus_1 = 0;
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
        stook_slabs_start(2 * STOOK_SLAB_LIST_CPUS);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
