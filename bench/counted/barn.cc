/*
 * bench/counted/barn.cc - several threads on one barn
 *
 * Purpose: what a get or put of a whole sheaf costs while other threads get and put. The kernel's
 * barn was a spinlock, and its users waited for each other. Each thread allocates a batch that its
 * slot does not hold and frees it again, on the one cache that all share. So every round goes to
 * the barn several times.
 * How: the program is linked with the barn's sources compiled once more, instead of the library's.
 * They have a counter in the loop of their compare-and-swaps (STOOK_TAGGED_STACK_RETRY). Capacity
 * does not grow: STOOK_CAPACITY. With grow=1 sheaves and barn grow as they do in programs, and the
 * slot soon holds the batch.
 * Answer: objects_per_cpu_us: objects of all threads over the processor time of all. It does not
 * fall as threads are added if no thread waits. barn_calls: gets and puts, in all and for 1,000
 * objects. Retries for 1,000 barn_calls.
 * Options: threads=2, ms=500, batch=256, grow=0. rounds=N ends it when one thread has done N, for
 * machines whose clock says little (tools/machines/emulated-machine).
 */
#include <atomic>
#include <thread>
#include <vector>

#include <stook/cache.h>
#include <stook/stats.h>

#include "../harness/harness.h"

extern "C" {
uint64_t stook_bench_retries;           /* see meson.build */
}

static std::atomic<bool> go, stop;

static double thread_us()
{
        struct timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

struct work {
        size_t objects = 0;
        double us = 0;
};

static void run(struct stook_cache *cache, int cpu, size_t batch, size_t rounds, long ms,
                work *done)
{
        bench::pin_to(cpu);
        std::vector<void *> object(batch);
        while (!go.load(std::memory_order_relaxed))
                sched_yield();
        double start = thread_us();
        uint64_t end = bench::now_ns() + (uint64_t)ms * 1000000u;
        while (!stop.load(std::memory_order_relaxed)) {
                for (void *&o : object)
                        o = stook_cache_alloc(cache);
                for (void *o : object)
                        stook_cache_free(cache, o);
                done->objects += batch;
                if (rounds ? done->objects >= rounds * batch : bench::now_ns() >= end)
                        stop = true;
        }
        done->us = thread_us() - start;
}

int main(int argc, char **argv)
{
        bool grow = bench::option(argc, argv, "grow", 0);
        if (!grow && !getenv("STOOK_CAPACITY")) {
                /* read at start, so this program starts again with it */
                setenv("STOOK_CAPACITY", "60", 1);
                execv("/proc/self/exe", argv);
        }
        size_t threads = (size_t)bench::option(argc, argv, "threads", 2);
        size_t batch = (size_t)bench::option(argc, argv, "batch", 256);
        size_t rounds = (size_t)bench::option(argc, argv, "rounds", 0);
        long ms = bench::option(argc, argv, "ms", 500);
        struct stook_cache_args args = {};
        args.args_size = sizeof(args);
        if (!grow)
                args.barn_full = args.barn_empty = (unsigned)(threads * batch / 60 + 10);
        struct stook_cache *cache = stook_cache_create("barn", 64, &args);
        if (!cache) {
                perror("stook_cache_create");
                return 2;
        }
        std::vector<work> done(threads);
        std::vector<std::thread> running;
        int cpus = (int)std::thread::hardware_concurrency();
        for (size_t i = 0; i < threads; i++)
                running.emplace_back(run, cache, (int)i % cpus, batch, rounds, ms, &done[i]);
        go = true; /* the threads end it: under chrt this one may not run again before */
        for (std::thread &t : running)
                t.join();
        struct stook_cache_stats stats = {};
        stats.stats_size = sizeof(stats);
        stook_cache_get_stats(cache, &stats);
        double objects = 0, us = 0, barn_calls = (double)(stats.barn_get + stats.barn_put);
        for (const work &w : done) {
                objects += (double)w.objects;
                us += w.us;
        }
        if (!(us > 0)) {
                fprintf(stderr, "no thread came to run\n");
                return 1;
        }
        bench::answer answer;
        answer.add("objects_per_cpu_us", objects / us);
        answer.add("barn_calls", barn_calls);
        answer.add("barn_calls_per_1000_objects", 1000 * barn_calls / objects);
        answer.add("retries_per_1000_barn_calls",
                   barn_calls ? 1000 * (double)stook_bench_retries / barn_calls : 0);
        return stook_cache_destroy(cache) == 0 ? 0 : 1;
}
