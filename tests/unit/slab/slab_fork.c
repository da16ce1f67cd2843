/*
 * What this proves: a cache's slabs are whole in a forked child (slab_fork.c), although other
 * threads of the parent were filling and draining it. The fork comes after a prepare that had the
 * locks, and after none. The child fills and drains on. No object is handed out that was out at the
 * fork, and lists and words agree.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/inject.h"
#include "base/lock.h"
#include "base/thread.h"
#include "fake_pages.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "slab/slab_inside.h"

#define MINE 500

static struct stook_slabs *slabs;
static atomic_bool stop;
static void *mine[MINE];

static void *work(void *arg)
{
        void *o[100];

        (void)arg;
        while (!stop) {
                size_t n = stook_slab_fill(slabs, 0, 100, o, 0);

                for (size_t i = 0; i < n; i++)
                        memset(o[i], 0x77, 64);
                stook_slab_drain(slabs, n / 3, o);
                stook_slab_drain(slabs, n - n / 3, o + n / 3);
        }
        return NULL;
}

static bool is_mine(const void *o)
{
        for (int i = 0; i < MINE; i++)
                if (mine[i] == o)
                        return true;
        return false;
}

static void look_for_claims(struct stook_span *span, void *data)
{
        struct stook_slab *slab = stook_slab_of(span);
        bool *found = data;

        if (span->kind != STOOK_SPAN_SLAB)
                return;
        for (unsigned p = 0; p < slab->part_count; p++)
                if (stook_part_flags(*stook_slab_part(slab, p)) & ~STOOK_PART_LISTED)
                        *found = true;
        if (slab->pending)
                *found = true;
}

/* Nothing is claimed, pending or released any more: vanished threads cost objects, no slab. */
static bool no_claims(void)
{
        bool found = false;

        stook_meta_span_for_each(look_for_claims, &found);
        return !found;
}

static bool lists_agree(void)
{
        uint32_t n = 0;

        stook_list_for_each(e, &slabs->node[0].list) {
                struct stook_slab *slab = stook_slab_listed_at(e);

                if (slab->slabs != slabs || !slab->listed || !stook_slab_free_listed(slab) ||
                    e->next->prev != e)
                        return false;
                n++;
        }
        return n == stook_slabs_partial(slabs, 0);
}

static int child(bool whole)
{
        static void *o[3000];
        size_t n;

        stook_slabs_fork_child(slabs, whole);
        stook_slabs_fork_mend(whole);
        if (whole)
                stook_slabs_fork_parent(slabs);
        if (stook_self->locks_held)
                return 7;
        if (!lists_agree() || stook_slabs_validate(slabs))
                return 1;
        if (!no_claims())
                return 8;
        for (int round = 0; round < 20; round++) {
                n = stook_slab_fill(slabs, 0, 3000, o, 0);
                if (n != 3000)
                        return 2;
                for (size_t i = 0; i < n; i++) {
                        if (!stook_slab_object_out(slabs, o[i]) ||
                            *(uint32_t *)o[i] == 0x5a5a5a5a || is_mine(o[i]))
                                return 3;
                        memset(o[i], 0x5a, 64);
                }
                for (size_t i = 0; i < n; i++)
                        memset(o[i], 0, 64);
                stook_slab_drain(slabs, n, o);
                if (!lists_agree())
                        return 4;
        }
        for (int i = 0; i < MINE; i++)
                for (int j = 0; j < 64; j++)
                        if (((unsigned char *)mine[i])[j] != 0x33)
                                return 5;
        stook_slab_drain(slabs, MINE, memcpy(o, mine, sizeof(mine)));
        stook_slabs_shrink(slabs);
        return lists_agree() && !slabs->node[0].lock.word && !stook_self->locks_held ? 0 : 6;
}

