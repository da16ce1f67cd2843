/*
 * bench/micro/object_pair.cc - objects of 64 bytes, the way a program that cares would get them
 *
 * Purpose: the cost of one allocation and one free, alone and in batches, for the contender
 * compiled in (contender.h). One process holds one contender: bench/run.py interleaves them.
 * Place: figures "object-cache pair" inlined, out of line and against the private array.
 */
#include <benchmark/benchmark.h>

#include "contender.h"

static void report_memory(benchmark::State &state)
{
        if (cached_bytes() >= 0)
                state.counters["cached_KiB"] = cached_bytes() / 1024;
        state.counters["resident_KiB"] = (double)bench::resident_kib();
}

/* One object taken and given back: it stays in the first-level cache, only instructions count. */
static void pair(benchmark::State &state)
{
        for (auto _ : state) {
                void *object = take();
                bench::keep(object);
                give(object);
        }
        report_memory(state);
}
BENCHMARK(pair);

/* `n` objects taken, then given back in the same order; time is for one object. */
static void batch(benchmark::State &state)
{
        size_t n = (size_t)state.range(0);
        static void *object[1024];
        while (state.KeepRunningBatch((benchmark::IterationCount)n)) {
                for (size_t i = 0; i < n; i++)
                        object[i] = take();
                bench::keep(n);
                for (size_t i = 0; i < n; i++)
                        give(object[i]);
                bench::keep(n);
        }
        report_memory(state);
}
BENCHMARK(batch)->Arg(10)->Arg(64)->Arg(1000);

int main(int argc, char **argv)
{
        bench::pin_to(0);
        prepare();
        benchmark::AddCustomContext("malloc_from", bench::malloc_from());
        benchmark::Initialize(&argc, argv);
        if (benchmark::ReportUnrecognizedArguments(argc, argv))
                return 2;
        benchmark::RunSpecifiedBenchmarks();
        return 0;
}
