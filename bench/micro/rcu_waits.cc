/*
 * bench/micro/rcu_waits.cc - how many bytes wait for readers where the program has grace periods of
 * its own
 *
 * Purpose: one thread frees objects of 64 bytes by RCU at a fixed rate. Another one waits for
 * readers now and then for a purpose of its own, as programs do. A third one reads. What waits is
 * free after any grace period; so it is less where the library learns of those of the program.
 *      way=untold       liburcu-memb; the program's synchronize is not told of
 *      way=told         the same with stook_urcu_begin and stook_urcu_passed around it
 *      way=epoch_none   stook_rcu_epoch; the program waits for no reader
 *      way=epoch        the same with stook_epoch_synchronize
 * Answer: mean_KiB and most_KiB of stook_rcu_backlog(), looked at before the frees of each
 * millisecond; objects_per_ms, which the machine may not keep up with; grace_periods of the
 * program, a second.
 * Options: objects=N a millisecond, every_us=N between the program's waits, section_us=N of the
 * reader, ms=DURATION.
 */
#define URCU_API_MAP
#include <urcu/urcu-memb.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

#include <stook/stook.h>

#include "../harness/harness.h"

static std::atomic<bool> stop;
static std::atomic<long> waits;
static bool by_epoch;

static void pause_us(long us)
{
        struct timespec t = { us / 1000000, us % 1000000 * 1000 };

        clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr);
}

static void read_on(long section_us)
{
        if (!by_epoch)
                urcu_memb_register_thread();
        while (!stop.load(std::memory_order_relaxed)) {
                by_epoch ? stook_epoch_read_lock() : urcu_memb_read_lock();
                pause_us(section_us);
                by_epoch ? stook_epoch_read_unlock() : urcu_memb_read_unlock();
        }
        if (!by_epoch)
                urcu_memb_unregister_thread();
}

static void synchronize(const char *way)
{
        if (by_epoch) {
                stook_epoch_synchronize();
        } else if (!strcmp(way, "told")) {
                uint64_t begun = stook_urcu_begin(&stook_urcu_memb);
                urcu_memb_synchronize_rcu();
                stook_urcu_passed(&stook_urcu_memb, begun);
        } else {
                urcu_memb_synchronize_rcu();
        }
}

static void wait_now_and_then(const char *way, long every_us)
{
        if (!by_epoch)
                urcu_memb_register_thread();
        while (!stop.load(std::memory_order_relaxed)) {
                pause_us(every_us);
                if (strcmp(way, "epoch_none")) {
                        synchronize(way);
                        waits++;
                }
        }
        if (!by_epoch)
                urcu_memb_unregister_thread();
}

int main(int argc, char **argv)
{
        const char *way = bench::text_option(argc, argv, "way", "told");
        long objects = bench::option(argc, argv, "objects", 1000);
        long every_us = bench::option(argc, argv, "every_us", 1000);
        long section_us = bench::option(argc, argv, "section_us", 100);
        long ms = bench::option(argc, argv, "ms", 1000);

        by_epoch = !strcmp(way, "epoch") || !strcmp(way, "epoch_none");
        if ((strcmp(way, "untold") && strcmp(way, "told") && !by_epoch) || objects < 1 ||
            every_us < 0 || section_us < 0 || ms < 1) {
                fprintf(stderr, "rcu_waits: bad options\n");
                return 2;
        }
        bench::answer answer;
        struct stook_cache *cache = stook_cache_create("rcu_waits", 64, nullptr);
        if (!cache || stook_rcu_use(by_epoch ? &stook_rcu_epoch : &stook_urcu_memb))
                return 1;
        std::thread reader(read_on, section_us), waiter(wait_now_and_then, way, every_us);
        if (!by_epoch)
                urcu_memb_register_thread();
        double sum = 0, most = 0;
        long freed = 0, looks = 0;
        uint64_t start = bench::now_ns(), now = start;
        for (uint64_t next = start; now < start + (uint64_t)ms * 1000000; looks++) {
                double backlog = (double)stook_rcu_backlog() / 1024;
                sum += backlog;
                most = std::max(most, backlog);
                for (long i = 0; i < objects; i++, freed++) {
                        void *object = stook_cache_alloc(cache);
                        if (!object)
                                return 1;
                        *(volatile char *)object = 1;
                        while (stook_cache_free_rcu(cache, object) == -EAGAIN)
                                stook_cache_rcu_barrier(cache);
                }
                next += 1000000;
                now = bench::now_ns();
                if (now < next)
                        pause_us((long)(next - now) / 1000);
        }
        double passed_ms = (double)(bench::now_ns() - start) / 1e6;
        stop.store(true, std::memory_order_relaxed);
        reader.join();
        waiter.join();
        answer.add("mean_KiB", sum / (double)looks).add("most_KiB", most);
        answer.add("objects_per_ms", (double)freed / passed_ms);
        answer.add("grace_periods", (double)waits.load() * 1e3 / passed_ms);
        if (!by_epoch)
                urcu_memb_unregister_thread();
        stook_rcu_barrier();
        return 0;
}
