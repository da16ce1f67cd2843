/*
 * bench/micro/bulk.cc - many objects with one call
 *
 * Purpose: the cost of an object in stook_cache_alloc_bulk() and stook_cache_free_bulk(), beside
 * the least such a call can cost: storing the pointers of a run of objects (store_pointers).
 * Place: figure "bulk allocation, an object", and table 1.2 of the kernel's figures.
 * How: `warm` takes and returns one batch again and again. `cold` takes 256 MiB in batches, then
 * returns them all; only allocation is timed, and what the caches held was given back before each
 * round, so that refills are part of it. Memory is not touched: page faults would hide the
 * allocator.
 */
#include <benchmark/benchmark.h>

#include <vector>

#include <stook/cache.h>
#include <stook/stats.h>

#include "../harness/harness.h"

static constexpr size_t cold_bytes = (size_t)256 << 20;

static void sizes_and_batches(benchmark::internal::Benchmark *b)
{
        b->ArgNames({"size", "batch"});
        b->Args({ 16, 256 })
                ->Args({ 32, 128 })
                ->Args({ 64, 64 })
                ->Args({ 128, 32 })
                ->Args({ 256, 32 })
                ->Args({ 512, 32 });
}

static struct stook_cache *cache_of(size_t size, uint64_t flags)
{
        struct stook_cache_args args = {};
        args.args_size = sizeof(args);
        args.flags = flags;
        struct stook_cache *cache = stook_cache_create("bench-bulk", size, &args);
        if (!cache) {
                perror("stook_cache_create");
                exit(2);
        }
        return cache;
}

static void report_memory(benchmark::State &state, const struct stook_cache *cache)
{
        struct stook_cache_stats stats = {};
        stats.stats_size = sizeof(stats);
        if (stook_cache_get_stats(cache, &stats) == 0)
                state.counters["cached_KiB"] = (double)(stats.objects_cached * stats.stride) / 1024;
        state.counters["resident_KiB"] = (double)bench::resident_kib();
}

static double per_object(uint64_t ns, size_t objects)
{
        return (double)ns * 1e-9 / (double)objects;
}

/*
 * The time of one benchmark iteration is that of one object: pair of allocation and free in `both`.
 */
static void warm_both(benchmark::State &state)
{
        size_t size = (size_t)state.range(0), n = (size_t)state.range(1);
        struct stook_cache *cache = cache_of(size, 0);
        void *object[256];
        while (state.KeepRunningBatch((benchmark::IterationCount)n)) {
                if (stook_cache_alloc_bulk(cache, 0, n, object) != 0)
                        state.SkipWithError("stook_cache_alloc_bulk failed");
                stook_cache_free_bulk(cache, n, object);
        }
        report_memory(state, cache);
        stook_cache_destroy(cache);
}
BENCHMARK(warm_both)->Apply(sizes_and_batches);

/*
 * Allocation alone, from sheaves: the batches of one barn are taken with the clock running, and
 * given back with it stopped.
 */
static void warm_alloc(benchmark::State &state)
{
        size_t size = (size_t)state.range(0), n = (size_t)state.range(1);
        struct stook_cache *cache = cache_of(size, 0);
        static void *object[512];
        size_t batches = 256 / n ? 256 / n : 1;
        for (auto _ : state) {
                uint64_t ns = 0;
                for (int round = 0; round < 1000; round++) {
                        uint64_t start = bench::now_ns();
                        for (size_t b = 0; b < batches; b++)
                                if (stook_cache_alloc_bulk(cache, 0, n, object + b * n) != 0)
                                        state.SkipWithError("stook_cache_alloc_bulk failed");
                        ns += bench::now_ns() - start;
                        stook_cache_free_bulk(cache, batches * n, object);
                }
                state.SetIterationTime(per_object(ns, 1000 * batches * n));
        }
        report_memory(state, cache);
        stook_cache_destroy(cache);
}
BENCHMARK(warm_alloc)->Apply(sizes_and_batches)->UseManualTime()->Iterations(20);

static void cold(benchmark::State &state, uint64_t flags)
{
        size_t size = (size_t)state.range(0), n = (size_t)state.range(1);
        size_t batches = cold_bytes / size / n;
        std::vector<void *> object(batches * n);
        struct stook_cache *cache = cache_of(size, flags);
        for (auto _ : state) {
                uint64_t start = bench::now_ns();
                for (size_t b = 0; b < batches; b++)
                        if (stook_cache_alloc_bulk(cache, 0, n, &object[b * n]) != 0)
                                state.SkipWithError("stook_cache_alloc_bulk failed");
                state.SetIterationTime(per_object(bench::now_ns() - start, batches * n));
                stook_cache_free_bulk(cache, batches * n, object.data());
                stook_cache_shrink(cache);
        }
        report_memory(state, cache);
        stook_cache_destroy(cache);
}

static void cold_alloc(benchmark::State &state)
{
        cold(state, 0);
}
BENCHMARK(cold_alloc)->Apply(sizes_and_batches)->UseManualTime()->Iterations(3);

static void cold_alloc_random(benchmark::State &state)
{
        cold(state, STOOK_CACHE_RANDOM_ORDER);
}
BENCHMARK(cold_alloc_random)->Apply(sizes_and_batches)->UseManualTime()->Iterations(3);

/* The limit: pointers of a run of objects are stored, nothing is looked up. */
__attribute__((noinline)) static void store_run(char *start, size_t size, size_t n, void **object)
{
        for (size_t i = 0; i < n; i++, start += size) {
                object[i] = start;
                bench::keep(start);
        }
}

static void store_pointers(benchmark::State &state)
{
        size_t size = (size_t)state.range(0), n = (size_t)state.range(1);
        static char memory[64];
        void *object[256];
        while (state.KeepRunningBatch((benchmark::IterationCount)n)) {
                store_run(memory, size, n, object);
                benchmark::ClobberMemory();
        }
}
BENCHMARK(store_pointers)->Apply(sizes_and_batches);

/* The same under the clock as warm_alloc has it, so that the two compare. */
static void store_alloc(benchmark::State &state)
{
        size_t size = (size_t)state.range(0), n = (size_t)state.range(1);
        static char memory[64];
        static void *object[512];
        size_t batches = 256 / n ? 256 / n : 1;
        for (auto _ : state) {
                uint64_t ns = 0;
                for (int round = 0; round < 1000; round++) {
                        uint64_t start = bench::now_ns();
                        for (size_t b = 0; b < batches; b++)
                                store_run(memory, size, n, object + b * n);
                        ns += bench::now_ns() - start;
                        benchmark::ClobberMemory();
                }
                state.SetIterationTime(per_object(ns, 1000 * batches * n));
        }
}
BENCHMARK(store_alloc)->Apply(sizes_and_batches)->UseManualTime()->Iterations(20);

int main(int argc, char **argv)
{
        bench::pin_to(0);
        benchmark::AddCustomContext("malloc_from", bench::malloc_from());
        benchmark::Initialize(&argc, argv);
        if (benchmark::ReportUnrecognizedArguments(argc, argv))
                return 2;
        benchmark::RunSpecifiedBenchmarks();
        return 0;
}
