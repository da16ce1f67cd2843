/*
 * bench/macro/spike.cc - what stays after a spike
 *
 * Purpose: 1 GiB is allocated, written and freed; then the program is idle for ten seconds.
 * Answer: before_KiB, peak_KiB, after_KiB right after the last free, idle_KiB ten seconds later,
 * busy_KiB after ten more seconds in which a handful of objects is allocated and freed a thousand
 * times a second (allocators that purge by age without a thread of their own need calls to do it
 * in); seconds for the spike itself.
 * With calls=N also called_KiB: after the idle time stook_maintain() is called N times, 200 ms
 * apart.
 * Options: size=BYTES of an object (0: mixed), mib=SPIKE, wait=SECONDS, calls=N, random=1 (freed in
 * random order).
 */
#include <sys/mman.h>
#include <utility>

#include "../harness/harness.h"

int main(int argc, char **argv)
{
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        size_t total = (size_t)bench::option(argc, argv, "mib", 1024) << 20;
        long wait = bench::option(argc, argv, "wait", 10);
        long calls = bench::option(argc, argv, "calls", 0);
        bool random = bench::option(argc, argv, "random", 0) != 0;
        bench::answer answer;
        bench::rng r(5);
        void *warm = malloc(100);
        bench::keep(warm);
        free(warm);

        /* The array of pointers is ours, not the allocator's, and there before. */
        size_t room = total / (size ? size : 16) + 1;
        void **object = (void **)mmap(nullptr, room * sizeof(void *), PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (object == MAP_FAILED)
                return 1;
        long before = bench::resident_kib();

        uint64_t start = bench::now_ns();
        size_t n = 0;
        for (size_t bytes = 0; bytes < total && n < room; n++) {
                size_t want = size ? size : bench::mixed_size(r);
                object[n] = malloc(want);
                if (!object[n])
                        return 1;
                memset(object[n], 1, want);
                bytes += want;
        }
        for (size_t i = n; random && i > 1; i--)
                std::swap(object[i - 1], object[r.below((uint32_t)i)]);
        for (size_t i = 0; i < n; i++)
                free(object[i]);
        double seconds = (double)(bench::now_ns() - start) / 1e9;
        long after = bench::resident_kib();
        sleep((unsigned)wait);
        long idle = bench::resident_kib();
        auto maintain = (int (*)())dlsym(RTLD_DEFAULT, "stook_maintain");
        for (long i = 0; maintain && i < calls; i++, usleep(200000))
                maintain();
        long called = bench::resident_kib();
        for (uint64_t end = bench::now_ns() + (uint64_t)wait * 1000000000u; bench::now_ns() < end;
             usleep(1000)) {
                void *few[64];
                for (void *&p : few)
                        p = malloc(bench::mixed_size(r));
                for (void *p : few)
                        free(p);
        }
        answer.add("before_KiB", (double)before).add("peak_KiB", (double)bench::peak_kib());
        answer.add("after_KiB", (double)(after - before)).add("idle_KiB", (double)(idle - before));
        if (calls)
                answer.add("called_KiB", (double)(called - before));
        answer.add("busy_KiB", (double)(bench::resident_kib() - before)).add("seconds", seconds);
        return 0;
}
