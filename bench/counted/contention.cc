/*
 * bench/counted/contention.cc - what threads that free in random order do to each other
 *
 * Purpose: contention counted, not timed. Each thread allocates a set of objects of one cache that
 * all share and frees it in random order, again and again. So sheaves come out of order from many
 * slabs, barns overflow, slabs become full, partial and empty, and spans come and go. Where an
 * operation of one thread meets another's, a compare-and-swap is done again or a lock is found
 * taken. These are counted, for each 1,000 objects.
 * How: the program is linked with the sources of barn, slab and pages compiled once more. Barn and
 * the tagged stacks count lost compare-and-swaps (count_retries.h), slab and pages their locks
 * (count_locks.h). A cache's counter cmpxchg_double_fail has those of the slabs' words.
 * Answer, for 1,000 objects allocated and freed: barn_calls, barn_retries; list_asked, list_busy,
 * list_refused: of the lock of the slab lists; bins_asked ...: of the page bins' lock;
 * word_retries: of a slab's words.
 * Options: threads=2, objects=2000 of each thread's set, size=64, rounds=20 of each thread, of
 * which the first warm=5 are not counted (sheaves grow, slabs are made), crossing=0 (1: a thread
 * frees what its neighbour allocated), capacity=N of sheaves that do not grow then: each batch goes
 * to the slabs, as with the kernel's 32.
 */
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <stook/cache.h>
#include <stook/stats.h>

#include "../harness/harness.h"

extern "C" {
uint64_t stook_bench_retries;           /* of barn; see meson.build */
struct stook_bench_locks { uint64_t asked, busy, refused; };
struct stook_bench_locks stook_bench_lists, stook_bench_bins;
}

static struct stook_cache *cache;
static std::atomic<size_t> arrived;

struct set {
        std::vector<void *> objects;
        std::vector<uint32_t> order;
};

/* All threads are here before one goes on. Yields: there may be more threads than CPUs. */
static void meet(size_t threads, size_t meeting)
{
        arrived++;
        while (arrived.load() < threads * meeting)
                sched_yield();
}

static stook_cache_stats stats()
{
        struct stook_cache_stats s = {};
        s.stats_size = sizeof(s);
        stook_cache_get_stats(cache, &s);
        return s;
}

/* What was counted while the threads warmed up. */
static stook_cache_stats before;

static void begin_to_count()
{
        before = stats();
        stook_bench_lists = stook_bench_bins = {};
        stook_bench_retries = 0;
}

static void run(size_t self, std::vector<set> &sets, size_t rounds, size_t warm, bool crossing)
{
        bench::rng r(self + 1);
        size_t threads = sets.size(), meeting = 0;
        set &mine = sets[self], &freed = sets[crossing ? (self + 1) % threads : self];

        bench::pin_to((int)(self % std::thread::hardware_concurrency()));
        meet(threads, ++meeting);
        for (size_t round = 0; round < rounds; round++) {
                if (round == warm) {
                        meet(threads, ++meeting);
                        if (!self)
                                begin_to_count();
                        meet(threads, ++meeting);
                }
                for (void *&o : mine.objects)
                        if (!(o = stook_cache_alloc(cache)))
                                exit(1);
                for (uint32_t i = (uint32_t)mine.order.size(); i > 1; i--)
                        std::swap(mine.order[i - 1], mine.order[r.below(i)]);
                if (crossing)
                        meet(threads, ++meeting);
                for (uint32_t i : freed.order)
                        stook_cache_free(cache, freed.objects[i]);
                if (crossing)
                        meet(threads, ++meeting);
        }
}

static void add_lock(bench::answer &answer, const char *name, const stook_bench_locks &lock,
                     double per)
{
        const struct { const char *what; uint64_t count; } all[] = {
                { "asked", lock.asked }, { "busy", lock.busy }, { "refused", lock.refused },
        };
        for (auto &one : all)
                answer.add((std::string(name) + "_" + one.what).c_str(), (double)one.count * per);
}

int main(int argc, char **argv)
{
        const char *capacity = bench::text_option(argc, argv, "capacity", nullptr);
        if (capacity && !getenv("STOOK_CAPACITY")) {    /* read at start: it starts again */
                setenv("STOOK_CAPACITY", capacity, 1);
                execv("/proc/self/exe", argv);
        }
        size_t threads = (size_t)bench::option(argc, argv, "threads", 2);
        size_t objects = (size_t)bench::option(argc, argv, "objects", 2000);
        size_t rounds = (size_t)bench::option(argc, argv, "rounds", 20);
        size_t warm = (size_t)bench::option(argc, argv, "warm", 5);
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        bool crossing = bench::option(argc, argv, "crossing", 0) != 0;

        if (!threads || !objects || rounds <= warm) {
                fprintf(stderr, "contention: bad options\n");
                return 2;
        }
        cache = stook_cache_create("contention", size, nullptr);
        if (!cache) {
                perror("stook_cache_create");
                return 2;
        }
        std::vector<set> sets(threads);
        for (set &s : sets) {
                s.objects.resize(objects);
                for (uint32_t i = 0; i < objects; i++)
                        s.order.push_back(i);
        }
        std::vector<std::thread> running;
        for (size_t i = 0; i < threads; i++)
                running.emplace_back(run, i, std::ref(sets), rounds, warm, crossing);
        for (std::thread &t : running)
                t.join();
        struct stook_cache_stats now = stats();
        double per = 1000.0 / (double)(threads * objects * (rounds - warm));
        bench::answer answer;
        answer.add("barn_calls",
                   (double)(now.barn_get + now.barn_put - before.barn_get - before.barn_put) * per);
        answer.add("barn_retries", (double)stook_bench_retries * per);
        answer.add("slab_objects", (double)(now.sheaf_refill + now.sheaf_flush -
                                            before.sheaf_refill - before.sheaf_flush) * per);
        add_lock(answer, "list", stook_bench_lists, per);
        add_lock(answer, "bins", stook_bench_bins, per);
        answer.add("word_retries",
                   (double)(now.cmpxchg_double_fail - before.cmpxchg_double_fail) * per);
        return stook_cache_destroy(cache) == 0 ? 0 : 1;
}
