/*
 * bench/macro/heap_size.cc - a heap of any size, in which objects are replaced at random
 *
 * Purpose: how the cost of an operation grows with the heap. So many MiB of objects are alive; one
 * chosen at random is freed, another takes its place.
 * Answer: ns, processor time of a replacement; peak_KiB, resident beyond the table of pointers.
 * Options: mib=N (64), size=BYTES (64), operations=N (500000).
 */
#include <sys/mman.h>

#include "../harness/harness.h"

static char *made(size_t size)
{
        char *object = (char *)malloc(size);
        if (!object)
                abort();
        object[0] = 1;
        return object;
}

int main(int argc, char **argv)
{
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        size_t count = ((size_t)bench::option(argc, argv, "mib", 64) << 20) / size;
        long operations = bench::option(argc, argv, "operations", 500000);
        bench::pin_to(0);
        bench::answer answer;
        /* Mapped, and resident from the start: what is counted is the allocator's. */
        void *at = mmap(nullptr, count * sizeof(char *), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (at == MAP_FAILED || count == 0 || count >> 32)
                return 2;
        char **table = (char **)at;
        long before = bench::resident_kib();
        for (size_t i = 0; i < count; i++)
                table[i] = made(size);
        bench::rng random(1);
        uint64_t start = bench::processor_ns();
        for (long n = 0; n < operations; n++) {
                char *&object = table[random.below((uint32_t)count)];
                free(object);
                object = made(size);
        }
        answer.add("ns", (double)(bench::processor_ns() - start) / (double)operations);
        answer.add("peak_KiB", (double)(bench::resident_kib() - before));
        return 0;
}