static void fork_once(bool prepare)
{
        bool whole = false;
        int status;
        pid_t pid;

        for (int i = 0; prepare && !whole && i < 10000; i++) {
                whole = stook_slabs_fork_prepare(slabs);
                if (!whole)
                        nanosleep(&(struct timespec){ 0, 100000 }, NULL);
        }
        assert_int_equal(whole, prepare);
        pid = fork();
        assert_true(pid >= 0);
        if (!pid)
                _exit(child(whole));
        if (whole)
                stook_slabs_fork_parent(slabs);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void fork_often(int forks)
{
        pthread_t thread[2];
        void *gone[MINE];

        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        stop = false;
        assert_int_equal(stook_slab_fill(slabs, 0, MINE, mine, 0), MINE);
        for (int i = 0; i < MINE; i++)
                memset(mine[i], 0x33, 64);
        for (int i = 0; i < 2; i++)
                pthread_create(&thread[i], NULL, work, NULL);
        for (int i = 0; i < forks; i++) {
                nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
                fork_once(i & 1);
        }
        stop = true;
        for (int i = 0; i < 2; i++)
                pthread_join(thread[i], NULL);
        stook_slab_drain(slabs, MINE, memcpy(gone, mine, sizeof(mine)));
        fake_source_end(slabs);
}

static void test_forks(void **unused)
{
        (void)unused;
        fork_often(24);
}

static void mended(bool whole)
{
        if (whole)
                assert_true(stook_slabs_fork_prepare(slabs));
        stook_slabs_fork_child(slabs, whole);
        stook_slabs_fork_mend(whole);
        if (whole)
                stook_slabs_fork_parent(slabs);
        assert_true(no_claims() && lists_agree());
        assert_int_equal(slabs->node[0].lock.word, 0);
        assert_true(stook_pending_stack_empty_racy(&slabs->node[0].pending));
        assert_int_equal(stook_slabs_validate(slabs), 0);
}

static struct stook_slab *slab_of(const void *object)
{
        return stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)object)));
}

static void drain_refused(size_t n, void *const *o)
{
        stook_inject.lock_refuse_every = 1;
        stook_slab_drain(slabs, n, o);
        stook_inject.lock_refuse_every = 0;
}

/*
 * The child settles the claims of threads that it does not have, on several parts of a slab. Such a
 * claim was on pending; or in the word only, before its push; or held by a thread; or on a part
 * that was listed all the while.
 */
static void test_claims(void **whole)
{
        struct stook_slab *slab;
        void *o[2000];
        size_t n;

        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        n = slabs->objects;
        assert_in_range(n, 257, 2000);
        assert_int_equal(stook_slab_fill(slabs, 0, n, o, 0), n);
        slab = slab_of(o[0]);

        drain_refused(1, o);                                    /* entered on pending */
        drain_refused(1, o + 64);
        assert_int_equal(slab->pending, 3);
        mended(*whole != NULL);
        assert_int_equal(slabs->node[0].partial, 1);
        assert_int_equal(slab->listed, 3);

        drain_refused(1, o + 128);
        drain_refused(1, o + 192);
        stook_pending_stack_take_all(
                &slabs->node[0].pending); /* in the word, not pushed; or held */
        slab->pending = 4;
        mended(*whole != NULL);
        assert_int_equal(slab->listed, 15);

        stook_slab_part(slab, 1)->lo |= STOOK_PART_CLAIM;       /* listed all the while */
        drain_refused(1, o + 256);
        mended(*whole != NULL);
        assert_int_equal(slab->listed, 31);
        assert_int_equal(slabs->node[0].partial, 1);

        stook_slab_drain(slabs, 63, o + 1);
        for (size_t at = 64; at < n; at += 64)
                stook_slab_drain(slabs, (n - at < 64 ? n - at : 64) - (at <= 256),
                                 o + at + (at <= 256));
        fake_source_end(slabs);
}

/* The whole slab was empty and surplus, but claimed: the last of its claims releases it. */
static void test_claims_of_an_empty_slab(void **whole)
{
        void *o[2000];
        size_t n;

        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        slabs->min_partial = 0;
        n = slabs->objects;
        for (int take = 0; take < 2; take++) {
                assert_int_equal(stook_slab_fill(slabs, 0, n, o, 0), n);
                if (take) /* some parts are listed, the others are not */
                        stook_slab_drain(slabs, 64, o + 64);
                if (take)
                        drain_refused(64, o);
                else
                        drain_refused(128, o);
                drain_refused(n - 128, o + 128);
                assert_int_equal(stook_slabs_count(slabs), 1);
                mended(*whole != NULL);
                assert_int_equal(stook_slabs_count(slabs), 0);
        }
        fake_source_end(slabs);
        assert_int_equal(fake_spans_taken(), 0);
}

/*
 * Released by a vanished thread: off the list and not given back; or, the locks not had, half
 * marked and listed.
 */
