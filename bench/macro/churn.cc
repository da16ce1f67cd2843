/*
 * bench/macro/churn.cc - values whose sizes drift
 *
 * Purpose: fragmentation as a long-lived store of values sees it. 64 MiB of values are alive at all
 * times. The size asked for drifts from 100 bytes to 10 KiB and back in small steps; in each step a
 * part of the values, chosen at random, is replaced by ones of the new size. What was freed at one
 * size must serve the next.
 * Answer: live_KiB, peak_KiB beyond the start, end_KiB beyond the start, ns_per_replace.
 * Options: mib=LIVE, steps=N each way, seed=N.
 */
#include <cmath>
#include <sys/mman.h>
#include <vector>

#include "../harness/harness.h"

struct value {
        char *at;
        uint32_t size;
};

static constexpr double smallest = 100, largest = 10240;

class store {
public:
        store(size_t bytes, uint64_t seed) : limit(bytes), r(seed)
        {
                room = bytes / 50;
                void *at = mmap(nullptr, room * sizeof(value), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
                if (at == MAP_FAILED)
                        exit(1);
                values = (value *)at;
        }
        void drop()
        {
                uint32_t i = r.below((uint32_t)count);
                free(values[i].at);
                live -= values[i].size;
                values[i] = values[--count];
        }
        /* A value of about `mean` bytes; as many old ones leave as make room for it. */
        void put(double mean)
        {
                uint32_t size = (uint32_t)(mean * (0.5 + r.below(1024) / 1024.0));
                while (count && (live + size > limit || count == room))
                        drop();
                char *at = (char *)malloc(size);
                if (!at)
                        exit(1);
                memset(at, 1, size);
                values[count++] = value{at, size};
                live += size;
                replaced++;
        }
        /* Writes as many bytes of new values as are alive. */
        void turn_over(double mean)
        {
                for (size_t bytes = 0; bytes < limit; bytes += (size_t)mean)
                        put(mean);
        }
        size_t live = 0, replaced = 0;

private:
        size_t limit, room, count = 0;
        value *values;
        bench::rng r;
};

int main(int argc, char **argv)
{
        size_t bytes = (size_t)bench::option(argc, argv, "mib", 64) << 20;
        int steps = (int)bench::option(argc, argv, "steps", 20);
        bench::answer answer;
        store s(bytes, (uint64_t)bench::option(argc, argv, "seed", 1));
        long before = bench::resident_kib();
        uint64_t start = bench::now_ns();
        for (int step = 0; step < 2 * steps; step++) {
                double way = (double)(step < steps ? step : 2 * steps - 1 - step) / (steps - 1);
                s.turn_over(smallest * std::pow(largest / smallest, way));
        }
        double ns = (double)(bench::now_ns() - start);
        answer.add("live_KiB", (double)s.live / 1024)
                .add("peak_KiB", (double)(bench::peak_kib() - before));
        answer.add("end_KiB", (double)(bench::resident_kib() - before));
        answer.add("ns_per_replace", ns / (double)s.replaced);
        return 0;
}
