/*
 * bench/none/table12.cc - the kernel's microbenchmark of bulk refills, one side in a process
 *
 * Purpose: table 1.2. 256 MiB of objects are taken in batches and given back; after three rounds
 * that only warm up, the allocations of the next rounds are timed, and nothing else.
 * How: side=after is stook_cache_alloc_bulk() of a cache as it comes; side=before builds each new
 * slab's whole free list and walks it (bench/none), on slabs of the same size. Between rounds
 * everything goes back to the slabs, and the slabs to the pages; the pages stay with the process
 * (STOOK_DECAY_MS), so that neither side pays for page faults. An object is touched only by the
 * side that has to link it.
 * Answer: {"SIZE plain", "SIZE random"}: ns an object, mean of the timed rounds.
 * Options: side=before|after, mb=256, rounds=3, only=0 (a size).
 */
#include <vector>

#include <stook/cache.h>

#include "../harness/harness.h"
#include "none.h"

static constexpr int warm_rounds = 3;

struct after {
        struct stook_cache *cache;
        after(size_t size, bool random)
        {
                struct stook_cache_args args = {};
                args.args_size = sizeof(args);
                args.flags = random ? STOOK_CACHE_RANDOM_ORDER : 0;
                cache = stook_cache_create("table12", size, &args);
        }
        bool ready() const { return cache; }
        bool take(size_t n, void **object)
        {
                return stook_cache_alloc_bulk(cache, 0, n, object) == 0;
        }
        void give(size_t n, void **object)
        {
                stook_cache_free_bulk(cache, n, object);
                stook_cache_shrink(cache);
        }
        bool end() { return stook_cache_destroy(cache) == 0; }
};

struct before {
        struct none_cache *cache;
        before(size_t size, bool random) : cache(none_create(size, 0, random)) {}
        bool ready() const { return cache; }
        bool take(size_t n, void **object) { return none_bulk_alloc(cache, n, object); }
        void give(size_t n, void **object) { none_bulk_free(cache, n, object); }
        bool end() { return none_destroy(cache); }
};

/* ns an object; below 0: it failed. */
template <typename Side>
static double cell(size_t size, size_t batch, bool random, size_t bytes, int rounds)
{
        Side side(size, random);
        size_t n = bytes / size / batch * batch;
        std::vector<void *> object(n);
        uint64_t ns = 0;

        if (!side.ready())
                return -1;
        for (int round = 0; round < warm_rounds + rounds; round++) {
                uint64_t start = bench::now_ns();
                for (size_t i = 0; i < n; i += batch)
                        if (!side.take(batch, &object[i]))
                                return -1;
                if (round >= warm_rounds)
                        ns += bench::now_ns() - start;
                side.give(n, object.data());
        }
        return side.end() ? (double)ns / (double)n / rounds : -1;
}

template <typename Side> static int measure(size_t bytes, int rounds, size_t only)
{
        static const struct { size_t size, batch; } rows[] = {
                { 16, 256 }, { 32, 128 }, { 64, 64 }, { 128, 32 }, { 256, 32 }, { 512, 32 },
        };
        bench::answer answer;

        for (auto &row : rows)
                for (int random = 0; random < 2; random++) {
                        if (only && only != row.size)
                                continue;
                        char name[32];
                        snprintf(name, sizeof(name), "%zu %s", row.size,
                                 random ? "random" : "plain");
                        double ns = cell<Side>(row.size, row.batch, random, bytes, rounds);
                        if (ns < 0) {
                                fprintf(stderr, "%s: no memory, or objects were lost\n", name);
                                return 1;
                        }
                        answer.add(name, ns);
                }
        return 0;
}

int main(int argc, char **argv)
{
        /* Read at start, so this program starts again with it. */
        if (!getenv("STOOK_DECAY_MS")) {
                setenv("STOOK_DECAY_MS", "3600000", 1);
                execv("/proc/self/exe", argv);
        }
        bench::pin_to(0);
        const char *side = bench::text_option(argc, argv, "side", "after");
        size_t bytes = (size_t)bench::option(argc, argv, "mb", 256) << 20;
        int rounds = (int)bench::option(argc, argv, "rounds", 3);
        size_t only = (size_t)bench::option(argc, argv, "only", 0);

        if (!strcmp(side, "after"))
                return measure<after>(bytes, rounds, only);
        if (!strcmp(side, "before"))
                return measure<before>(bytes, rounds, only);
        fprintf(stderr, "side=before or after\n");
        return 2;
}
