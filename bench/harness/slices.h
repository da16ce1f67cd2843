/*
 * bench/harness/slices.h - the rows of a micro benchmark, measured in slices
 *
 * Purpose: what a call costs, told so that other work on the machine cannot spoil it. A slice is
 * two milliseconds of one row. A calibration loop runs before and behind it. Where the two differ,
 * the core's speed changed meanwhile, and whoever asked leaves the slice out. All times are
 * processor time of the thread.
 * Place: each program of bench/micro names its rows and calls run(). bench/measure/slices.py starts
 * one process for each contender and lets them take turns, slice by slice: `serve=1`. For a look at
 * one contender: `row=NAME`.
 * Protocol of serve=1, a line each way: the program greets with {"malloc_from": FILE}. "begin ROW"
 * is answered by "ok", or "none" if there is no such row; "slice" by "NS BEFORE BEHIND": ns an
 * operation, ns a step of the two loops; "end" by {"KEY": NUMBER, ...}, what memory is held.
 */
#ifndef BENCH_SLICES_H
#define BENCH_SLICES_H

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness.h"

namespace bench {

/* ns of a step of a loop that keeps the core about as busy as an allocator does: a chain of adds,
   a load and a store beside it. Its time tells the clock rate, and whether the core is shared. */
inline double ns_a_step()
{
        constexpr unsigned steps = 60000;
        static uint64_t line[64];
        uint64_t chain = 1, other = 2, sum = 3;
        double start = thread_ns();

        for (unsigned i = 0; i < steps; i++) {
                chain += i;
                other ^= line[i % 64];
                line[(i + 7) % 64] = chain;
                sum += other;
                __asm__ volatile("" : "+r"(chain), "+r"(other), "+r"(sum) : : "memory");
        }
        return (thread_ns() - start) / steps;
}

struct slice {
        double ns, before, behind;
};

class slices {
public:
        typedef std::vector<std::pair<const char *, double>> memory;
        /* Where a row makes memory first, or memory counts. end() tells what is held, then frees
           it. */
        struct around {
                std::function<void()> begin;
                std::function<memory()> end;
        };

        /* @work(n) runs n operations, n a multiple of @batch. It returns nothing, or the ns that
           count. */
        template <typename Work>
        void add(std::string name, size_t batch, Work work, around more = {})
        {
                rows.push_back({std::move(name), batch,
                                [work](size_t n) mutable {
                                        if constexpr (std::is_void_v<decltype(work(n))>) {
                                                double start = thread_ns();
                                                work(n);
                                                return thread_ns() - start;
                                        } else {
                                                return work(n);
                                        }
                                },
                                std::move(more)});
        }

        /* main() of a micro benchmark. */
        int run(int argc, char **argv)
        {
                const char *wanted = text_option(argc, argv, "row", nullptr);

                if (option(argc, argv, "serve", 0))
                        return serve();
                for (row &r : rows) {
                        if (!wanted)
                                puts(r.name.c_str());
                        else if (r.name == wanted)
                                return alone(r);
                }
                if (wanted)
                        fprintf(stderr, "no such row: %s\n", wanted);
                return wanted ? 2 : 0;
        }

private:
        struct row {
                std::string name;
                size_t batch;
                std::function<double(size_t)> work;
                around more;
        };

        void begin(row &r)
        {
                if (r.more.begin)
                        r.more.begin();
                /* Warm, and as long as a slice. */
                for (operations = r.batch; r.work(operations) < slice_ns / 2;)
                        operations *= 2;
        }

        slice one(row &r)
        {
                slice s;

                s.before = ns_a_step();
                s.ns = r.work(operations) / (double)operations;
                s.behind = ns_a_step();
                return s;
        }

        memory end(row &r)
        {
                return r.more.end ? r.more.end() : memory{};
        }

        int serve()
        {
                static char line[256], in[4096], out[4096];
                row *now = nullptr;

                setvbuf(stdin, in, _IOFBF, sizeof in);
                setvbuf(stdout, out, _IOLBF, sizeof out);
                printf("{\"malloc_from\": \"%s\"}\n", malloc_from());
                while (fgets(line, sizeof line, stdin)) {
                        line[strcspn(line, "\n")] = 0;
                        if (!strncmp(line, "begin ", 6)) {
                                now = nullptr;
                                for (row &r : rows)
                                        if (r.name == line + 6)
                                                begin(*(now = &r));
                                puts(now ? "ok" : "none");
                        } else if (now && !strcmp(line, "slice")) {
                                slice s = one(*now);
                                printf("%.6g %.6g %.6g\n", s.ns, s.before, s.behind);
                        } else if (now && !strcmp(line, "end")) {
                                const char *comma = "{";
                                for (auto &[key, value] : end(*now)) {
                                        printf("%s\"%s\": %.6g", comma, key, value);
                                        comma = ", ";
                                }
                                puts(*comma == '{' ? "{}" : "}");
                                now = nullptr;
                        } else {
                                return 2;
                        }
                }
                return 0;
        }

        /* Of a hundred slices, the lower quartile of those that nothing disturbed. */
        int alone(row &r)
        {
                std::vector<double> quiet;

                begin(r);
                for (int n = 0; n < 100; n++) {
                        slice s = one(r);
                        if (std::max(s.before, s.behind) <= 1.03 * std::min(s.before, s.behind))
                                quiet.push_back(s.ns);
                }
                memory held = end(r);
                std::sort(quiet.begin(), quiet.end());
                answer a;
                if (!quiet.empty())
                        a.add("ns", quiet[quiet.size() / 4]);
                a.add("quiet_percent", (double)quiet.size());
                for (auto &[key, value] : held)
                        a.add(key, value);
                return quiet.empty();
        }

        static constexpr double slice_ns = 2e6;
        std::vector<row> rows;
        size_t operations = 0;
};

} // namespace bench

#endif
