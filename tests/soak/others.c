/*
 * Purpose: what goes on beside the workers: tuning, caches that come and go, forks, threads that
 * live for a moment, and sessions of samples.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "soak.h"

static void pause_ms(uint64_t random, unsigned at_most)
{
        const struct timespec pause = { 0, (long)(random % (at_most * UINT64_C(1000000))) };

        nanosleep(&pause, NULL);
}

static void doing(struct worker *w, const char *what)
{
        __atomic_store_n(&w->doing, what, __ATOMIC_RELAXED);
}

/* ---- tuner ---- */

/* A cache of its own, with objects that wait for readers, and its end. */
static void come_and_go(struct worker *w, uint64_t random)
{
        static const unsigned sorts[] = { PLAIN_200, RANDOM_64, RCU_48, RCU_CHAINED_160 };
        unsigned kind = sorts[random % 4];
        struct stook_cache *cache = make_cache(kind);
        void *objects[100];
        unsigned n = 0;
        int error;

        for (; n < (random >> 8) % 64; n++) {
                objects[n] = stook_cache_alloc(cache);
                if (!objects[n])
                        break;
                *(uint64_t *)objects[n] = w->id + n;
        }
        while (n--) {
                if (*(uint64_t *)objects[n] != w->id + n)
                        fail("an object of a cache of one thread was written to: %p", objects[n]);
                if (kind < FIRST_RCU || stook_cache_free_rcu(cache, objects[n]))
                        stook_cache_free(cache, objects[n]);
        }
        error = stook_cache_destroy(cache);
        if (error)
                fail("destroy of a cache without objects: %d", error);
        count(&done.destroys);
}

static unsigned or_none(uint64_t number)
{
        return number ? (unsigned)number - 1 : STOOK_NONE;
}

static void tune(uint64_t random)
{
        struct stook_tuning tuning = {
                .tuning_size = sizeof(tuning),
                .sheaf_capacity = or_none((random >> 8) % 200),
                .barn_full = or_none((random >> 24) % 20),
                .barn_empty = or_none((random >> 40) % 20),
        };
        unsigned kind = random % CACHES;
        int error;

        if (kind == NO_SHEAVES_128 || kind == RCU_CHAINED_160)
                tuning.sheaf_capacity = 0;
        error = stook_cache_tune(caches[kind], &tuning);
        if (error && error != -EBUSY && error != -ENOTSUP)
                fail("tune: %d", error);
}

static void look(uint64_t random)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        if (stook_cache_get_stats(caches[random % CACHES], &stats))
                fail("stats");
        (void)stook_group_usage(parents[random % PARENTS]);
        (void)stook_rcu_backlog();
}

void *tuner(void *arg)
{
        struct worker *w = arg;

        while (!stopped()) {
                uint64_t random = draw(&w->random);

                switch (random >> 60) {
                case 0: case 1: case 2:
                        doing(w, "tune");
                        tune(random);
                        break;
                case 3: case 4:
                        doing(w, "shrink");
                        stook_cache_shrink(caches[random % CACHES]);
                        break;
                case 5:
                        doing(w, "trim");
                        stook_trim((random >> 8 & 1) << 20);
                        break;
                case 6: case 7:
                        doing(w, "maintain");
                        stook_maintain();
                        break;
                case 8:
                        doing(w, "reserve");
                        stook_cache_reserve(caches[random % CACHES],
                                            random >> 20 & 1 ? (random >> 8) % 300 : 0);
                        break;
                case 9:
                        doing(w, "RCU barrier");
                        stook_cache_rcu_barrier(caches[FIRST_RCU + random % (CACHES - FIRST_RCU)]);
                        break;
                case 10:
                        doing(w, "maintenance thread");
                        if (stook_maintenance_thread(random & 1))
                                fail("maintenance thread");
                        break;
                case 11:
                        doing(w, "stats");
                        look(random);
                        break;
                default:
                        doing(w, "create and destroy");
                        come_and_go(w, random);
                        break;
                }
                count(&done.tunings);
                count(&w->progress);
                doing(w, "pause");
                pause_ms(draw(&w->random), 4);
        }
        doing(w, "end");
        return NULL;
}

/* ---- forks ---- */

static void *use_heap(void *arg)
{
        uint64_t random = (uintptr_t)arg;
        void *objects[KINDS * 4];

        for (unsigned round = 0; round < 5; round++) {
                for (unsigned i = 0; i < KINDS * 4; i++)
                        objects[i] = get(i % KINDS, OWNER_CHILD, i / KINDS, draw(&random));
                for (unsigned i = 0; i < KINDS * 4; i++) {
                        if (!objects[i])
                                continue;
                        if (is_for_readers(objects[i]))
                                give_rcu(objects[i], false);
                        else
                                give(objects[i], OWNER_CHILD, ORDINARY);
                }
        }
        return NULL;
}

