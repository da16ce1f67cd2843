/*
 * bench/macro/many_caches.cc - one to thousands of object caches, all in use
 *
 * Purpose: does a call cost more where there are many caches? Each of `caches` caches gets a number
 * of objects, one cache after the other, and gives them back in the same order. The number of pairs
 * is the same for each number of caches.
 * Answer: ns, processor time for an allocation and its free; create_us, time to make a cache;
 * cache_KiB, resident for each cache after the work; stats_us, shrink_us and destroy_us, time to
 * read the figures of a cache, to give back what it keeps, and to destroy it.
 * Options: caches=N (1000), size=BYTES (64), pairs=N (200000), burst=N (8) objects at a time.
 */
#include <stook/cache.h>
#include <stook/stats.h>

#include "../harness/harness.h"

static constexpr long caches_max = 16384, burst_max = 64;
static struct stook_cache *cache[caches_max];

static void burst_of(struct stook_cache *of, long burst)
{
        void *object[burst_max];
        for (long i = 0; i < burst; i++) {
                object[i] = stook_cache_alloc(of);
                if (!object[i])
                        abort();
                *(char *)object[i] = 1;
        }
        for (long i = 0; i < burst; i++)
                stook_cache_free(of, object[i]);
}

/* Microseconds of processor time for each cache. */
template <typename Work> static double each_us(long caches, Work work)
{
        uint64_t start = bench::processor_ns();
        for (long i = 0; i < caches; i++)
                work(cache[i]);
        return (double)(bench::processor_ns() - start) / 1e3 / (double)caches;
}

static void read_stats(struct stook_cache *of)
{
        struct stook_cache_stats stats = {};
        stats.stats_size = sizeof(stats);
        if (stook_cache_get_stats(of, &stats) != 0)
                abort();
}

static void make(struct stook_cache *&into, size_t size)
{
        into = stook_cache_create("bench-many", size, nullptr);
        if (!into) {
                perror("stook_cache_create");
                exit(1);
        }
}

int main(int argc, char **argv)
{
        long caches = bench::option(argc, argv, "caches", 1000);
        long pairs = bench::option(argc, argv, "pairs", 200000);
        long burst = bench::option(argc, argv, "burst", 8);
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        if (caches < 1 || caches > caches_max || burst < 1 || burst > burst_max)
                return 2;
        bench::pin_to(0);
        bench::answer answer;
        long before = bench::resident_kib();
        uint64_t start = bench::processor_ns();
        for (long i = 0; i < caches; i++)
                make(cache[i], size);
        answer.add("create_us", (double)(bench::processor_ns() - start) / 1e3 / (double)caches);
        for (long i = 0; i < caches; i++)
                burst_of(cache[i], burst);
        long rounds = pairs / burst / caches + 1;
        double made = (double)(rounds * caches * burst);
        start = bench::processor_ns();
        for (long n = 0; n < rounds; n++)
                for (long i = 0; i < caches; i++)
                        burst_of(cache[i], burst);
        answer.add("ns", (double)(bench::processor_ns() - start) / made);
        answer.add("cache_KiB", (double)(bench::resident_kib() - before) / (double)caches);
        answer.add("stats_us", each_us(caches, read_stats));
        answer.add("shrink_us", each_us(caches, stook_cache_shrink));
        answer.add("destroy_us", each_us(caches, stook_cache_destroy));
        return 0;
}
