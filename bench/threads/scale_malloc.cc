/*
 * bench/threads/scale_malloc.cc - will-it-scale's malloc1 and malloc2
 *
 * Purpose: how many pairs of malloc and free a task makes a second where 1, 2 or more tasks do the
 * same, as threads of one process or as processes. Written anew from the published parameters:
 * malloc1 has 128 MiB, which no task touches, malloc2 has 1 KiB. So malloc1 shows whether an
 * allocator asks the kernel for each large object, and malloc2 its hot path.
 * Answer: pairs, a second and task, of the time in which all tasks ran.
 * Options: size=BYTES, tasks=N, processes=1, touch=1 (writes a byte of every page), ms=DURATION.
 */
#include <atomic>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

#include "../harness/harness.h"

/* In memory that a fork does not copy. */
struct shared {
        std::atomic<long> ready;
        std::atomic<bool> go, stop;
        std::atomic<uint64_t> pairs;
};
static shared *common;
static size_t size;
static bool touch;

static void work()
{
        uint64_t pairs = 0;

        common->ready++;
        while (!common->go.load(std::memory_order_acquire))
                usleep(50);
        for (; !common->stop.load(std::memory_order_relaxed); pairs++) {
                char *object = (char *)malloc(size);
                if (!object)
                        abort();
                bench::keep(object);
                for (size_t at = 0; touch && at < size; at += 4096)
                        *(volatile char *)(object + at) = 1;
                free(object);
        }
        common->pairs += pairs;
}

int main(int argc, char **argv)
{
        long tasks = bench::option(argc, argv, "tasks", 1);
        long ms = bench::option(argc, argv, "ms", 500);
        bool processes = bench::option(argc, argv, "processes", 0) != 0;

        size = (size_t)bench::option(argc, argv, "size", 1024);
        touch = bench::option(argc, argv, "touch", 0) != 0;
        if (!size || tasks < 1 || ms < 1) {
                fprintf(stderr, "scale_malloc: bad options\n");
                return 2;
        }
        void *memory = mmap(nullptr, sizeof(*common), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                return 1;
        common = new (memory) shared;
        std::vector<std::thread> threads;
        for (long i = 0; i < tasks; i++) {
                if (!processes) {
                        threads.emplace_back(work);
                } else if (!fork()) {
                        work();
                        _exit(0);
                }
        }
        while (common->ready < tasks)
                usleep(50);
        uint64_t start = bench::now_ns();
        common->go = true;
        usleep((useconds_t)ms * 1000);
        common->stop = true;
        double seconds = (double)(bench::now_ns() - start) / 1e9;
        for (std::thread &t : threads)
                t.join();
        while (processes && wait(nullptr) > 0)
                continue;
        bench::answer answer;
        answer.add("pairs", (double)common->pairs / seconds / (double)tasks);
        return 0;
}
