/*
 * bench/patterns/patterns.cc - runs one pattern, or each of them
 *
 * Purpose: starts the workers of a pattern, takes processor time, wall time and memory.
 * Use:
 *   patterns list                      NAME, tabulator, numbers of threads, tabulator, what it is
 *   patterns NAME [options]            runs one; answer below
 *   patterns all [options]             runs each in turn with one thread and with threads=N
 * Options: threads=N (1), percent=P of the usual work and live objects (100), repeat=N (3), whole=1
 * writes and tests every byte of every object, seed=N (1).
 * Answer: ns and first_ns, processor time of all threads for an operation (an object allocated or
 * resized), in the best and the first repeat; wall_ns, wall time in the best; peak_KiB and end_KiB,
 * anonymous memory at most, without the tables, and after the last free; operations of one repeat.
 * spin_ns and first_spin_ns: what fixed loops without memory took around the best and the first
 * repeat. So patterns.py knows which answers are of a quiet machine.
 * Exit status: 3 if an object did not hold what was written to it.
 */
#include <string>
#include <sys/mman.h>
#include <vector>

#include "pattern.h"

namespace patterns {

bool whole;

void fail(const char *what, const void *object)
{
        fprintf(stderr, "patterns: %p: %s\n", object, what);
        _exit(3);
}

} // namespace patterns

using namespace patterns;

namespace {

struct moment {
        double processor_ns, wall_ns;
        static moment now()
        {
                struct timespec t;
                clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
                return {(double)t.tv_sec * 1e9 + (double)t.tv_nsec, (double)bench::now_ns()};
        }
};

/*
 * ns of a step of two loops without memory. In the first each instruction waits for the one before,
 * so it tells the clock rate. The second keeps four units busy, so it tells whether another program
 * uses the core's other thread. The least of some, because the CPU may be taken in the middle.
 */
double spin_ns()
{
        const unsigned steps = 10000;
        double chain = 1e9, wide = 1e9;
        uint64_t a = 1, b = 2, c = 3, d = 4;
        for (int n = 0; n < 5; n++) {
                double start = bench::thread_ns();
                for (unsigned i = 0; i < steps; i++) {
                        a *= a;
                        bench::keep(a);
                }
                double middle = bench::thread_ns();
                for (unsigned i = 0; i < steps; i++) {
                        a += i;
                        b ^= i;
                        c += i;
                        d ^= i;
                        bench::keep(a);
                        bench::keep(b);
                        bench::keep(c);
                        bench::keep(d);
                }
                chain = std::min(chain, (middle - start) / steps);
                wide = std::min(wide, (bench::thread_ns() - middle) / steps);
        }
        return chain + wide;
}

/* Written by the first worker between two meetings, read by the main thread after the last. */
struct result {
        double ns = 0, first_ns = 0, wall_ns = 0, spin_ns = 0, first_spin_ns = 0;
        uint64_t operations = 0;

