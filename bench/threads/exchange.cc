/*
 * bench/threads/exchange.cc - two threads that give each other objects
 *
 * Purpose: what objects cost, and where they lie, when some of them are freed on another node than
 * their own. Each thread allocates a batch and frees it. Of a hundred objects it puts `crossing`
 * into a table that both threads share, and frees the objects that lay there instead. As a rule
 * every second one of those is the other thread's. Where batches are small, what a slot keeps does
 * not leave it. Where they are large, most objects pass through the slot.
 * Place: run by bench/run.py as `remote`, on two made-up nodes: thread i runs on CPU i, which is
 * node i.
 * Answer: objects_per_cpu_us of the processor time of the slower thread. Of samples, where the
 * allocator can tell (the drop-in does): freed_remote_percent, the frees of objects of the other
 * node; got_remote_percent, the allocations that got one; again_percent, the second of the first:
 * remote objects that were handed out before they went home.
 * Options: size=BYTES, batch=OBJECTS (at most 4096), crossing=PERCENT, ms=DURATION.
 */
#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <thread>

#include "../harness/harness.h"

static constexpr size_t table_objects = 1024, batch_most = 4096, sample_every = 61;
static std::atomic<void *> table[table_objects];
static std::atomic<bool> stop;
static int (*node_of)(const void *);

struct figures {
        uint64_t objects, got, got_remote, freed, freed_remote;
        double us;
};

static double thread_us()
{
        struct timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void run(int me, size_t size, size_t batch, uint32_t crossing, figures *f)
{
        void *object[batch_most];

        bench::pin_to(me);
        bench::rng r((uint64_t)me + 1);
        uint64_t objects = 0;
        while (!stop.load(std::memory_order_relaxed)) {
                for (size_t i = 0; i < batch; i++) {
                        object[i] = malloc(size);
                        *(volatile char *)object[i] = 1;
                        if (node_of && (objects + i) % sample_every == 0) {
                                f->got++;
                                f->got_remote += node_of(object[i]) != me;
                        }
                }
                for (size_t i = 0; i < batch; i++, objects++) {
                        if (r.below(100) < crossing)
                                object[i] = table[r.below(table_objects)].exchange(object[i]);
                        if (node_of && object[i] && objects % sample_every == 0) {
                                f->freed++;
                                f->freed_remote += node_of(object[i]) != me;
                        }
                        free(object[i]);
                }
        }
        f->objects = objects;
        f->us = thread_us();
}

static double percent(uint64_t part, uint64_t whole)
{
        return whole ? 100.0 * (double)part / (double)whole : 0;
}

int main(int argc, char **argv)
{
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        uint32_t crossing = (uint32_t)bench::option(argc, argv, "crossing", 50);
        size_t batch = std::min((size_t)bench::option(argc, argv, "batch", 1), batch_most);
        long ms = bench::option(argc, argv, "ms", 1000);
        figures of[2] = {};
        bench::answer answer;

        *(void **)&node_of = dlsym(RTLD_DEFAULT, "stook_object_node");
        std::thread first(run, 0, size, batch, crossing, &of[0]);
        std::thread second(run, 1, size, batch, crossing, &of[1]);
        usleep((useconds_t)ms * 1000);
        stop.store(true);
        first.join();
        second.join();
        for (std::atomic<void *> &object : table)
                free(object.load());
        answer.add("objects_per_cpu_us",
                   std::min((double)of[0].objects / of[0].us, (double)of[1].objects / of[1].us));
        if (node_of) {
                uint64_t got = of[0].got_remote + of[1].got_remote;
                uint64_t freed = of[0].freed_remote + of[1].freed_remote;
                answer.add("freed_remote_percent", percent(freed, of[0].freed + of[1].freed));
                answer.add("got_remote_percent", percent(got, of[0].got + of[1].got));
                answer.add("again_percent", percent(got, freed));
        }
        return 0;
}