static void test_released(void **whole)
{
        struct stook_slab *slab;
        void *o[2000];
        size_t n;

        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        n = slabs->objects;
        for (int half = 0; half <= (*whole == NULL); half++) {
                assert_int_equal(stook_slab_fill(slabs, 0, n, o, 0), n);
                slab = slab_of(o[0]);
                stook_slab_drain(slabs, n, o);
                assert_int_equal(slabs->node[0].partial, 1);
                assert_true(stook_slab_retire(slab));
                if (half) {
                        stook_slab_part(slab, 2)->lo ^= STOOK_PART_RELEASED | STOOK_PART_LISTED;
                        slabs->node[0].lock.word = 1;
                } else {
                        stook_slab_remove(&(struct stook_slab_hold){ .slabs = slabs,
                                                                     .node = &slabs->node[0] },
                                          slab, ~UINT64_C(0));
                }
                mended(*whole != NULL);
                assert_int_equal(stook_slabs_count(slabs), 0);
        }
        fake_source_end(slabs);
        assert_int_equal(fake_spans_taken(), 0);
}

/*
 * Listed parts stay; where the locks were not had the list is made anew, whatever it looked like.
 */
static void test_listed(void **whole)
{
        struct stook_slab *first, *second;
        void *o[4000];
        size_t n;

        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        n = slabs->objects;
        assert_true(2 * n <= 4000);
        assert_int_equal(stook_slab_fill(slabs, 0, 2 * n, o, 0), 2 * n);
        first = slab_of(o[0]);
        second = slab_of(o[n]);
        stook_slab_drain(slabs, 1, o);
        stook_slab_drain(slabs, 1, o + 200);
        stook_slab_drain(slabs, 1, o + n);
        if (!*whole) { /* being changed, by the holder of the lock */
                slabs->node[0].lock.word = 2;
                slabs->node[0].partial = 7;
                first->listed = 1;
                stook_slab_span(second)->list.next = NULL;
        }
        mended(*whole != NULL);
        assert_int_equal(slabs->node[0].partial, 2);
        assert_int_equal(first->listed, 9);
        assert_int_equal(second->listed, 1);
        stook_slab_drain(slabs, 199, o + 1);
        stook_slab_drain(slabs, n - 201, o + 201);
        stook_slab_drain(slabs, n - 1, o + n + 1);
        fake_source_end(slabs);
}

/*
 * The holder of the lock had taken the last object of a listed slab, and vanished before it took it
 * off the list.
 */
static void test_emptied_and_linked(void **unused)
{
        struct stook_slab *slab;
        void *o[2000];
        size_t n;
        uint32_t taken;
        bool left;

        (void)unused;
        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        n = slabs->objects;
        assert_int_equal(stook_slab_fill(slabs, 0, n - 1, o, 0), n - 1);
        slab = slab_of(o[0]);
        assert_true(stook_slabs_fork_prepare(slabs));           /* the lock */
        assert_true(stook_part_take(slab, slab->part_count - 1u, 1, STOOK_PART_LISTED, NULL, &taken,
                                    &left) && !left);
        mended(false);
        assert_int_equal(slabs->node[0].partial, 0);
        stook_lock_hold_none();                                 /* the holder's */
        o[n - 1] = (char *)o[n - 2] + 64;
        stook_slab_drain(slabs, 1, o);
        assert_int_equal(slabs->node[0].partial, 1);
        stook_slab_drain(slabs, n - 1, o + 1);
        fake_source_end(slabs);
}

/*
 * A slab that a vanished thread was making is lost; one that it had shown is listed. Its objects
 * are those it took.
 */
static void test_births(void **whole)
{
        struct stook_slab *born[STOOK_SLAB_BIRTHS], *slab;
        size_t before = fake_spans_taken();

        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        assert_int_equal(stook_slab_births(slabs, 0, 1, false, born), 1);
        slab = born[0];
        mended(*whole != NULL);                                 /* not shown yet */
        assert_int_equal(stook_slabs_count(slabs), 0);
        assert_int_equal(fake_spans_taken(), before + 1);
        stook_inject.lock_refuse_every = 1;
        stook_slab_publish(slabs, slab, true, true);
        stook_inject.lock_refuse_every = 0;
        slab->pending = 0;                                      /* shown, and not entered yet */
        stook_pending_stack_take_all(&slabs->node[0].pending);
        mended(*whole != NULL);
        assert_int_equal(slabs->node[0].partial, 1);
        assert_int_equal(stook_slab_free_listed(slab), slabs->objects);
        fake_source_end(slabs);
        assert_int_equal(fake_spans_taken(), before);
}

int main(void)
{
#define BOTH(name) cmocka_unit_test_prestate(name, NULL), cmocka_unit_test_prestate(name, &whole)
        static char whole;
        static const struct CMUnitTest tests[] = {
                BOTH(test_claims),
                BOTH(test_claims_of_an_empty_slab),
                BOTH(test_released),
                BOTH(test_listed),
                BOTH(test_births),
                cmocka_unit_test(test_emptied_and_linked),
                cmocka_unit_test(test_forks),
        };

        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
