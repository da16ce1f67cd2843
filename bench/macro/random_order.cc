/*
 * bench/macro/random_order.cc - a large live set, freed in an order of its own
 *
 * Purpose: what objects cost that come back in another order than they went. n objects of one size
 * are allocated, freed in a given order, and allocated again, several times. An allocator that
 * writes into free objects, or follows links through them, waits for memory here.
 * How: pointers are brought into the order of the frees between the measurements, so that reading
 * them is sequential. Arrays of pointers are mapped and touched before the start: they are not in
 * the answer. Times are of the thread's processor clock. Objects are not written, unless touch=N is
 * given: then the first N bytes of each are, and the allocation waits for the memory of each
 * object, in every allocator alike.
 * Answer: alloc_ns and first_free_ns, the first time, in memory that nothing used before; free_ns
 * and again_ns, an object freed and one allocated after these frees, medians of further rounds
 * (without rounds the objects are freed once, and there is no again_ns);
 * left_MiB, what is resident beyond the start after the last frees; idle_MiB, the same after wait=
 * ms with calls now and then.
 * Built twice: with malloc, and (CONTENDER_CACHE) with one object cache of Stook's.
 * Options: size=BYTES, objects=N, order=random|lifo|fifo, by=self|other (another thread frees),
 * kept=N (at the end so many objects, chosen at random, stay), rounds=N, touch=BYTES, wait=MS.
 */
#include <algorithm>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <utility>
#include <vector>

#include "../harness/harness.h"
#include "../harness/malloc_or_cache.h"

/* An array that is not the allocator's, and resident from the start. */
template <typename T> static T *mapped(size_t count)
{
        void *at = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (at == MAP_FAILED) {
                perror("mmap");
                exit(1);
        }
        return (T *)at;
}

class live_set {
public:
        live_set(size_t bytes, size_t objects, const std::string &order, size_t written)
                : size(bytes), count(objects), touch(written), object(mapped<void *>(objects)),
                  ordered(mapped<void *>(objects)), place(mapped<uint32_t>(objects))
        {
                for (size_t i = 0; i < count; i++)
                        place[i] = (uint32_t)(order == "lifo" ? count - 1 - i : i);
                bench::rng r(5);
                if (order == "random")
                        for (size_t i = count - 1; i > 0; i--)
                                std::swap(place[i], place[r.below((uint32_t)(i + 1))]);
        }
        /* Processor time of an allocation. */
        double fill()
        {
                double start = bench::thread_ns();
                for (size_t i = 0; i < count; i++) {
                        object[i] = bench::take(size);
                        if (touch && object[i])
                                memset(object[i], 1, touch);
                }
                double ns = bench::thread_ns() - start;
                if (std::find(object, object + count, nullptr) != object + count)
                        exit(1);
                for (size_t i = 0; i < count; i++)
                        ordered[i] = object[place[i]];
                return ns / (double)count;
        }
        /* Processor time of a free; `kept` objects stay. */
        double empty(bool by_other, size_t kept = 0)
        {
                double ns = 0;
                auto work = [&] {
                        double start = bench::thread_ns();
                        for (size_t i = 0; i < count - kept; i++)
                                bench::give(ordered[i]);
                        ns = bench::thread_ns() - start;
                };
                if (kept) {
                        /* Which stay is chosen at random whatever the order of the frees is. */
                        bench::rng r(7);
                        for (size_t i = 0; i < kept; i++) {
                                size_t last = count - 1 - i;
                                std::swap(ordered[r.below((uint32_t)last + 1)], ordered[last]);
                        }
                }
                if (by_other)
                        std::thread(work).join();
                else
                        work();
                return ns / (double)(count - kept);
        }

private:
        size_t size, count, touch;
        void **object, **ordered;
        uint32_t *place;
};

static double median(std::vector<double> &values)
{
        std::sort(values.begin(), values.end());
        return values[values.size() / 2];
}

/* Calls now and then: an allocator without a thread of its own gives memory back in calls. */
static void idle(long ms)
{
        for (long i = 0; i < ms / 50; i++) {
                std::vector<void *> objects(1000);
                usleep(50000);
                for (void *&o : objects)
                        o = malloc(100);
                for (void *o : objects)
                        free(o);
        }
}

/* For libstook-malloc-resident.so: what is resident now, and why. */
static void table_of_pages()
{
        auto dump = (int (*)(const char *))dlsym(RTLD_DEFAULT, "stook_resident_dump");
        const char *file = getenv("STOOK_RESIDENT_AFTER");

        if (dump && file && dump(file) != 0)
                fprintf(stderr, "random_order: no table of resident pages\n");
}

int main(int argc, char **argv)
{
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        size_t objects = (size_t)bench::option(argc, argv, "objects", 100000);
        size_t kept = (size_t)bench::option(argc, argv, "kept", 0);
        long rounds = bench::option(argc, argv, "rounds", 5);
        long wait = bench::option(argc, argv, "wait", 0);
        size_t touch = (size_t)bench::option(argc, argv, "touch", 0);
        bool other = !strcmp(bench::text_option(argc, argv, "by", "self"), "other");
        std::string order = bench::text_option(argc, argv, "order", "random");

        if (!size || touch > size || !objects || kept >= objects || objects > UINT32_MAX ||
            rounds < 0 || (order != "random" && order != "lifo" && order != "fifo")) {
                fprintf(stderr, "random_order: bad options\n");
                return 2;
        }
        bench::pin_to(0);
        bench::answer answer;
        live_set set(size, objects, order, touch);
        std::vector<double> frees, agains;
        frees.reserve((size_t)rounds);
        agains.reserve((size_t)rounds);
        long before = bench::resident_kib();
        if (!bench::prepare(size)) {
                perror("stook_cache_create");
                return 1;
        }

        answer.add("alloc_ns", set.fill());
        if (rounds) {
                answer.add("first_free_ns", set.empty(other));
                set.fill();
        } else {
                answer.add("free_ns", set.empty(other, kept));
        }
        for (long i = 0; i < rounds; i++) {
                frees.push_back(set.empty(other));
                agains.push_back(set.fill());
        }
        if (rounds) {
                answer.add("free_ns", median(frees)).add("again_ns", median(agains));
                set.empty(other, kept);
        }
        answer.add("left_MiB", (double)(bench::resident_kib() - before) / 1024);
        table_of_pages();
        if (wait) {
                idle(wait);
                answer.add("idle_MiB", (double)(bench::resident_kib() - before) / 1024);
        }
        return 0;
}
