/*
 * bench/macro/large.cc - objects of many pages
 *
 * Purpose: one program for the two figures about a single object of 1 GiB.
 *   large realloc   grows an object in steps of 4 KiB to mib=1024, writing each new page.
 *                   Answer: seconds, peak_KiB, resident_KiB after free
 *   large calloc    a fresh zeroed object of mib=1024, read once at both ends. Answer: seconds,
 *                   resident_KiB beyond the start, nonzero: bytes that are not zero at 1,024 places
 *                   read after the measurement
 */
#include "../harness/harness.h"

static int grow(size_t total)
{
        static constexpr size_t step = 4096;
        bench::answer answer;
        uint64_t start = bench::now_ns();
        char *object = nullptr;
        for (size_t size = step; size <= total; size += step) {
                object = (char *)realloc(object, size);
                if (!object)
                        return 1;
                object[size - step] = 1;
        }
        double seconds = (double)(bench::now_ns() - start) / 1e9;
        long lost = 0;
        for (size_t at = 0; at < total; at += step)
                lost += object[at] != 1;
        long peak = bench::peak_kib();
        free(object);
        answer.add("seconds", seconds).add("peak_KiB", (double)peak).add("lost", (double)lost);
        answer.add("resident_KiB", (double)bench::resident_kib());
        return lost != 0;
}

static int zeroed(size_t total)
{
        bench::answer answer;
        long before = bench::resident_kib();
        uint64_t start = bench::now_ns();
        volatile char *object = (volatile char *)calloc(total / 1024, 1024);
        if (!object)
                return 1;
        long nonzero = object[0] + object[total - 1];
        double seconds = (double)(bench::now_ns() - start) / 1e9;
        answer.add("resident_KiB", (double)(bench::resident_kib() - before))
                .add("seconds", seconds);
        for (size_t at = 0; at < total; at += total / 1024)
                nonzero += object[at] != 0;
        answer.add("nonzero", (double)nonzero);
        free((void *)object);
        return nonzero != 0;
}

int main(int argc, char **argv)
{
        size_t total = (size_t)bench::option(argc, argv, "mib", 1024) << 20;
        if (argc > 1 && !strcmp(argv[1], "realloc"))
                return grow(total);
        if (argc > 1 && !strcmp(argv[1], "calloc"))
                return zeroed(total);
        fprintf(stderr, "use: large realloc|calloc [mib=N]\n");
        return 2;
}
