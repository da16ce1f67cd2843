/*
 * bench/threads/one_side.cc - threads that only allocate, and threads that only free
 *
 * Purpose: what calls that wait for nobody cost beside those that may wait, where every object is
 * freed on another CPU than the one that allocates. No free refills the slot of a thread that only
 * allocates: it lives on refills. An allocator that refuses those to callers which may not block
 * sends them to the slabs for each object.
 * Place: run by bench/run.py as `one_side`, on one node and on two that are made up: allocating
 * threads run on CPU 0, the others on CPU 1.
 * Answer: alloc_ns and free_ns, processor time of an object allocated and of one freed, and
 * objects_per_cpu_us of the slower side. Of 1,000 allocations, as the cache counts: refilled,
 * objects that refills brought into sheaves; from_barn, those of full sheaves of the barn;
 * one_by_one, those taken from the slabs without a sheaf. Where refills are refused, that is all.
 * Options: what=cache|malloc, alloc=blocking|nowait|nolock, free=blocking|nolock, size=BYTES,
 * threads=N of each side, ms=DURATION.
 */
#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <thread>
#include <vector>

#include <stook/stook.h>

#include "../harness/harness.h"

static constexpr size_t ring_objects = 1 << 14, burst = 64;

/* Indices are published once for `burst` objects: the ring itself costs little. */
struct pair_of_threads {
        void *ring[ring_objects];
        alignas(128) std::atomic<size_t> written;
        alignas(128) std::atomic<size_t> freed;
        std::atomic<bool> done;         /* nothing will be written any more */
        double alloc_ns, free_ns;
};

static std::atomic<bool> stop;
static struct stook_cache *cache;
static size_t size;

template <typename Alloc> static void allocate(pair_of_threads *p, Alloc alloc)
{
        bench::pin_to(0);
        size_t at = 0;
        while (!stop.load(std::memory_order_relaxed)) {
                if (at + burst - p->freed.load(std::memory_order_acquire) > ring_objects) {
                        usleep(20);
                        continue;
                }
                for (size_t i = 0; i < burst; i++, at++) {
                        void *object = alloc();
                        if (!object)
                                abort();
                        *(volatile char *)object = 1;
                        p->ring[at % ring_objects] = object;
                }
                p->written.store(at, std::memory_order_release);
        }
        p->alloc_ns = bench::thread_ns();
        p->done.store(true, std::memory_order_release);
}

template <typename Free> static void free_all(pair_of_threads *p, Free free)
{
        bench::pin_to(1);
        size_t at = 0;
        for (;;) {
                bool last = p->done.load(std::memory_order_acquire);
                size_t end = p->written.load(std::memory_order_acquire);
                if (end == at) {
                        if (last)
                                break;
                        usleep(20);
                        continue;
                }
                for (; at < end; at++) {
                        free(p->ring[at % ring_objects]);
                        if (at % burst == burst - 1)
                                p->freed.store(at + 1, std::memory_order_release);
                }
        }
        p->free_ns = bench::thread_ns();
}

/* Each way has a loop of its own, with one call of the library in it. */
static void run_alloc(pair_of_threads *p, bool of_malloc, const char *how)
{
        bool nolock = !strcmp(how, "nolock");

        if (nolock && of_malloc)
                allocate(p, [] { return stook_malloc_nolock(size); });
        else if (nolock)
                allocate(p, [] { return stook_cache_alloc_nolock(cache); });
        else if (of_malloc)
                allocate(p, [] { return stook_malloc(size); });
        else if (!strcmp(how, "nowait"))
                allocate(p, [] { return stook_cache_alloc_flags(cache, STOOK_ALLOC_NOWAIT); });
        else
                allocate(p, [] { return stook_cache_alloc(cache); });
}

static void run_free(pair_of_threads *p, bool of_malloc, const char *how)
{
        bool nolock = !strcmp(how, "nolock");

        if (nolock && of_malloc)
                free_all(p, [](void *object) { stook_free_nolock(object); });
        else if (nolock)
                free_all(p, [](void *object) { stook_cache_free_nolock(cache, object); });
        else if (of_malloc)
                free_all(p, [](void *object) { stook_free(object); });
        else
                free_all(p, [](void *object) { stook_cache_free(cache, object); });
}

static bool is_one_of(const char *word, std::initializer_list<const char *> words)
{
        return std::any_of(words.begin(), words.end(),
                           [word](const char *w) { return !strcmp(word, w); });
}

int main(int argc, char **argv)
{
        const char *what = bench::text_option(argc, argv, "what", "cache");
        const char *alloc = bench::text_option(argc, argv, "alloc", "nolock");
        const char *free = bench::text_option(argc, argv, "free", "nolock");
        long ms = bench::option(argc, argv, "ms", 1000);
        long threads = bench::option(argc, argv, "threads", 1);
        bool of_malloc = !strcmp(what, "malloc");

        size = (size_t)bench::option(argc, argv, "size", 64);
        if (!is_one_of(what, { "cache", "malloc" }) || !is_one_of(free, { "blocking", "nolock" }) ||
            !is_one_of(alloc, { "blocking", "nowait", "nolock" }) || !size || threads < 1 ||
            (of_malloc && !strcmp(alloc, "nowait"))) {
                fprintf(stderr, "one_side: bad options\n");
                return 2;
        }
        bench::answer answer;
        cache = of_malloc ? stook_object_cache(stook_malloc(size))
                          : stook_cache_create("one_side", size, nullptr);
        if (!cache)
                abort();
        std::vector<pair_of_threads> pairs((size_t)threads);
        std::vector<std::thread> running;
        struct stook_cache_stats before = {}, after = {};
        before.stats_size = after.stats_size = sizeof(before);
        for (pair_of_threads &p : pairs) {
                running.emplace_back(run_free, &p, of_malloc, free);
                running.emplace_back(run_alloc, &p, of_malloc, alloc);
        }
        /* On a busy machine the time might be over before all have begun. */
        for (pair_of_threads &p : pairs)
                while (!p.freed.load(std::memory_order_acquire))
                        usleep(50);
        stook_cache_get_stats(cache, &before);
        usleep((useconds_t)ms * 1000);
        stook_cache_get_stats(cache, &after);   /* sheaves shrink with the last thread's end */
        stop.store(true, std::memory_order_release);
        for (std::thread &t : running)
                t.join();

        double alloc_ns = 0, free_ns = 0, objects = 0;
        for (pair_of_threads &p : pairs) {
                alloc_ns += p.alloc_ns;
                free_ns += p.free_ns;
                objects += (double)p.written.load();
        }
        double taken = (double)(after.alloc_fastpath + after.alloc_slowpath -
                                before.alloc_fastpath - before.alloc_slowpath) / 1000;
        answer.add("alloc_ns", alloc_ns / objects).add("free_ns", free_ns / objects);
        answer.add("objects_per_cpu_us", objects * 1e3 / std::max(alloc_ns, free_ns));
        answer.add("refilled", (double)(after.sheaf_refill - before.sheaf_refill) / taken);
        answer.add("from_barn", (double)(after.barn_get - before.barn_get) *
                                (double)after.sheaf_capacity / taken);
        answer.add("one_by_one", (double)(after.alloc_slowpath - before.alloc_slowpath) / taken);
        return 0;
}
