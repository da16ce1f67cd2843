/*
 * bench/micro/malloc_pair.cc - malloc and free of whatever is preloaded
 *
 * Purpose: pairs and batches of one size and of mixed sizes, with nothing else alive and on top of
 * a live set of 64 MiB. One hot size decides little: the mixes and the live set are the figure,
 * too.
 * Place: figure "drop-in malloc+free pair"; run by bench/run.py once for each preloaded allocator
 * and round.
 * Compiled with -fno-builtin-malloc, or the compiler drops the pair.
 */
#include <benchmark/benchmark.h>

#include "../harness/harness.h"
#include "malloc_main.h"

static uint16_t mapped_sizes[1 << 20];
static void *live[1 << 20];

static void report_memory(benchmark::State &state, double live_bytes)
{
        double resident = (double)bench::resident_kib();
        state.counters["resident_KiB"] = resident;
        state.counters["held_KiB"] = resident - live_bytes / 1024;
}

static void pair(benchmark::State &state)
{
        size_t size = (size_t)state.range(0);
        for (auto _ : state) {
                void *object = malloc(size);
                bench::keep(object);
                free(object);
        }
        report_memory(state, 0);
}
BENCHMARK(pair)->Arg(16)->Arg(64)->Arg(512)->Arg(4096)->Arg(40000)->Arg(65536);

/* 64 objects, then all freed in the same order; time is for one object. */
static void batch64(benchmark::State &state)
{
        size_t size = (size_t)state.range(0);
        void *object[64];
        while (state.KeepRunningBatch(64)) {
                for (void *&p : object)
                        p = malloc(size);
                for (void *p : object)
                        free(p);
        }
        report_memory(state, 0);
}
BENCHMARK(batch64)->Arg(64)->Arg(512);

static void pair_mix(benchmark::State &state)
{
        size_t i = 0;
        for (auto _ : state) {
                void *object = malloc(mixed[i++ % sizes_count]);
                bench::keep(object);
                free(object);
        }
        report_memory(state, 0);
}
BENCHMARK(pair_mix);

static void batch64_mix(benchmark::State &state)
{
        size_t i = 0;
        void *object[64];
        while (state.KeepRunningBatch(64)) {
                for (void *&p : object) {
                        p = malloc(mixed[i++ % sizes_count]);
                        *(volatile char *)p = 1;
                }
                for (void *p : object)
                        free(p);
        }
        report_memory(state, 0);
}
BENCHMARK(batch64_mix);

/*
 * 64 MiB of mixed sizes stay alive; each step frees one of them at random and allocates another
 * size in its place, writing its first word.
 */
static void live_64MiB(benchmark::State &state)
{
        bench::rng r(7);
        size_t count = 0, bytes = 0;
        while (bytes < (size_t)64 << 20 && count < sizeof(live) / sizeof(live[0])) {
                mapped_sizes[count] = (uint16_t)bench::mixed_size(r);
                live[count] = malloc(mapped_sizes[count]);
                memset(live[count], 1, mapped_sizes[count]);
                bytes += mapped_sizes[count++];
        }
        size_t i = 0;
        for (auto _ : state) {
                uint32_t at = r.below((uint32_t)count);
                uint16_t size = mixed[i++ % sizes_count];
                free(live[at]);
                live[at] = malloc(size);
                *(volatile char *)live[at] = 1;
                bytes += size;
                bytes -= mapped_sizes[at];
                mapped_sizes[at] = size;
        }
        report_memory(state, (double)bytes);
        for (size_t k = 0; k < count; k++)
                free(live[k]);
}
BENCHMARK(live_64MiB);
