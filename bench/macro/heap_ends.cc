/*
 * bench/macro/heap_ends.cc - what heaps take, and what their end costs
 *
 * Purpose: the end of a heap, by what is alive in it, and beside what else the process has; the
 * memory of heaps. What an object of a heap costs is in heap_pair.cc.
 * How: the least of many short rounds counts.
 * Answer: empty_us: a heap is made and destroyed; ten_us: with an object in each of ten sizes;
 * reset_us: those ten are reset. end_ns: an object of 64 bytes of a million that end with their
 * heap; free_ns: one of them that is freed by itself. beside_us: ten_us with 256 MiB of others'
 * objects in the process. empty_KiB, ten_KiB: resident memory of such a heap, of a thousand.
 * Options: rounds=N, objects=N (of the heap that ends).
 */
#include <algorithm>
#include <vector>

#include <stook/heap.h>
#include <stook/malloc.h>

#include "../harness/harness.h"

static constexpr int many = 1000;

template <typename Work> static double us_of(Work work)
{
        uint64_t start = bench::now_ns();
        work();
        return (double)(bench::now_ns() - start) / 1e3;
}

static struct stook_heap *make()
{
        struct stook_heap *made = stook_heap_create("bench", nullptr);

        if (!made)
                abort();
        return made;
}

static void ten(struct stook_heap *of)
{
        for (size_t size = 16; size <= 16 << 9; size *= 2) {
                char *object = (char *)stook_heap_alloc(of, size);
                if (!object)
                        abort();
                *object = 1;
        }
}

template <typename Work> static double least_us(long rounds, Work work)
{
        double least = 1e9;

        for (long i = 0; i < rounds; i++)
                least = std::min(least, us_of(work));
        return least;
}

static double made_ten_us(long rounds)
{
        return least_us(rounds, [] {
                struct stook_heap *made = make();
                ten(made);
                stook_heap_destroy(made);
        });
}

static void ends(long rounds, bench::answer &answer)
{
        answer.add("empty_us", least_us(rounds, [] { stook_heap_destroy(make()); }));
        answer.add("ten_us", made_ten_us(rounds));
        struct stook_heap *kept = make();
        answer.add("reset_us", least_us(rounds, [=] {
                ten(kept);
                stook_heap_reset(kept);
        }));
        stook_heap_destroy(kept);
        std::vector<void *> others((256u << 20) / 1024);
        for (void *&o : others)
                *(char *)(o = stook_malloc(1024)) = 1;
        answer.add("beside_us", made_ten_us(std::min(rounds, 20L)));
        for (void *o : others)
                stook_free(o);
}

static void end_of_many(size_t n, bench::answer &answer)
{
        std::vector<void *> object(n);
        double end_us = 1e9, free_us = 1e9;

        for (int round = 0; round < 5; round++) {
                struct stook_heap *full = make();
                for (void *&o : object)
                        *(char *)(o = stook_heap_alloc(full, 64)) = 1;
                end_us = std::min(end_us, us_of([=] { stook_heap_destroy(full); }));
                full = make();
                for (void *&o : object)
                        *(char *)(o = stook_heap_alloc(full, 64)) = 1;
                free_us = std::min(free_us, us_of([&] {
                        for (void *o : object)
                                stook_heap_free(full, o);
                        stook_heap_destroy(full);
                }));
        }
        answer.add("end_ns", end_us * 1e3 / (double)n).add("free_ns", free_us * 1e3 / (double)n);
}

/* Half as many with ten sizes: more indices for caches there are not. */
static void memory(bench::answer &answer)
{
        std::vector<struct stook_heap *> made;
        made.reserve(many + many / 2);
        long before = bench::resident_kib();

        while (made.size() < many)
                made.push_back(make());
        long empty = bench::resident_kib();
        while (made.size() < many + many / 2) {
                made.push_back(make());
                ten(made.back());
        }
        answer.add("empty_KiB", (double)(empty - before) / many);
        answer.add("ten_KiB", (double)(bench::resident_kib() - empty) / (many / 2));
        for (struct stook_heap *one : made)
                stook_heap_destroy(one);
}

int main(int argc, char **argv)
{
        long rounds = bench::option(argc, argv, "rounds", 1000);
        long n = bench::option(argc, argv, "objects", 1000000);

        if (rounds < 1 || n < 1) {
                fprintf(stderr, "heap_ends: bad options\n");
                return 2;
        }
        bench::pin_to(0);
        bench::answer answer;
        memory(answer);
        ends(rounds, answer);
        end_of_many((size_t)n, answer);
        return 0;
}
