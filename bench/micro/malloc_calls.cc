/*
 * bench/micro/malloc_calls.cc - the calls beside malloc and free, of whatever is preloaded
 *
 * Purpose: realloc, calloc, aligned allocation, strdup, malloc_usable_size, C++'s new and delete,
 * and containers: each by itself, so that a slow one is seen. Time is for one call of the name and
 * the free that belongs to it, if not said otherwise.
 * Place: run by bench/run.py once for each preloaded allocator and round; malloc and free alone are
 * in malloc_pair.cc.
 * Memory is not written, except where the call or the container does so.
 */
#include <benchmark/benchmark.h>
#include <list>
#include <malloc.h>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "../harness/harness.h"
#include "malloc_main.h"

static void *checked(void *object)
{
        if (!object)
                abort();
        bench::keep(object);
        return object;
}

/* Both sizes have room in one block of each of the peers; one call. */
static void realloc_in_place(benchmark::State &state)
{
        void *object = checked(malloc(97));
        size_t size = 97;
        for (auto _ : state) {
                size ^= 97 ^ 104;
                object = checked(realloc(object, size));
        }
        free(object);
}
BENCHMARK(realloc_in_place);

/* As a buffer grows that began too small: malloc, realloc, free. */
static void realloc_24_to_100(benchmark::State &state)
{
        for (auto _ : state) {
                void *object = checked(malloc(24));
                object = checked(realloc(object, 100));
                free(object);
        }
}
BENCHMARK(realloc_24_to_100);

static void calloc_free(benchmark::State &state)
{
        size_t size = (size_t)state.range(0);
        for (auto _ : state)
                free(checked(calloc(1, size)));
}
BENCHMARK(calloc_free)->Name("calloc")->Arg(64)->Arg(1024);

/* Arguments: alignment, size. */
static void aligned(benchmark::State &state)
{
        size_t alignment = (size_t)state.range(0), size = (size_t)state.range(1);
        for (auto _ : state)
                free(checked(aligned_alloc(alignment, size)));
}
BENCHMARK(aligned)->Name("aligned_alloc")->Args({64, 64})->Args({64, 512});

static void memalign_free(benchmark::State &state)
{
        size_t alignment = (size_t)state.range(0), size = (size_t)state.range(1);
        for (auto _ : state)
                free(checked(memalign(alignment, size)));
}
BENCHMARK(memalign_free)->Name("memalign")->Args({4096, 4096});

static void posix_aligned(benchmark::State &state)
{
        size_t alignment = (size_t)state.range(0), size = (size_t)state.range(1);
        for (auto _ : state) {
                void *object = nullptr;
                if (posix_memalign(&object, alignment, size))
                        abort();
                free(checked(object));
        }
}
BENCHMARK(posix_aligned)->Name("posix_memalign")->Args({64, 64})->Args({4096, 4096});

/* Of one of 4,096 live objects of mixed sizes in turn; one call. */
static void usable_size(benchmark::State &state)
{
        static void *live[sizes_count];
        size_t i = 0, sum = 0;
        for (size_t k = 0; k < sizes_count; k++)
                live[k] = checked(malloc(mixed[k]));
        for (auto _ : state) {
                sum += malloc_usable_size(live[i++ % sizes_count]);
                bench::keep(sum);
        }
        for (void *object : live)
                free(object);
}
BENCHMARK(usable_size)->Name("malloc_usable_size");

/* Of texts of 0 to 63 characters. */
static void strdup_free(benchmark::State &state)
{
        static char texts[64][64];
        size_t i = 0;
        for (size_t k = 0; k < 64; k++)
                memset(texts[k], 'x', k * 29 % 64);
        for (auto _ : state)
                free(checked(strdup(texts[i++ % 64])));
}
BENCHMARK(strdup_free)->Name("strdup");

struct object64 {
        char bytes[64];
};
struct alignas(64) aligned64 {
        char bytes[64];
};

static void new_delete(benchmark::State &state)
{
        for (auto _ : state) {
                auto *object = new object64;
                bench::keep(object);
                delete object;
        }
}
BENCHMARK(new_delete);

static void new_nothrow(benchmark::State &state)
{
        for (auto _ : state) {
                auto *object = new (std::nothrow) object64;
                bench::keep(object);
                delete object;
        }
}
BENCHMARK(new_nothrow);

static void new_aligned(benchmark::State &state)
{
        for (auto _ : state) {
                auto *object = new aligned64;
                bench::keep(object);
                delete object;
        }
}
BENCHMARK(new_aligned);

static void new_array_mix(benchmark::State &state)
{
        size_t i = 0;
        for (auto _ : state) {
                char *object = new char[mixed[i++ % sizes_count]];
                bench::keep(object);
                delete[] object;
        }
}
BENCHMARK(new_array_mix);

/* One of 64 objects of mixed sizes is replaced; every second one comes from new, by turns. */
static void new_and_malloc_mix(benchmark::State &state)
{
        void *object[64] = {};
        size_t i = 0;
        for (auto _ : state) {
                void *&at = object[i % 64];
                size_t size = mixed[i % sizes_count];
                if (i++ & 1) {
                        ::operator delete(at);
                        at = ::operator new(size);
                } else {
                        free(at);
                        at = malloc(size);
                }
                *(volatile char *)at = 1;
        }
        for (size_t k = 0; k < 64; k++) {
                if (k & 1)
                        ::operator delete(object[k]);
                else
                        free(object[k]);
        }
}
BENCHMARK(new_and_malloc_mix);

/*
 * A key drawn from 512 is put into a map, or taken out if it is there: a node, a key, and a value.
 * Most keys and values are longer than a string holds itself. Time is for one of either.
 */
static void map_of_strings(benchmark::State &state)
{
        std::vector<std::string> keys;
        std::map<std::string, std::string> map;
        bench::rng r(3);
        for (size_t k = 0; k < 512; k++)
                keys.push_back(std::to_string(r.next()) + std::string(k * 11 % 32, 'k'));
        for (auto _ : state) {
                const std::string &key = keys[r.below(512)];
                auto found = map.find(key);
                if (found != map.end())
                        map.erase(found);
                else
                        map.emplace(key, std::string(r.below(64), 'v'));
        }
}
BENCHMARK(map_of_strings);

/* A queue of 64 lines of text: one more at its end, the first goes. */
static void list_of_strings(benchmark::State &state)
{
        std::list<std::string> list(64);
        size_t i = 0;
        for (auto _ : state) {
                list.emplace_back(mixed[i++ % sizes_count] % 128, 'l');
                list.pop_front();
        }
}
BENCHMARK(list_of_strings);
