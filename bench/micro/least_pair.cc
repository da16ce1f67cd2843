/*
 * bench/micro/least_pair.cc - a pair of calls where nothing disturbs it
 *
 * Purpose: what the code itself costs, so that two builds that differ in a few instructions, or in
 * where these lie, can be told apart on a machine with other work. Many rounds are so short that
 * some of them are not interrupted. The least of them counts.
 * Answer: pair_ns and batch_ns, wall time of an object that is allocated and freed, one after the
 * other and in batches of 16; alloc_tsc and free_tsc, cycles of the time-stamp counter of one
 * allocation and of one free, 32 of a kind in turn.
 * Built twice: with malloc, and (CONTENDER_CACHE) with one object cache of Stook's, out of line.
 * Options: size=BYTES, rounds=N.
 */
#include <algorithm>

#include "../harness/harness.h"
#include "../harness/malloc_or_cache.h"
#include "../harness/tsc.h"

static constexpr int objects = 20000, batch = 16, kind = 32;

/* Nothing before it is still under way when the counter is read, and nothing behind it begun. */
static uint64_t fenced_tsc()
{
#if defined(__x86_64__)
        __builtin_ia32_lfence();
        uint64_t now = bench::tsc();
        __builtin_ia32_lfence();
        return now;
#else
        return bench::tsc();
#endif
}

static void pairs(size_t size)
{
        for (int i = 0; i < objects; i++) {
                void *object = bench::take(size);
                bench::keep(object);
                bench::give(object);
        }
}

static void batches(size_t size)
{
        void *object[batch];

        for (int i = 0; i < objects / batch; i++) {
                for (void *&o : object)
                        o = bench::take(size);
                for (void *o : object)
                        bench::give(o);
        }
}

template <typename Work> static double least_ns(long rounds, size_t size, Work work)
{
        uint64_t least = UINT64_MAX;

        for (long i = 0; i < rounds; i++) {
                uint64_t start = bench::now_ns();
                work(size);
                least = std::min(least, bench::now_ns() - start);
        }
        return (double)least / objects;
}

static void of_a_kind(long rounds, size_t size, bench::answer &answer)
{
        uint64_t nothing = UINT64_MAX, allocs = UINT64_MAX, frees = UINT64_MAX;
        void *object[kind];

        for (long i = 0; i < rounds; i++) {
                uint64_t start = fenced_tsc(), begun = fenced_tsc();
                for (void *&o : object)
                        o = bench::take(size);
                uint64_t allocated = fenced_tsc();
                for (void *o : object)
                        bench::give(o);
                uint64_t freed = fenced_tsc();
                nothing = std::min(nothing, begun - start);
                allocs = std::min(allocs, allocated - begun);
                frees = std::min(frees, freed - allocated);
        }
        answer.add("alloc_tsc", (double)(allocs - nothing) / kind)
                .add("free_tsc", (double)(frees - nothing) / kind);
}

int main(int argc, char **argv)
{
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        long rounds = bench::option(argc, argv, "rounds", 3000);

        if (!size || rounds < 1) {
                fprintf(stderr, "least_pair: bad options\n");
                return 2;
        }
        bench::pin_to(0);
        if (!bench::prepare(size)) {
                perror("stook_cache_create");
                return 1;
        }
        bench::answer answer;
        answer.add("pair_ns", least_ns(rounds, size, pairs));
        answer.add("batch_ns", least_ns(rounds, size, batches));
        of_a_kind(rounds * 10, size, answer);
        return 0;
}
