/*
 * bench/threads/oversubscribed.cc - more threads than processors
 *
 * Purpose: 1 to 2,000 threads that all allocate. Each replaces random ones of its 64 objects, until
 * all threads together have made the asked number of replacements, however many threads there are.
 * So the work and the time of one operation are the same where threads cost nothing. Every thread
 * yields now and then, as threads do that wait for input. Objects live to the end, so memory grows
 * with threads by what they hold (about 7 KiB each) and by what the allocator keeps for them.
 * Answer: ns, processor time for a replacement; wall_ns; peak_KiB, anonymous memory when all are
 * done and hold their objects, beyond that before the first; left_KiB, beyond that without threads,
 * after all ended (some of it is stacks that the C library keeps).
 * Options: threads=N (64), operations=N (400000).
 */
#include <pthread.h>

#include "../harness/harness.h"

static constexpr unsigned objects_each = 64;
static constexpr unsigned between_yields = 256;         /* arbitrary */

static pthread_barrier_t barrier;
static long operations_each;

static void replace(char *&object, bench::rng &random)
{
        size_t size = bench::mixed_size(random);
        free(object);
        object = (char *)malloc(size);
        if (!object)
                abort();
        object[0] = object[size - 1] = 1;
}

static void *work(void *seed)
{
        bench::rng random((uintptr_t)seed + 1);
        char *object[objects_each] = {};
        pthread_barrier_wait(&barrier);
        for (long n = 0; n < operations_each; n++) {
                replace(object[random.below(objects_each)], random);
                if (n % between_yields == 0)
                        sched_yield();
        }
        pthread_barrier_wait(&barrier);         /* all are done: memory is looked at */
        pthread_barrier_wait(&barrier);
        for (char *o : object)
                free(o);
        return nullptr;
}

static long anonymous_kib()
{
        return bench::proc_number("/proc/self/smaps_rollup", "\nAnonymous:");
}

/* Small stacks: 2,000 of the usual ones are 16 GiB of addresses. */
static pthread_t start(unsigned number)
{
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 64 << 10);
        if (pthread_create(&thread, &attributes, work, (void *)(uintptr_t)number) != 0) {
                fprintf(stderr, "oversubscribed: thread %u cannot be made\n", number);
                exit(1);
        }
        pthread_attr_destroy(&attributes);
        return thread;
}

int main(int argc, char **argv)
{
        long threads = bench::option(argc, argv, "threads", 64);
        long operations = bench::option(argc, argv, "operations", 400000);
        if (threads < 1 || operations < threads)
                return 2;
        operations_each = operations / threads;
        bench::answer answer;
        /* Not a vector: its memory would be the allocator's. */
        static pthread_t thread[4096];
        if ((size_t)threads > sizeof(thread) / sizeof(*thread))
                return 2;
        long at_start = anonymous_kib();
        pthread_barrier_init(&barrier, nullptr, (unsigned)threads + 1);
        for (long i = 0; i < threads; i++)
                thread[i] = start((unsigned)i);
        long before = anonymous_kib();
        uint64_t processor = bench::processor_ns(), wall = bench::now_ns();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        double made = (double)(operations_each * threads);
        answer.add("ns", (double)(bench::processor_ns() - processor) / made);
        answer.add("wall_ns", (double)(bench::now_ns() - wall) / made);
        answer.add("peak_KiB", (double)(anonymous_kib() - before));
        pthread_barrier_wait(&barrier);
        for (long i = 0; i < threads; i++)
                pthread_join(thread[i], nullptr);
        answer.add("left_KiB", (double)(anonymous_kib() - at_start));
        return 0;
}
