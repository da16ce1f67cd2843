/*
 * bench/none/table11.cc - the kernel's microbenchmark of sheaves, one front end in a process
 *
 * Purpose: table 1.1. A million objects of 64 bytes are allocated and freed in batches. An
 * iteration allocates B objects and frees them in the order of allocation, or in one random order
 * that it draws anew. There are eleven iterations, and the first is left out. Times are time-stamp
 * cycles from the start to the end of an iteration.
 * How: front= names the front end:
 *   sheaves              a cache as it comes, or by STOOK_CAPACITY, called out of line
 *   none-cas, none-rseq  bench/none
 *   malloc               the C library's
 *   no-sheaves           a cache with STOOK_CACHE_NO_SHEAVES: what does the unused sheaf code cost
 *   it? slabs-alone          bench/none/slabs_alone.h: the same slabs without that code
 * The first three have forms with -charged behind the name, for the accounted columns of the table.
 * There objects are charged to a group of the library's, or by bench/none/none_charge.c. A process
 * measures all cells one after the other, and run.py interleaves the front ends.
 * Answer: {"B", "B shuffled"}: the median of the ten iterations, in cycles for a million pairs.
 * (The kernel's table has the mean, which one preemption decides.) "instruction": cycles of one
 * double-word compare-and-swap (unlocked; 0 where there is none). Two of these in a pair cost that
 * before anything else.
 * Exit status: 1: the front end cannot be made here, or objects were lost; 2: there is none of this
 * name; 3: the library has no groups to charge.
 * Options: front=NAME, pairs=1000000 (fewer where they are slow; the answer is scaled up), slab=0
 * (bytes of a slab of "none"; 0: as the library's), only=CELL.
 */
#include <algorithm>
#include <vector>

#include <stook/cache.h>
#if __has_include(<stook/group.h>)
#include <stook/group.h>
#endif

#include "../harness/harness.h"
#include "../harness/tsc.h"
#include "none.h"
#include "slabs_alone.h"

static constexpr size_t object_bytes = 64, iterations = 11;
/* Exit status; bench/measure/kernel_tables.py knows them. */
enum { FAILED = 1, UNKNOWN, NO_GROUPS };

static struct stook_cache *new_cache(uint64_t flags)
{
        struct stook_cache_args args = {};
        args.args_size = sizeof(args);
        args.flags = flags;
        return stook_cache_create("table11", object_bytes, &args);
}

struct sheaves {
        struct stook_cache *cache;
        explicit sheaves(long, uint64_t flags = 0) : cache(new_cache(flags)) {}
        bool ready() const { return cache; }
        void *take() { return stook_cache_alloc(cache); }
        void give(void *object) { stook_cache_free(cache, object); }
        bool end() { return stook_cache_destroy(cache) == 0; }
};

/* The answers' difference is what the sheaf code costs where no sheaves are. */
struct no_sheaves : sheaves {
        explicit no_sheaves(long) : sheaves(0, STOOK_CACHE_NO_SHEAVES) {}
};

struct slabs_alone : no_sheaves {
        explicit slabs_alone(long) : no_sheaves(0) {}
        void *take() { return slabs_alone_alloc(cache); }
        void give(void *object) { slabs_alone_free(cache, object); }
};

#if defined(STOOK_GROUP_H)
/* Charged to a group that the thread is in. */
struct sheaves_charged : sheaves {
        struct stook_group *group;
        explicit sheaves_charged(long)
            : sheaves(0, STOOK_CACHE_ACCOUNT),
                    group(stook_group_create("table11", nullptr, 1 << 30))
        {
                stook_group_enter(group);
        }
        bool ready() const { return cache && group; }
        bool end()
        {
                stook_group_enter(nullptr);
                uint64_t left = stook_group_usage(group);
                stook_group_destroy(group);
                return !left && sheaves::end();
        }
};
#endif

template <void *alloc(struct none_cache *), void free_one(struct none_cache *, void *),
          size_t bytes = object_bytes>
struct none {
        struct none_cache *cache;
        explicit none(long slab_bytes) : cache(none_create(bytes, (size_t)slab_bytes, false)) {}
        bool ready() const { return cache; }
        void *take() { return alloc(cache); }
        void give(void *object) { free_one(cache, object); }
        bool end() { return none_destroy(cache); }
};

struct libc {
        explicit libc(long) {}
        bool ready() const { return true; }
        void *take() { return malloc(object_bytes); }
        void give(void *object) { free(object); }
        bool end() { return true; }
};

static void shuffle(std::vector<uint32_t> &order, bench::rng &r)
{
        for (uint32_t i = (uint32_t)order.size(); i > 1; i--)
                std::swap(order[i - 1], order[r.below(i)]);
}

