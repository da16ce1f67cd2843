/*
 * bench/macro/live_set.cc - accesses at random to a large live set, and what is left of it
 *
 * Purpose: what huge pages are worth, and what they cost. Objects of a size, or of half to one and
 * a half of it, are allocated and written until `mib` are alive. Then objects chosen at random are
 * read and written. Then the set is freed at random: to a half, a tenth, nothing. At the tenth,
 * with churn=N, N objects chosen at random are replaced by others.
 * Answer: touch_ns, processor time of an object allocated and written; access_ns, of one access;
 * faults, pages faulted in for each page of the objects; peak_MiB, huge_MiB, resident memory, and
 * memory in huge pages, beyond the start; half_MiB, tenth_MiB, end_MiB, resident after the frees;
 * old_MiB, after `wait` ms with 20 small allocations a second, before the last tenth is freed (they
 * are malloc's, so they do not reach an object cache that is measured); free_ns, processor time of
 * an object freed. With churn=N churn_ns, processor time of an object replaced; region_MiB, of the
 * 2 MiB regions of addresses that have an object; churn_MiB, resident.
 * The array of pointers is mapped, and in huge pages: it is no allocator's.
 * Built twice: with malloc, and (CONTENDER_CACHE) with one object cache of Stook's, whose objects
 * are all of the largest size. With huge=1 it has its memory in runs that ask for huge pages.
 * Options: size=BYTES, mib=N, accesses=N, wait=MS, spread=0|1, huge=0|1, churn=N.
 */
#include <algorithm>
#include <set>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../harness/harness.h"
#include "../harness/malloc_or_cache.h"

static double process_ns() { return (double)bench::processor_ns(); }

static double faults()
{
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        return (double)usage.ru_minflt;
}

static long huge_kib()
{
        return bench::proc_number("/proc/self/smaps_rollup", "\nAnonHugePages:");
}

static char **object;
static size_t alive;

static void free_down_to(size_t count, bench::rng &r)
{
        while (alive > count) {
                size_t at = r.below((uint32_t)alive);
                bench::give(object[at]);
                object[at] = object[--alive];
        }
}

static size_t size_of(size_t size, bool spread, bench::rng &r)
{
        return spread ? size / 2 + r.below((uint32_t)size) : size;
}

static bool replace_one(size_t size, bench::rng &r)
{
        size_t at = r.below((uint32_t)alive);

        bench::give(object[at]);
        object[at] = (char *)bench::take(size);
        if (object[at])
                memset(object[at], 1, size);
        return object[at];
}

static double region_mib()
{
        std::set<uintptr_t> regions;

        for (size_t i = 0; i < alive; i++)
                regions.insert((uintptr_t)object[i] >> 21);
        return (double)regions.size() * 2;
}

static void call_now_and_then(long ms)
{
        for (long i = 0; i < ms / 50; i++) {
                struct timespec pause = {0, 50000000};
                nanosleep(&pause, nullptr);
                void *p = malloc(5000);
                bench::keep(p);
                free(p);
        }
}

int main(int argc, char **argv)
{
        size_t size = (size_t)bench::option(argc, argv, "size", 1024);
        size_t bytes = (size_t)bench::option(argc, argv, "mib", 1024) << 20;
        long accesses = bench::option(argc, argv, "accesses", 5000000);
        long wait = bench::option(argc, argv, "wait", 3000);
        long churn = bench::option(argc, argv, "churn", 0);
        bool spread = bench::option(argc, argv, "spread", 0) != 0;
        size_t most = size ? bytes / size * 2 : 0, table = most * sizeof(char *) + (2u << 20);

        if (!most || accesses < 1 || wait < 0 || churn < 0 ||
            !bench::prepare(spread ? size + size / 2 : size,
                            bench::option(argc, argv, "huge", 0) != 0)) {
                fprintf(stderr, "live_set: bad options\n");
                return 2;
        }
        object = (char **)mmap(nullptr, table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                               -1, 0);
        if (object == MAP_FAILED) {
                perror("mmap");
                return 1;
        }
        madvise(object, table, MADV_HUGEPAGE);
        memset(object, 0, table);
        bench::pin_to(0);
        bench::answer answer;
        bench::rng r(5);
        void *warm = bench::take(size);
        bench::keep(warm);
        bench::give(warm);
        long before = bench::resident_kib(), before_huge = huge_kib();
        auto more_MiB = [before] { return (double)(bench::resident_kib() - before) / 1024; };

        double start = process_ns(), faults_before = faults();
        for (size_t sum = 0; sum < bytes && alive < most; alive++) {
                size_t n = size_of(size, spread, r);
                object[alive] = (char *)bench::take(n);
                if (!object[alive])
                        return 1;
                memset(object[alive], 1, n);
                sum += n;
        }
        double count = (double)alive;
        answer.add("touch_ns", (process_ns() - start) / count);
        answer.add("faults", (faults() - faults_before) / ((double)bytes / 4096));
        answer.add("peak_MiB", more_MiB());
        answer.add("huge_MiB", (double)(huge_kib() - before_huge) / 1024);

        start = process_ns();
        for (long i = 0; i < accesses; i++)
                (*object[r.below((uint32_t)alive)])++;
        answer.add("access_ns", (process_ns() - start) / (double)accesses);

        start = process_ns();
        free_down_to(alive / 2, r);
        answer.add("half_MiB", more_MiB());
        free_down_to(alive / 5, r);
        double spent = process_ns() - start;
        answer.add("tenth_MiB", more_MiB());
        if (churn) {
                double began = process_ns();
                for (long i = 0; i < churn; i++)
                        if (!replace_one(size_of(size, spread, r), r))
                                return 1;
                answer.add("churn_ns", (process_ns() - began) / (double)churn);
                answer.add("region_MiB", region_mib()).add("churn_MiB", more_MiB());
        }
        call_now_and_then(wait);
        answer.add("old_MiB", more_MiB());
        start = process_ns();
        free_down_to(0, r);
        answer.add("free_ns", (process_ns() - start + spent) / count);
        answer.add("end_MiB", more_MiB());
        return 0;
}
