/*
 * bench/micro/bulk.cc - many objects with one call
 *
 * Purpose: the cost of an object in stook_cache_alloc_bulk() and stook_cache_free_bulk(), beside
 * the least such a call can cost: storing the pointers of a run of objects (store_).
 * Place: figure "bulk allocation, an object"; bench/measure/slices.py runs it.
 * How: `warm_` takes and returns the batches of one barn again and again; `cold_` takes 16 MiB in
 * batches, then returns them all. In rows named _alloc allocation alone is timed. Before each
 * `cold_` slice the caches gave back what they held, so that refills are part of it. Memory is not
 * touched: page faults would hide the allocator.
 */
#include <stook/cache.h>
#include <stook/stats.h>

#include "../harness/slices.h"

static constexpr size_t cold_bytes = (size_t)16 << 20;
static constexpr struct shape {
        size_t size, batch;
} shapes[] = {{16, 256}, {32, 128}, {64, 64}, {128, 32}, {256, 32}, {512, 32}};
static struct stook_cache *cache;

static void make_cache(size_t size, uint64_t flags)
{
        struct stook_cache_args args = {};
        args.args_size = sizeof(args);
        args.flags = flags;
        cache = stook_cache_create("bench-bulk", size, &args);
        if (!cache) {
                perror("stook_cache_create");
                exit(2);
        }
}

static bench::slices::memory destroy_cache()
{
        struct stook_cache_stats stats = {};
        stats.stats_size = sizeof(stats);
        bench::slices::memory found = {{"resident_KiB", (double)bench::resident_kib()}};
        if (stook_cache_get_stats(cache, &stats) == 0)
                found.push_back(
                        {"cached_KiB", (double)(stats.objects_cached * stats.stride) / 1024});
        stook_cache_destroy(cache);
        return found;
}

static void take_bulk(size_t n, void **object)
{
        if (stook_cache_alloc_bulk(cache, 0, n, object) != 0) {
                fprintf(stderr, "stook_cache_alloc_bulk failed\n");
                exit(1);
        }
}

static void both(size_t batch, size_t n)
{
        void *object[256];
        for (; n > 0; n -= batch) {
                take_bulk(batch, object);
                stook_cache_free_bulk(cache, batch, object);
        }
}

/* The limit: pointers of a run of objects are stored, nothing is looked up. */
__attribute__((noinline)) static void store_run(char *start, size_t size, size_t n, void **object)
{
        for (size_t i = 0; i < n; i++, start += size) {
                object[i] = start;
                bench::keep(start);
        }
}

static char memory[64];

/* The ns of take(batch, objects) for 256 objects at a time; give(objects) is not timed. */
template <typename Take, typename Give> static double timed(size_t batch, size_t n, Take take,
                                                            Give give)
{
        static void *object[256];
        uint64_t ns = 0;

        for (; n > 0; n -= 256) {
                uint64_t start = bench::now_ns();
                for (size_t at = 0; at < 256; at += batch)
                        take(batch, object + at);
                ns += bench::now_ns() - start;
                give(object);
        }
        return (double)ns;
}

static double warm_alloc(size_t batch, size_t n)
{
        return timed(batch, n, take_bulk,
                     [](void **object) { stook_cache_free_bulk(cache, 256, object); });
}

static double store_alloc(shape s, size_t n)
{
        return timed(s.batch, n,
                     [s](size_t batch, void **object) { store_run(memory, s.size, batch, object); },
                     [](void **object) { bench::keep(object); });
}

static double cold_alloc(shape s, size_t n)
{
        static void *object[cold_bytes / 16];
        size_t all = cold_bytes / s.size;
        double ns = 0;

        for (; n > 0; n -= all) {
                double start = bench::thread_ns();
                for (size_t at = 0; at < all; at += s.batch)
                        take_bulk(s.batch, object + at);
                ns += bench::thread_ns() - start;
                stook_cache_free_bulk(cache, all, object);
                stook_cache_shrink(cache);
        }
        return ns;
}

static void store_pointers(shape s, size_t n)
{
        void *object[256];
        for (; n > 0; n -= s.batch) {
                store_run(memory, s.size, s.batch, object);
                __asm__ volatile("" : : "r"(object) : "memory");
        }
}

int main(int argc, char **argv)
{
        bench::slices all;

        bench::pin_to(0);
        for (shape s : shapes) {
                std::string name = "/size:" + std::to_string(s.size) +
                                   "/batch:" + std::to_string(s.batch);
                size_t size = s.size, batch = s.batch, cold = cold_bytes / s.size;
                bench::slices::around plain = {[size] { make_cache(size, 0); }, destroy_cache};
                bench::slices::around mixed_up = {
                        [size] { make_cache(size, STOOK_CACHE_RANDOM_ORDER); }, destroy_cache};

                all.add("warm_both" + name, batch, [batch](size_t n) { both(batch, n); }, plain);
                all.add("warm_alloc" + name, 256,
                        [batch](size_t n) { return warm_alloc(batch, n); }, plain);
                all.add("cold_alloc" + name, cold, [s](size_t n) { return cold_alloc(s, n); },
                        plain);
                all.add("cold_alloc_random" + name, cold,
                        [s](size_t n) { return cold_alloc(s, n); }, mixed_up);
                all.add("store_pointers" + name, batch,
                        [s](size_t n) { store_pointers(s, n); });
                all.add("store_alloc" + name, 256, [s](size_t n) { return store_alloc(s, n); });
        }
        return all.run(argc, argv);
}
