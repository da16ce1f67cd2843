/*
 * bench/macro/phases.cc - work that comes in phases, with pauses between them
 *
 * Purpose: what it costs to give memory back too early, and what is kept if it is given back too
 * late. Each phase allocates objects of one size until `mib` are alive, writes them, and frees
 * all of them, in random order; then comes a pause. An allocator that gives pages back in each
 * pause has the system find and clear them again in each phase.
 * Answer: faults_first, those of the first phase; faults, pages faulted in a phase, for each page
 * of the objects, mean of all phases but the first (1: all of them, each time); us, processor
 * time of a phase for each such page, mean of the same; pause_MiB, resident beyond the start at
 * the end of a pause, mean; left_MiB, after the last free; silent_MiB, after `wait` ms without a
 * call, trickle_MiB after as long with 20 small allocations a second.
 * Options: size=BYTES, mib=N, pause=MS, phases=N, order=random|fifo, wait=MS.
 */
#include <algorithm>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../harness/harness.h"

static double process_us()
{
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double faults()
{
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        return (double)usage.ru_minflt;
}

int main(int argc, char **argv)
{
        size_t size = (size_t)bench::option(argc, argv, "size", 1024);
        size_t mib = (size_t)bench::option(argc, argv, "mib", 100);
        long pause = bench::option(argc, argv, "pause", 10);
        long phases = bench::option(argc, argv, "phases", 20);
        long wait = bench::option(argc, argv, "wait", 2000);
        bool random = strcmp(bench::text_option(argc, argv, "order", "random"), "fifo") != 0;

        if (!size || !mib || phases < 2 || pause < 0 || wait < 0) {
                fprintf(stderr, "phases: bad options\n");
                return 2;
        }
        size_t count = (mib << 20) / size;
        if (!count)
                return 2;
        double pages = (double)(mib << 20) / 4096;
        /* The array of pointers is ours, not the allocator's, and there before. */
        void **object = (void **)mmap(nullptr, count * sizeof(void *), PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (object == MAP_FAILED) {
                perror("mmap");
                return 1;
        }
        bench::pin_to(0);
        bench::answer answer;
        bench::rng r(5);
        void *warm = malloc(100);
        bench::keep(warm);
        free(warm);
        long before = bench::resident_kib();
        auto more_MiB = [before] { return (double)(bench::resident_kib() - before) / 1024; };

        double all_faults = 0, all_us = 0, all_pauses = 0;
        for (long phase = 0; phase < phases; phase++) {
                double faults_before = faults(), us_before = process_us();
                for (size_t i = 0; i < count; i++) {
                        object[i] = malloc(size);
                        if (!object[i])
                                return 1;
                        memset(object[i], 1, size);
                }
                double us = process_us() - us_before;
                if (random)
                        for (size_t i = count - 1; i > 0; i--)
                                std::swap(object[i], object[r.below((uint32_t)(i + 1))]);
                us_before = process_us();
                for (size_t i = 0; i < count; i++)
                        free(object[i]);
                us += process_us() - us_before;
                double now = faults() - faults_before;
                if (!phase) {
                        answer.add("faults_first", now / pages);
                } else {
                        all_faults += now / pages;
                        all_us += us / pages;
                }
                if (phase == phases - 1)
                        break;
                usleep((useconds_t)pause * 1000);
                all_pauses += more_MiB();
        }
        double others = (double)(phases - 1);
        answer.add("faults", all_faults / others).add("us", all_us / others);
        answer.add("pause_MiB", all_pauses / others);
        answer.add("left_MiB", more_MiB());
        usleep((useconds_t)wait * 1000);
        answer.add("silent_MiB", more_MiB());
        for (long i = 0; i < wait / 50; i++) {
                void *some[100];
                usleep(50000);
                for (void *&o : some)
                        o = malloc(100);
                for (void *o : some)
                        free(o);
        }
        answer.add("trickle_MiB", more_MiB());
        return 0;
}
