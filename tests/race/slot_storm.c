/*
 * Proves, on either backend, that nothing is lost or handed out twice under all that may happen at
 * once. Threads allocate and free on slots of their CPUs, one at a time and in bulk. Timers
 * interrupt them with handlers that do the same. Another thread moves them between CPUs, and one
 * evacuates all slots all the time. Each object carries a stamp that says whether a thread has it.
 * In the end all objects are back.
 *
 * With `no-barrier` evacuation flushes what it detached without waiting for sections under way.
 * Then the storm must notice, or it proves nothing; a crash is a notice, too.
 * Usage: slot_storm [seconds] [no-barrier]
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/inject.h"
#include "evacuate/evacuate.h"
#include "os/os.h"
#include "unit/slot/fixture.h"

#define CAPACITY 16
#define OBJECTS  3000
#define WORKERS  5
#define KEPT     150

static bool   stop;
static size_t operations, interruptions, evacuations, faults;

static void mine(void *object)
{
        if (__atomic_exchange_n(fake_slab_stamp(object), 1, __ATOMIC_RELAXED))
                __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
}

static void not_mine(void *object)
{
        if (!__atomic_exchange_n(fake_slab_stamp(object), 0, __ATOMIC_RELAXED))
                __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
}

static void *take(void)
{
        void *o = stook_slot_pop(front.offset);

        if (!o)
                o = stook_slot_get(&front, true);
        if (o)
                mine(o);
        return o;
}

static void give(void *o)
{
        not_mine(o);
        if (!stook_slot_push(front.offset, o))
                stook_slot_put(&front, o, on_double);
}

static void on_signal(int signal)
{
        void *a = take(), *b = take();

        (void)signal;
        if (a)
                give(a);
        if (b)
                give(b);
        __atomic_fetch_add(&interruptions, 1, __ATOMIC_RELAXED);
}

static void bulk(void)
{
        void *objects[3 * CAPACITY];
        size_t n = stook_slot_alloc_bulk(&front, 3 * CAPACITY, objects), put;

        for (size_t i = 0; i < n; i++)
                mine(objects[i]);
        for (size_t i = 0; i < n; i++)
                not_mine(objects[i]);
        put = stook_slot_free_bulk(&front, n, objects);
        stook_slab_drain(&slabs, n - put, objects + put);
}

static void *work(void *seed)
{
        uint32_t random = (uint32_t)(uintptr_t)seed;
        void *kept[KEPT] = { NULL };
        size_t done = 0;

        for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); done++) {
                void **at;

                random = random * 1664525 + 1013904223;
                at = &kept[(random >> 8) % KEPT];
                if (*at)
                        give(*at);
                *at = *at ? NULL : take();
                if (random >> 22 == 0)
                        bulk();
        }
        for (unsigned i = 0; i < KEPT; i++)
                if (kept[i])
                        give(kept[i]);
        __atomic_fetch_add(&operations, done, __ATOMIC_RELAXED);
        return NULL;
}

static void *evacuate(void *unused)
{
        (void)unused;
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                __atomic_fetch_add(&evacuations, stook_evacuate_cache(&front), __ATOMIC_RELAXED);
                usleep(10);
        }
        return NULL;
}

static void *move_threads(void *threads)
{
        uint32_t random = 1;
        cpu_set_t all;
        int cpus[CPU_SETSIZE], n = 0;

        sched_getaffinity(0, sizeof(all), &all);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET((size_t)cpu, &all))
                        cpus[n++] = cpu;
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                cpu_set_t one;

                random = random * 1664525 + 1013904223;
                CPU_ZERO(&one);
                CPU_SET((size_t)cpus[(random >> 10) % (unsigned)n], &one);
                pthread_setaffinity_np(((pthread_t *)threads)[(random >> 20) % WORKERS],
                                       sizeof(one), &one);
                usleep(300);
        }
        return NULL;
}

static int usable_cpus(void)
{
        cpu_set_t set;

        return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

static void crash(int number)
{
        static const char text[] = "noticed by a crash\n";

        (void)number;
        _exit(write(STDOUT_FILENO, text, sizeof(text) - 1) < 0);
}

int main(int argc, char **argv)
{
        unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
        struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
        struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
        pthread_t workers[WORKERS], evacuator, mover;
        const char *missing;
        bool sound, broken = argc > 2 && !strcmp(argv[2], "no-barrier");

        if (!slot_start(0) || !slot_begin(OBJECTS, CAPACITY, 4))
                return 1;
        if (broken && (usable_cpus() < 2 || ops != &stook_section_rseq)) {
                puts("only sections on two CPUs need the barrier");
                return 77;
        }
#ifdef STOOK_INJECT
        stook_inject.no_barrier = broken;
#endif
        if (broken)
                signal(SIGSEGV, crash);
        sigaction(SIGPROF, &sa, NULL);
        for (uintptr_t i = 0; i < WORKERS; i++)
                if (pthread_create(&workers[i], NULL, work, (void *)(i * 7919 + 1)))
                        return 1;
        if (pthread_create(&evacuator, NULL, evacuate, NULL) ||
            pthread_create(&mover, NULL, move_threads, workers))
                return 1;
        setitimer(ITIMER_PROF, &often, NULL);
        for (time_t end = time(NULL) + (time_t)seconds;
             (time(NULL) < end || !__atomic_load_n(&evacuations, __ATOMIC_RELAXED)) &&
             !__atomic_load_n(&faults, __ATOMIC_RELAXED);)
                usleep(10000);
        setitimer(ITIMER_PROF, &never, NULL);
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < WORKERS; i++)
                pthread_join(workers[i], NULL);
        pthread_join(evacuator, NULL);
        pthread_join(mover, NULL);

        missing = slot_missing();
        printf("%s, %s: %zu operations, %zu signals, %zu evacuations; %zu faults; at the end: %s\n",
               stook_slots_backend_name(), stook_slots_index_name(), operations, interruptions,
               evacuations, faults, missing ? missing : "all is back");
        sound = !faults && !missing && operations;
        return sound == broken;
}
