/*
 * What this proves: one cache's slabs under threads that fill, hand objects to each other and
 * drain. Some threads never wait for the lock, and some are refused it now and then (slab_state.h
 * S1-S5, slab_partial.c P1, P2). Each object has one owner at a time, by stamps in the object.
 * Nothing is lost: all slabs are given back at the end, and nothing stays on pending. Handlers on
 * top of all of it fill and drain, too, at any instruction.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/inject.h"
#include "base/lock.h"
#include "fake_pages.h"
#include "slab/slab_inside.h"

#define THREADS 4
#define HELD 200

struct object {
        uint64_t owner;                 /* 0: no thread */
        uint64_t again[7];              /* the link lies here in objects of 64 bytes */
};

static struct stook_slabs *slabs;
static atomic_bool stop;
static _Atomic(void *) exchanged[256];  /* objects on their way from thread to thread */
static atomic_ulong fills, handled, faults;

/*
 * 40 bits: links that an earlier slab of other objects left in its pages must not look like an
 *    owner.
 */
#define OWNED UINT64_C(0xab5c1de0fa)

static void own(struct object *o, uint64_t me)
{
        if (__atomic_exchange_n(&o->owner, me, __ATOMIC_RELAXED) >> 24 == OWNED)
                atomic_fetch_add(&faults, 1);
        for (int i = 0; i < 7; i++)
                o->again[i] = me;
}

static void disown(struct object *o, uint64_t me)
{
        bool whole = __atomic_exchange_n(&o->owner, 0, __ATOMIC_RELAXED) == me;

        for (int i = 0; i < 7; i++)
                whole &= o->again[i] == me;
        if (!whole)
                atomic_fetch_add(&faults, 1);
}

struct rng { uint64_t state; };
static uint64_t seed;

static uint32_t below(struct rng *r, uint32_t n)
{
        r->state = r->state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(r->state >> 33) % n;
}

static void *work(void *arg)
{
        uint64_t number = (uintptr_t)arg, me = OWNED << 24 | number;
        struct rng rng = { number * 77 + seed };
        void *held[HELD], *gone[HELD];
        size_t n = 0;

        while (!stop || n) {
                size_t k = 1 + below(&rng, 60);

                if (!stop && below(&rng, 2) && n + k <= HELD) {
                        bool may_wait = below(&rng, 2);
                        size_t got;

                        if (!may_wait)
                                stook_lock_forbid_waits();
                        got = stook_slab_fill(slabs, 0, k, held + n, below(&rng, 2));
                        if (!may_wait)
                                stook_lock_allow_waits();
                        for (size_t i = 0; i < got; i++)
                                own(held[n + i], me);
                        n += got;
                        atomic_fetch_add_explicit(&fills, got, memory_order_relaxed);
                } else {
                        size_t out = 0;

                        for (; k && n; k--) {
                                void *o = held[--n], *theirs = o;

                                /* Half of them are freed by another thread than had them. */
                                disown(o, me);
                                if (below(&rng, 2))
                                        theirs = atomic_exchange(&exchanged[below(&rng, 256)], o);
                                if (theirs)
                                        gone[out++] = theirs;
                        }
                        stook_slab_drain(slabs, out, gone);
                }
        }
        return NULL;
}

static void handle(int sig)
{
        void *o[20];
        size_t n = stook_slab_fill(slabs, 0, 20, o, STOOK_FILL_FOR_SHEAF);
        uint64_t me = OWNED << 24 | 0x800000 | ((uintptr_t)&n >> 4 & 0x7fffff);

        (void)sig;
        for (size_t i = 0; i < n; i++)
                own(o[i], me);
        for (size_t i = 0; i < n; i++)
                disown(o[i], me);
        stook_slab_drain(slabs, n, o);
        atomic_fetch_add(&handled, 1);
}

/* Threads have worked, and were interrupted: on a busy machine they may not have run yet. */
static bool enough(bool signals)
{
        return fills > 1000 && (!signals || handled > 100);
}

static void run(size_t size, bool random, uint32_t refuse, bool signals, long ms)
{
        pthread_t thread[THREADS];
        void *left[256];
        size_t n = 0;

        slabs = fake_source(4, size, 8, random, NULL, NULL);
        stop = false;
        stook_inject.lock_refuse_every = refuse;
        for (uintptr_t i = 0; i < THREADS; i++)
                pthread_create(&thread[i], NULL, work, (void *)(i + 1));
        for (long t = 0; t < ms * 10 || !enough(signals); t++) {
                nanosleep(&(struct timespec){ 0, 100000 }, NULL);
                for (int i = 0; signals && i < THREADS; i++)
                        pthread_kill(thread[i], SIGUSR1);
                if (!signals && t % 50 == 0)
                        stook_slabs_shrink(slabs);
        }
        stop = true;
        for (int i = 0; i < THREADS; i++)
                pthread_join(thread[i], NULL);
        for (int i = 0; i < 256; i++) {
                void *o = atomic_exchange(&exchanged[i], NULL);

                if (o)
                        left[n++] = o;
        }
        stook_slab_drain(slabs, n, left);
        stook_inject.lock_refuse_every = 0;
        assert_int_equal(faults, 0);
        if (!refuse)
                assert_true(stook_pending_stack_empty_racy(&slabs->node[0].pending));
        assert_int_equal(stook_slabs_validate(slabs), 0);
        fake_source_end(slabs);
        assert_int_equal(fake_spans_taken(), 0);
}

static void test_threads(void **unused)
{
        (void)unused;
        run(64, false, 0, false, 200);
        run(4096, false, 0, false, 200); /* few objects a slab: births and releases all the time */
        run(4096, true, 0, false, 100);
}

static void test_lock_refused(void **unused)
{
        (void)unused;
        run(64, false, 2, false, 150);
        run(4096, false, 3, false, 150);
        run(4096, false, 1, false, 100);        /* never had */
}

static void test_handlers(void **unused)
{
        (void)unused;
        sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = handle, .sa_flags = SA_RESTART },
                  NULL);
        run(64, false, 0, true, 200);
        run(4096, false, 0, true, 200);
        run(4096, true, 3, true, 100);
}

/* An argument: the seed of an earlier run. How the threads meet is not in it. */
int main(int argc, char **argv)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_threads),
                cmocka_unit_test(test_lock_refused),
                cmocka_unit_test(test_handlers),
        };

        fake_start();
        seed = argc > 1 ? strtoull(argv[1], NULL, 0)
                        : (uint64_t)time(NULL) * 2654435761u ^ (uint64_t)getpid();
        printf("seed: %llu\n", (unsigned long long)seed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
