/*
 * bench/micro/malloc_main.cc - runs the benchmarks of malloc_pair.cc or malloc_calls.cc on one CPU
 *
 * The answer says which file malloc comes from (malloc_from), so that bench/run.py sees whether the
 * preloaded allocator was measured.
 */
#include <benchmark/benchmark.h>

#include "../harness/harness.h"
#include "malloc_main.h"

uint16_t mixed[sizes_count];

int main(int argc, char **argv)
{
        bench::pin_to(0);
        bench::rng r(1);
        for (uint16_t &size : mixed)
                size = (uint16_t)bench::mixed_size(r);
        benchmark::AddCustomContext("malloc_from", bench::malloc_from());
        benchmark::Initialize(&argc, argv);
        if (benchmark::ReportUnrecognizedArguments(argc, argv))
                return 2;
        benchmark::RunSpecifiedBenchmarks();
        return 0;
}
