/*
 * bench/threads/prodcons.cc - one thread allocates, the other frees
 *
 * Purpose: what an object costs whose memory always comes back on another CPU, and what the process
 * keeps afterwards. Objects go through a ring of pointers. Its indices are published once for 64
 * objects, so the ring itself costs little.
 * Answer: objects_per_us of wall time. objects_per_cpu_us of the processor time of the slower
 * thread: that is the same on a quiet machine, and hardly disturbed on a busy one, because a thread
 * that has to wait sleeps. resident_before_KiB, resident_KiB half a second after all were freed,
 * peak_KiB. Options: size=BYTES (0: mixed), ms=DURATION. ring=1 uses a private array of objects
 * instead of malloc: what the ring costs by itself.
 */
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "../harness/harness.h"

static constexpr size_t ring_objects = 1 << 15, burst = 64;
static void *ring[ring_objects];
alignas(128) static std::atomic<size_t> written;
alignas(128) static std::atomic<size_t> freed;
alignas(128) static std::atomic<bool> stop;     /* to the producer */
static std::atomic<bool> done; /* to the consumer: nothing will be written any more */

static double produce_us, consume_us;

static void produce(size_t size, bool ring_only)
{
        bench::pin_to(0);
        bench::rng r(3);
        std::vector<uint16_t> sizes(4096);
        for (uint16_t &s : sizes)
                s = (uint16_t)(size ? size : bench::mixed_size(r));
        static char memory[4096 * 64];
        size_t at = 0;
        while (!stop.load(std::memory_order_relaxed)) {
                if (at + burst - freed.load(std::memory_order_acquire) > ring_objects) {
                        usleep(20);
                        continue;
                }
                for (size_t i = 0; i < burst; i++, at++) {
                        void *object = ring_only ? memory + at % 4096 * 64
                                                 : malloc(sizes[at % 4096]);
                        *(volatile char *)object = 1;
                        ring[at % ring_objects] = object;
                }
                written.store(at, std::memory_order_release);
        }
        produce_us = bench::thread_ns() / 1e3;
}

static void consume(bool ring_only)
{
        bench::pin_to(1);
        size_t at = 0;
        for (;;) {
                bool last = done.load(std::memory_order_acquire);
                size_t end = written.load(std::memory_order_acquire);
                if (end == at) {
                        if (last)
                                break;
                        usleep(20);
                        continue;
                }
                for (; at < end; at++) {
                        void *object = ring[at % ring_objects];
                        if (ring_only)
                                bench::keep(object);
                        else
                                free(object);
                        if (at % burst == burst - 1)
                                freed.store(at + 1, std::memory_order_release);
                }
        }
        consume_us = bench::thread_ns() / 1e3;
}

int main(int argc, char **argv)
{
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        long ms = bench::option(argc, argv, "ms", 1000);
        bool ring_only = bench::option(argc, argv, "ring", 0) != 0;
        bench::answer answer;
        memset(ring, 0, sizeof(ring));
        long before = bench::resident_kib();

        std::thread consumer(consume, ring_only), producer(produce, size, ring_only);
        /* On a busy machine the time might be over before both have begun. */
        while (!freed.load(std::memory_order_acquire))
                usleep(50);
        size_t first = written.load(std::memory_order_acquire);
        uint64_t start = bench::now_ns();
        usleep((useconds_t)ms * 1000);
        stop.store(true, std::memory_order_release);
        producer.join();
        uint64_t ns = bench::now_ns() - start;
        done.store(true, std::memory_order_release);
        consumer.join();
        usleep(500000);
        answer.add("objects_per_us", (double)(written.load() - first) * 1e3 / (double)ns);
        answer.add("objects_per_cpu_us", (double)written.load() / std::max(produce_us, consume_us));
        answer.add("resident_before_KiB", (double)before);
        answer.add("resident_KiB", (double)bench::resident_kib());
        answer.add("peak_KiB", (double)bench::peak_kib());
        return 0;
}