/* Cycles of an iteration, the median. The order is drawn outside the clock. */
template <typename Front>
static double cell(Front &front, size_t batch, bool shuffled, size_t pairs)
{
        std::vector<void *> object(batch);
        std::vector<uint32_t> order(batch);
        bench::rng r(batch);
        std::vector<double> cycles;

        for (uint32_t i = 0; i < batch; i++)
                order[i] = i;
        for (size_t i = 0; i < iterations; i++) {
                if (shuffled)
                        shuffle(order, r);
                uint64_t start = bench::tsc();
                for (size_t done = 0; done < pairs; done += batch) {
                        for (size_t k = 0; k < batch; k++)
                                object[k] = front.take();
                        for (size_t k = 0; k < batch; k++)
                                front.give(object[order[k]]);
                }
                if (i)
                        cycles.push_back((double)(bench::tsc() - start));
        }
        std::sort(cycles.begin(), cycles.end());
        return (cycles[cycles.size() / 2 - 1] + cycles[cycles.size() / 2]) / 2;
}

/* One after the other, as in a pair. */
static double instruction()
{
#if defined(__x86_64__)
        static constexpr int n = 1000000;
        alignas(16) static uint64_t word[2];
        uint64_t low = 0, high = 0, start = bench::tsc();

        for (int i = 0; i < n; i++)
                __asm__ volatile("cmpxchg16b %0"
                                 : "+m"(word), "+a"(low), "+d"(high)
                                 : "b"(low + 1), "c"(high)
                                 : "cc");
        return (double)(bench::tsc() - start) / n;
#else
        return 0;
#endif
}

template <typename Front> static int measure(long slab_bytes, size_t pairs, const char *only)
{
        Front front(slab_bytes);
        if (!front.ready()) {
                fprintf(stderr, "the front end cannot be made here\n");
                return FAILED;
        }
        bench::answer answer;
        static const struct {
                const char *name;
                size_t batch;
                bool shuffled;
        } cells[] = {
                { "1", 1, false },
                { "10", 10, false },
                { "100", 100, false },
                { "1000", 1000, false },
                { "10 shuffled", 10, true },
                { "100 shuffled", 100, true },
                { "1000 shuffled", 1000, true },
        };
        for (auto &c : cells)
                if (!*only || !strcmp(only, c.name))
                        answer.add(c.name,
                                   cell(front, c.batch, c.shuffled, pairs) * 1e6 / (double)pairs);
        answer.add("instruction", instruction());
        if (!front.end()) {
                fprintf(stderr, "objects were lost\n");
                return FAILED;
        }
        return 0;
}

int main(int argc, char **argv)
{
        bench::pin_to(0);
        const char *front = bench::text_option(argc, argv, "front", "sheaves");
        long slab_bytes = bench::option(argc, argv, "slab", 0);
        size_t pairs = (size_t)bench::option(argc, argv, "pairs", 1000000);

        const char *only = bench::text_option(argc, argv, "only", "");

        if (!strcmp(front, "sheaves"))
                return measure<sheaves>(slab_bytes, pairs, only);
        if (!strcmp(front, "no-sheaves"))
                return measure<no_sheaves>(slab_bytes, pairs, only);
        if (!strcmp(front, "slabs-alone"))
                return measure<slabs_alone>(slab_bytes, pairs, only);
        if (!strcmp(front, "none-cas"))
                return measure<none<none_cas_alloc, none_cas_free>>(slab_bytes, pairs, only);
        if (!strcmp(front, "none-rseq"))
                return measure<none<none_rseq_alloc, none_rseq_free>>(slab_bytes, pairs, only);
        if (!strcmp(front, "malloc"))
                return measure<libc>(slab_bytes, pairs, only);
        static constexpr size_t charged_bytes = object_bytes + sizeof(void *);
        if (!strcmp(front, "none-cas-charged"))
                return measure<none<none_cas_alloc_charged, none_cas_free_charged, charged_bytes>>(
                        slab_bytes, pairs, only);
        if (!strcmp(front, "none-rseq-charged"))
                return measure<
                        none<none_rseq_alloc_charged, none_rseq_free_charged, charged_bytes>>(
                        slab_bytes, pairs, only);
        if (!strcmp(front, "sheaves-charged"))
#if defined(STOOK_GROUP_H)
                return measure<sheaves_charged>(slab_bytes, pairs, only);
#else
                return NO_GROUPS;
#endif
        fprintf(stderr, "front=sheaves, none-cas, none-rseq (-charged: accounted), malloc, "
                        "no-sheaves or slabs-alone\n");
        return UNKNOWN;
}
