/*
 * bench/threads/parked.cc - threads that allocated once and now sleep
 *
 * Purpose: memory held for threads that do nothing. Threads start one after the other; each
 * allocates 2,000 objects of 16 to 1,039 bytes (about 1 MiB), writes them, frees all and parks.
 * Caches that belong to threads keep what the thread left; caches that belong to CPUs do not.
 * Answer: per_thread_KiB while all are parked; after_exit_KiB beyond the start, one second after
 * they ended.
 * Options: threads=N; objects=N (0 shows what a thread costs by itself).
 */
#include <pthread.h>
#include <semaphore.h>
#include <vector>

#include "../harness/harness.h"

static constexpr int objects_max = 2000;
static int objects;
/* Shared, for only one thread runs at a time: saves 16 KiB of each stack. */
static void *object[objects_max];
static sem_t parked, leave;

static void *work(void *seed)
{
        bench::rng r((uintptr_t)seed + 1);
        for (int i = 0; i < objects; i++) {
                size_t size = 16 + r.below(1024);
                object[i] = malloc(size);
                if (!object[i])
                        abort();
                memset(object[i], 1, size);
        }
        for (int i = 0; i < objects; i++)
                free(object[i]);
        sem_post(&parked);
        sem_wait(&leave);
        return nullptr;
}

int main(int argc, char **argv)
{
        int threads = (int)bench::option(argc, argv, "threads", 256);
        objects = (int)bench::option(argc, argv, "objects", objects_max);
        if (objects > objects_max)
                objects = objects_max;
        bench::answer answer;
        std::vector<pthread_t> thread((size_t)threads);
        sem_init(&parked, 0, 0);
        sem_init(&leave, 0, 0);

        long before = bench::resident_kib();
        for (int i = 0; i < threads; i++) {
                if (pthread_create(&thread[(size_t)i], nullptr, work, (void *)(uintptr_t)i) != 0)
                        return 1;
                sem_wait(&parked);
        }
        answer.add("per_thread_KiB", (double)(bench::resident_kib() - before) / threads);
        answer.add("peak_KiB", (double)bench::peak_kib());
        for (int i = 0; i < threads; i++)
                sem_post(&leave);
        for (pthread_t t : thread)
                pthread_join(t, nullptr);
        sleep(1);
        answer.add("after_exit_KiB", (double)(bench::resident_kib() - before));
        return 0;
}