        void add(bool first, double each, double wall, double spin)
        {
                if (first) {
                        first_ns = each;
                        first_spin_ns = spin;
                }
                if (first || each < ns) {
                        ns = each;
                        spin_ns = spin;
                }
                wall_ns = first ? wall : std::min(wall_ns, wall);
        }
};

struct job {
        team *all;
        worker *workers;
        result *into;
        worker *me;
};

void *run_worker(void *argument)
{
        job &j = *(job *)argument;
        worker &w = *j.me;
        const pattern &p = *j.all->of;
        if (p.begin)
                p.begin(w);
        for (unsigned repeat = 0; repeat < j.all->repeats; repeat++) {
                moment start = {}, stop = {};
                double before = 0;
                w.ops = 0;
                j.all->meet();
                if (w.me == 0) {
                        before = spin_ns();
                        start = moment::now();
                }
                j.all->meet();
                p.work(w);
                j.all->meet();
                if (w.me == 0) {
                        stop = moment::now();
                        uint64_t operations = 0;
                        for (unsigned i = 0; i < j.all->threads; i++)
                                operations += j.workers[i].ops;
                        j.into->add(repeat == 0,
                                    (stop.processor_ns - start.processor_ns) / (double)operations,
                                    (stop.wall_ns - start.wall_ns) / (double)operations,
                                    std::max(before, spin_ns()));
                        j.into->operations = operations;
                }
                j.all->meet();
        }
        if (p.end)
                p.end(w);
        return nullptr;
}

/* Pages of tables, resident; given back by unmap_tables. */
char **map_tables(size_t entries)
{
        void *at = mmap(nullptr, entries * sizeof(char *) + 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (at == MAP_FAILED)
                fail("no memory for tables", nullptr);
        return (char **)at;
}

/* One thread is the main thread, as in a program that never starts another. */
result run(team &all)
{
        result r;
        size_t own = 0;
        if (all.of->entries)
                own = std::max<size_t>(all.of->entries * all.percent / 100 / all.threads, 1);
        char **tables = map_tables(own * all.threads);
        std::vector<worker> workers(all.threads);
        std::vector<job> jobs(all.threads);
        std::vector<pthread_t> threads(all.threads);
        for (unsigned i = 0; i < all.threads; i++) {
                worker &w = workers[i];
                w.me = i;
                w.all = &all;
                w.random = bench::rng(all.seed * 1000 + i + 1);
                w.table = tables + own * i;
                w.entries = own;
                jobs[i] = {&all, workers.data(), &r, &w};
        }
        pthread_barrier_init(&all.barrier, nullptr, all.threads);
        for (unsigned i = 1; i < all.threads; i++)
                threads[i] = started(run_worker, &jobs[i]);
        run_worker(&jobs[0]);
        for (unsigned i = 1; i < all.threads; i++)
                pthread_join(threads[i], nullptr);
        pthread_barrier_destroy(&all.barrier);
        for (size_t i = 0; i < own * all.threads; i++)
                if (tables[i])
                        fail("a pattern left an object in its table", tables[i]);
        munmap(tables, own * all.threads * sizeof(char *) + 1);
        if (r.operations == 0)
                fail("a pattern did nothing", nullptr);
        return r;
}

std::vector<const pattern *> every_pattern()
{
        std::vector<const pattern *> all;
        for (pattern_list list : {program_patterns(), handed_patterns(), shape_patterns(),
                                  large_patterns()})
                for (size_t i = 0; i < list.count; i++)
                        all.push_back(list.first + i);
        return all;
}

long anonymous_kib()
{
        return bench::proc_number("/proc/self/smaps_rollup", "\nAnonymous:");
}

/* A pattern for several threads waits for ever where there is one. */
unsigned least_threads(const pattern *p)
{
        return (unsigned)strtoul(p->threads, nullptr, 10);
}

/* With as few threads as the pattern takes, then with all. */
void run_and_tell(const pattern *p, team all)
{
        all.of = p;
        unsigned most = all.threads;
        for (all.threads = least_threads(p);; all.threads = most) {
                printf("%s, threads=%u: ", p->name, all.threads);
                fflush(stdout);
                printf("%llu operations\n", (unsigned long long)run(all).operations);
                if (all.threads >= most)
                        return;
        }
}

/* The checks have to see a wrong byte, or all the rest proves nothing. */
void prove_checks()
{
        size_t size;
        for (size_t at : {0, 4, 16, 99}) {
                char *object = make(100);
                object[at] ^= 0x40;
                if (stamp_holds(object, size) && (at < head_bytes || whole))
                        fail("a wrong byte was not seen", object);
                object[at] ^= 0x40;
                drop(object);
        }
}

} // namespace

int main(int argc, char **argv)
{
        std::string name = argc > 1 ? argv[1] : "";
        std::vector<const pattern *> chosen;
        for (const pattern *p : every_pattern()) {
                if (name == "list")
                        printf("%s\t%s\t%s\n", p->name, p->threads, p->what);
                else if (name == "all" || name == p->name)
                        chosen.push_back(p);
        }
        if (name == "list")
                return 0;
        if (chosen.empty()) {
                fprintf(stderr, "patterns: no such pattern; `patterns list` names them\n");
                return 2;
        }
        team all = {};
        all.threads = (unsigned)std::clamp(bench::option(argc, argv, "threads", 1), 1L, 256L);
        all.percent = (size_t)std::max(bench::option(argc, argv, "percent", 100), 1L);
        all.repeats = (unsigned)std::max(bench::option(argc, argv, "repeat", 3), 1L);
        all.seed = (uint64_t)bench::option(argc, argv, "seed", 1);
        whole = bench::option(argc, argv, "whole", 0) != 0;
        prove_checks();
        if (name == "all") {
                for (const pattern *p : chosen)
                        run_and_tell(p, all);
                return 0;
        }
        if (all.threads < least_threads(chosen[0])) {
                fprintf(stderr, "patterns: %s takes several threads\n", argv[1]);
                return 2;
        }
        bench::answer answer;
        all.of = chosen[0];
        /*
         * An allocator may take a large page before the first object is made: its memory at the
         * start counts, the pages of files do not. Those are counted at the end: most of them come
         * with the first run of a function, and none goes away. A file page that came after the
         * peak is taken off, too, but no peak is below the end.
         */
        double tables = (double)(all.of->entries * all.percent / 100 * sizeof(char *)) / 1024;
        result r = run(all);
        double files = (double)(bench::resident_kib() - anonymous_kib());
        double end = (double)anonymous_kib(), peak = (double)bench::peak_kib() - files - tables;
        answer.add("ns", r.ns).add("first_ns", r.first_ns).add("wall_ns", r.wall_ns);
        answer.add("peak_KiB", std::max(peak, end)).add("end_KiB", end);
        answer.add("spin_ns", r.spin_ns).add("first_spin_ns", r.first_spin_ns);
        answer.add("operations", (double)r.operations);
        return 0;
}
