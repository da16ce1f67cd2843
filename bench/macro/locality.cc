/*
 * bench/macro/locality.cc - what a layer of cached objects does to locality, over time
 *
 * Purpose: what sheaves were said to lose. Objects of a sheaf come from many slabs, so objects
 * allocated one after the other lie on many pages; and objects that wait in a sheaf keep slabs that
 * would be empty. A live set of n objects is allocated. In each step half of it, chosen at random,
 * is freed in random order and allocated again. In the end everything is freed in random order.
 * Answer: touched_N: different pages of 4 KiB that the first 1,000 allocations of step N lie on,
 * for N 1, 10, 100 ... up to steps; packed: those that 1,000 objects would need; live_KiB: resident
 * beyond the start with all objects alive, after the last step; left_KiB: after the last free. With
 * an object cache also pinned_slabs: slabs that stay although no object is in use, for sheaves have
 * objects of them, or because the cache keeps them; and cached: those objects.
 * Built twice: with malloc, and (CONTENDER_CACHE) with one object cache of Stook's.
 * Options: size=64, objects=100000, steps=100; of the cache: none=1, without sheaves.
 */
#include <algorithm>
#include <sys/mman.h>
#include <vector>

#include "../harness/harness.h"

#if defined(CONTENDER_CACHE)
#include <stook/cache.h>
#include <stook/stats.h>

static struct stook_cache *cache;

static bool prepare(size_t size, bool none)
{
        struct stook_cache_args args = {};
        args.args_size = sizeof(args);
        args.flags = none ? STOOK_CACHE_NO_SHEAVES : 0;
        cache = stook_cache_create("bench-locality", size, &args);
        return cache != nullptr;
}
static void *take(size_t) { return stook_cache_alloc(cache); }
static void give(void *object) { stook_cache_free(cache, object); }
static void add_slabs(bench::answer &answer)
{
        struct stook_cache_stats s = {};
        s.stats_size = sizeof(s);
        if (!stook_cache_get_stats(cache, &s))
                answer.add("pinned_slabs", (double)s.slabs).add("cached", (double)s.objects_cached);
}
#else
static bool prepare(size_t, bool) { return true; }
static void *take(size_t size) { return malloc(size); }
static void give(void *object) { free(object); }
static void add_slabs(bench::answer &) {}
#endif

static constexpr size_t looked_at = 1000;

/* The set's pointers are mapped and touched before the start: they are not in the answer. */
class live_set {
public:
        live_set(size_t bytes, size_t n) : size(bytes), count(n), r(n)
        {
                void *at = mmap(nullptr, n * sizeof(void *), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
                if (at == MAP_FAILED)
                        exit(1);
                object = (void **)at;
        }
        void fill(size_t from = 0)
        {
                for (size_t i = from; i < count; i++) {
                        object[i] = take(size);
                        if (!object[i])
                                exit(1);
                        *(volatile char *)object[i] = 1;
                }
        }
        void shuffle()
        {
                for (size_t i = count - 1; i > 0; i--)
                        std::swap(object[i], object[r.below((uint32_t)(i + 1))]);
        }
        void empty(size_t from = 0)
        {
                for (size_t i = from; i < count; i++)
                        give(object[i]);
        }
        /* Pages of the objects that were allocated first behind @from. */
        size_t pages(size_t from) const
        {
                std::vector<uintptr_t> found;
                for (size_t i = from; i < std::min(from + looked_at, count); i++)
                        found.push_back((uintptr_t)object[i] >> 12);
                std::sort(found.begin(), found.end());
                return (size_t)(std::unique(found.begin(), found.end()) - found.begin());
        }

private:
        size_t size, count;
        bench::rng r;
        void **object;
};

int main(int argc, char **argv)
{
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        size_t objects = (size_t)bench::option(argc, argv, "objects", 100000);
        size_t steps = (size_t)bench::option(argc, argv, "steps", 100), shown = 1;

        if (!size || objects < 2 * looked_at || !steps || objects > UINT32_MAX) {
                fprintf(stderr, "locality: bad options\n");
                return 2;
        }
        bench::pin_to(0);
        bench::answer answer;
        live_set set(size, objects);
        long before = bench::resident_kib();
        if (!prepare(size, bench::option(argc, argv, "none", 0) != 0)) {
                perror("stook_cache_create");
                return 1;
        }
        set.fill();
        for (size_t step = 1; step <= steps; step++) {
                set.shuffle();
                set.empty(objects / 2);
                set.fill(objects / 2);
                if (step == shown) {
                        char name[32];
                        snprintf(name, sizeof(name), "touched_%zu", step);
                        answer.add(name, (double)set.pages(objects / 2));
                        shown *= 10;
                }
        }
        answer.add("packed", (double)((looked_at * size + 4095) / 4096));
        answer.add("live_KiB", (double)(bench::resident_kib() - before));
        set.shuffle();
        set.empty();
        answer.add("left_KiB", (double)(bench::resident_kib() - before));
        add_slabs(answer);
        return 0;
}
