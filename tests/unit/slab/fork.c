/*
 * What this proves: a source in a forked child (slab_fork.c) while other threads of the parent were filling and
 * draining it: after a prepare that had the locks, and after none. The child fills and drains on, no object is
 * handed out that was out when it was forked, lists and words agree.
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

#include "base/lock.h"
#include "base/thread.h"
#include "fake_pages.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "slab/slab_partial.h"

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
        bool *found = data;

        if (span->kind == STOOK_SPAN_SLAB && (stook_slab_word(stook_slab_of(span)) & ~STOOK_SLAB_LISTED & STOOK_SLAB_FLAGS))
                *found = true;
}

/* Nothing is claimed, detached or being released any more: vanished threads cost objects, no slab. */
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
                struct stook_slab *slab = stook_slab_of(stook_container_of(e, struct stook_span, list));
                uint64_t w = stook_slab_word(slab);

                if (slab->slabs != slabs || !(w & STOOK_SLAB_LISTED) || stook_word_inuse(w) >= slab->objects ||
                    e->next->prev != e)
                        return false;
                n++;
        }
        return n == slabs->node[0].partial;
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
                        if (!stook_slab_object_valid(slabs, o[i]) || *(uint32_t *)o[i] == 0x5a5a5a5a || is_mine(o[i]))
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

static void test_forks(void **unused)
{
        pthread_t thread[2];
        void *gone[MINE];

        (void)unused;
        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        assert_int_equal(stook_slab_fill(slabs, 0, MINE, mine, 0), MINE);
        for (int i = 0; i < MINE; i++)
                memset(mine[i], 0x33, 64);
        for (int i = 0; i < 2; i++)
                pthread_create(&thread[i], NULL, work, NULL);
        for (int i = 0; i < 30; i++) {
                nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
                fork_once(i & 1);
        }
        stop = true;
        for (int i = 0; i < 2; i++)
                pthread_join(thread[i], NULL);
        stook_slab_drain(slabs, MINE, memcpy(gone, mine, sizeof(mine)));
        fake_source_end(slabs);
}

/* A slab that a vanished thread had detached is listed again; one of this thread's own is not. */
static void test_owner(void **unused)
{
        struct stook_slab *slab;
        void *o[3];

        (void)unused;
        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        slab = stook_slab_birth(slabs, 0);
        assert_ptr_equal(slab->owner, stook_self);      /* from its birth on */
        stook_slab_put_back(slabs, &slabs->node[0], &slab, 1, true, false);
        stook_slab_fill(slabs, 0, 3, o, 0);
        slab = stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)o[0])));
        stook_slab_detach(slab, stook_self);
        slabs->node[0].lock.word = 1;
        stook_slabs_fork_child(slabs, false);
        stook_slabs_fork_mend(false);
        assert_int_equal(slabs->node[0].lock.word, 0);
        assert_int_equal(slabs->node[0].partial, 0);
        assert_int_equal(stook_slab_word(slab) & STOOK_SLAB_FLAGS, STOOK_SLAB_DETACHED);
        assert_ptr_equal(slab->owner, stook_self);
        slab->owner = o;
        stook_slabs_fork_child(slabs, false);
        stook_slabs_fork_mend(false);
        assert_int_equal(slabs->node[0].partial, 1);
        assert_int_equal(stook_slab_word(slab) & STOOK_SLAB_FLAGS, STOOK_SLAB_LISTED);
        assert_int_equal(stook_slabs_validate(slabs), 0);

        /* The same where the locks were had, so that the lists are sound: nothing is listed twice. */
        assert_true(stook_slabs_fork_prepare(slabs));
        stook_slabs_fork_child(slabs, true);
        stook_slabs_fork_mend(true);
        stook_slabs_fork_parent(slabs);
        assert_int_equal(slabs->node[0].partial, 1);
        stook_list_remove(&stook_slab_span(slab)->list);
        slabs->node[0].partial--;
        stook_slab_detach(slab, o);
        assert_true(stook_slabs_fork_prepare(slabs));
        stook_slabs_fork_child(slabs, true);
        stook_slabs_fork_mend(true);
        stook_slabs_fork_parent(slabs);
        assert_int_equal(slabs->node[0].partial, 1);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        stook_slab_drain(slabs, 3, o);
        fake_source_end(slabs);
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
        assert_int_equal(stook_slabs_validate(slabs), 0);
}

/* What vanished threads had claimed is listed, from pending or from nowhere; what they were to release is released. */
static void test_claims(void **whole)
{
        struct stook_slab *slab;
        void *o[2000];
        size_t n;

        slabs = fake_source(4, 64, 8, false, NULL, NULL);
        n = slabs->objects;
        assert_true(n <= 2000);
        assert_int_equal(stook_slab_fill(slabs, 0, n, o, 0), n);
        slab = stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)o[0])));

        stook_lock_refuse_every = 1;
        stook_slab_drain(slabs, 1, o);                          /* claimed and pending */
        stook_lock_refuse_every = 0;
        assert_int_equal(stook_slab_word(slab) & STOOK_SLAB_FLAGS, STOOK_SLAB_CLAIM);
        mended(*whole != NULL);
        assert_int_equal(slabs->node[0].partial, 1);

        assert_int_equal(stook_slab_fill(slabs, 0, 1, o, 0), 1);
        stook_lock_refuse_every = 1;
        stook_slab_drain(slabs, 1, o);
        stook_lock_refuse_every = 0;
        stook_pending_stack_take_all(&slabs->node[0].pending);  /* claimed, in the hands of who has vanished */
        mended(*whole != NULL);
        assert_int_equal(slabs->node[0].partial, 1);

        slab->word |= STOOK_SLAB_CLAIM;                         /* emptied on the list by who has vanished */
        mended(*whole != NULL);
        assert_int_equal(slabs->node[0].partial, 1);

        stook_slab_drain(slabs, n - 1, o + 1);
        assert_int_equal(slabs->node[0].partial, 1);
        assert_true(stook_slab_retire(slab));
        stook_list_remove(&stook_slab_span(slab)->list);
        slabs->node[0].partial--;
        mended(*whole != NULL);
        assert_int_equal(stook_slabs_count(slabs), 0);
        fake_source_end(slabs);
}

int main(void)
{
        static char whole;
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_owner),
                cmocka_unit_test_prestate(test_claims, NULL),
                cmocka_unit_test_prestate(test_claims, &whole),
                cmocka_unit_test(test_forks),
        };

        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
