/*
 * bench/micro/heap_pair.cc - objects of a heap beside malloc
 *
 * Purpose: what objects of a heap cost, against stook_malloc: a pair of one size, of mixed sizes,
 * and batches of 64 of these. What the end of a heap costs is in heap_ends.cc.
 * Place: bench/measure/slices.py runs it. A contender is a way to allocate and free:
 *   calls=malloc       stook_malloc, stook_free
 *   calls=heap         stook_heap_alloc, stook_free
 *   calls=heap_free    stook_heap_alloc, stook_heap_free
 */
#include <stook/heap.h>
#include <stook/malloc.h>

#include "../harness/slices.h"

static constexpr int batch = 64, sizes = 256;
static size_t mixed[sizes];
static struct stook_heap *heap;

struct malloc_calls {
        static void *take(size_t size) { return stook_malloc(size); }
        static void give(void *object) { stook_free(object); }
};
struct heap_calls {
        static void *take(size_t size) { return stook_heap_alloc(heap, size); }
        static void give(void *object) { stook_free(object); }
};
struct heap_free_calls {
        static void *take(size_t size) { return stook_heap_alloc(heap, size); }
        static void give(void *object) { stook_heap_free(heap, object); }
};

template <typename Calls> static void pair(size_t n)
{
        for (; n > 0; n--) {
                void *object = Calls::take(64);
                bench::keep(object);
                Calls::give(object);
        }
}

template <typename Calls> static void mix(size_t n)
{
        for (; n > 0; n--) {
                void *object = Calls::take(mixed[n % sizes]);
                bench::keep(object);
                Calls::give(object);
        }
}

template <typename Calls> static void batches(size_t n)
{
        void *object[batch];

        for (; n > 0; n -= batch) {
                for (size_t k = 0; k < batch; k++)
                        object[k] = Calls::take(mixed[(n + k) % sizes]);
                for (void *o : object)
                        Calls::give(o);
        }
}

template <typename Calls> static int run(int argc, char **argv)
{
        bench::slices all;

        all.add("pair", 1, pair<Calls>);
        all.add("mix", 1, mix<Calls>);
        all.add("batch", batch, batches<Calls>);
        return all.run(argc, argv);
}

int main(int argc, char **argv)
{
        const std::string calls = bench::text_option(argc, argv, "calls", "heap");

        bench::pin_to(0);
        for (size_t &size : mixed)
                size = 16 + (size_t)rand() % 1000;
        heap = stook_heap_create("bench", nullptr);
        if (!heap) {
                perror("stook_heap_create");
                return 1;
        }
        if (calls == "malloc")
                return run<malloc_calls>(argc, argv);
        if (calls == "heap")
                return run<heap_calls>(argc, argv);
        if (calls == "heap_free")
                return run<heap_free_calls>(argc, argv);
        fprintf(stderr, "heap_pair: calls=malloc, heap or heap_free\n");
        return 2;
}