/* The child of a fork in a process whose other threads were anywhere. */
void use_heap_in_child(uint64_t random)
{
        pthread_t thread;

        use_heap((void *)(uintptr_t)random);
        for (unsigned i = 0; i < PARKED; i++) {
                if (parked[i])
                        give(parked[i], 0, ORDINARY);
                parked[i] = NULL;
        }
        if (random % 4 == 0) {
                if (pthread_create(&thread, NULL, use_heap, (void *)(uintptr_t)random))
                        fail("a child has no thread");
                pthread_join(thread, NULL);
        }
        if (random % 4 == 1)
                stook_trim(0);
        stook_rcu_barrier();
        for (unsigned kind = 0; kind < CACHES; kind++) {
                int faults = stook_cache_validate(caches[kind]);

                if (faults)
                        fail("a child finds %d faults in kind %u", faults, kind);
        }
}

void *forker(void *arg)
{
        struct worker *w = arg;

        while (!stopped()) {
                uint64_t random = draw(&w->random);
                int status;
                pid_t pid;

                doing(w, "fork");
                pid = forks ? fork() : -1;
                if (!pid) {
                        alarm(60);
                        use_heap_in_child(random);
                        if (random % 8 == 5 && !(pid = fork())) {
                                alarm(60);              /* a child does not inherit it */
                                use_heap_in_child(random >> 8);
                                _exit(0);
                        }
                        if (pid > 0 && (waitpid(pid, &status, 0) != pid || status))
                                fail("a child's child ended with status %x", (unsigned)status);
                        _exit(0);
                }
                if (pid > 0) {
                        doing(w, "wait for a child");
                        while (waitpid(pid, &status, 0) != pid)
                                if (errno != EINTR)
                                        fail("waitpid: %d", errno);
                        if (status)
                                fail("a child ended with status %x", (unsigned)status);
                        count(&done.forks);
                }
                count(&w->progress);
                doing(w, "pause");
                pause_ms(random, 30);
        }
        doing(w, "end");
        return NULL;
}

/* ---- threads that live for a moment ---- */

static void *moment(void *arg)
{
        uint64_t random = (uintptr_t)arg;

        for (unsigned i = 0; i < 16; i++) {
                uint64_t drawn = draw(&random);
                void *object = get(drawn % KINDS, OWNER_OTHER, ORDINARY, drawn >> 8), *was;

                was = __atomic_exchange_n(parked + (drawn >> 16) % PARKED, object,
                                          __ATOMIC_ACQ_REL);
                if (was)
                        give(was, 0, ORDINARY);
        }
        count(&done.threads);
        return NULL;
}

void *spawner(void *arg)
{
        struct worker *w = arg;
        pthread_t threads[4];

        while (!stopped()) {
                unsigned n = 0;

                doing(w, "threads");
                for (; n < 4; n++)
                        if (pthread_create(threads + n, NULL, moment,
                                           (void *)(uintptr_t)draw(&w->random)))
                                break;
                while (n--)
                        pthread_join(threads[n], NULL);
                count(&w->progress);
                doing(w, "pause");
                pause_ms(draw(&w->random), 5);
        }
        doing(w, "end");
        return NULL;
}

/* ---- samples ---- */

static void begin_session(uint64_t random)
{
        struct stook_sampling_args args = {
                .args_size = sizeof(args), .interval = UINT64_C(1) << (8 + random % 14),
                .most = random >> 8 & 1 ? 1000000 : 1000, .guard = random >> 9 & 1 ? 1000000 : 0,
                .flags = random >> 10 & STOOK_SAMPLING_LIFETIMES,
        };
        int error = stook_sampling_start(&args);

        if (error)
                fail("a session of samples cannot begin: %d", error);
        count(&done.sessions);
}

static void write_profile(void)
{
        char path[64];

        snprintf(path, sizeof(path), "/tmp/stook-soak-%d.pb", (int)getpid());
        if (stook_profile_write(path) || unlink(path))
                fail("%s cannot be written", path);
        count(&done.profiles);
}

void *sampler(void *arg)
{
        struct worker *w = arg;

        while (!stopped()) {
                uint64_t random = draw(&w->random);

                if (samples && random % 4 < 2) {
                        doing(w, "start of samples");
                        begin_session(random >> 2);
                } else if (samples && random % 4 == 2) {
                        doing(w, "end of samples");
                        stook_sampling_stop();
                } else if (done.sessions && random >> 61 == 0) {
                        doing(w, "profile");
                        write_profile();
                }
                count(&w->progress);
                doing(w, "pause");
                pause_ms(random >> 16, 50);
        }
        stook_sampling_stop();
        doing(w, "end");
        return NULL;
}
