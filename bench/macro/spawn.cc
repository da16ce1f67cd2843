/*
 * bench/macro/spawn.cc - the time a process takes from start to end
 *
 * Purpose: runs PROGRAM in turn without and with LD_PRELOAD of each LIBRARY, and prints what each
 * adds. What PROGRAM starts has the preload, too: so a script's commands count.
 * Use: spawn LIBRARY[:LIBRARY...] PROGRAM [ARGUMENT...] [pairs=N]. Answer: plain_us, and of each
 * library with_us (medians), added_us (median of the differences of neighbours), the 95 % interval
 * of that median, added_low_us to added_high_us, added_least_us (of the least times), and what the
 * kernel counts, its children included: added_cpu_us, user and system time (median of the
 * differences), added_faults (medians). From the second library on the names end in its number.
 * Place: figure "empty program"; started by bench/run.py. It is itself run without a preload.
 */
#include <algorithm>
#include <cmath>
#include <spawn.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <vector>

#include "../harness/harness.h"

extern char **environ;

/* One run of a process. */
struct cost {
        double us, cpu_us, faults;
};

static double us_of(const timeval &t)
{
        return (double)t.tv_sec * 1e6 + (double)t.tv_usec;
}

static cost run(char **argv, char **env)
{
        pid_t child;
        int status;
        rusage used;
        uint64_t start = bench::now_ns();
        if (posix_spawnp(&child, argv[0], nullptr, nullptr, argv, env) != 0 ||
            wait4(child, &status, 0, &used) != child || status != 0) {
                fprintf(stderr, "spawn: %s does not run\n", argv[0]);
                exit(2);
        }
        return {(double)(bench::now_ns() - start) / 1e3,
                us_of(used.ru_utime) + us_of(used.ru_stime), (double)used.ru_minflt};
}

static double median(std::vector<double> v)
{
        std::nth_element(v.begin(), v.begin() + (long)(v.size() / 2), v.end());
        return v[v.size() / 2];
}

/* What all runs with one library, or without, took. */
struct runs {
        std::vector<double> us, cpu_us, faults;

        void add(const cost &c)
        {
                us.push_back(c.us);
                cpu_us.push_back(c.cpu_us);
                faults.push_back(c.faults);
        }
};

static std::vector<double> differences(const std::vector<double> &with,
                                       const std::vector<double> &plain)
{
        std::vector<double> d;
        for (size_t i = 0; i < with.size(); i++)
                d.push_back(with[i] - plain[i]);
        std::sort(d.begin(), d.end());
        return d;
}

static double least(const std::vector<double> &v)
{
        return *std::min_element(v.begin(), v.end());
}

static void tell(bench::answer &answer, const runs &with, const runs &plain, size_t number)
{
        std::string end = number ? "_" + std::to_string(number + 1) : "";
        auto add = [&](const char *name, double value) {
                answer.add((name + end).c_str(), value);
        };
        std::vector<double> added = differences(with.us, plain.us);
        double n = (double)added.size(), half = 0.98 * std::sqrt(n);

        add("with_us", median(with.us));
        add("added_us", added[added.size() / 2]);
        add("added_low_us", added[(size_t)std::max(0.0, n / 2 - half)]);
        add("added_high_us", added[(size_t)std::min(n - 1, n / 2 + half)]);
        add("added_least_us", least(with.us) - least(plain.us));
        add("added_cpu_us", median(differences(with.cpu_us, plain.cpu_us)));
        add("added_faults", median(with.faults) - median(plain.faults));
}

int main(int argc, char **argv)
{
        long pairs = bench::option(argc, argv, "pairs", 1000);
        std::vector<char *> program, plain_env;
        for (int i = 2; i < argc; i++)
                if (strncmp(argv[i], "pairs=", 6))
                        program.push_back(argv[i]);
        if (program.empty()) {
                fprintf(stderr,
                        "use: spawn LIBRARY[:LIBRARY...] PROGRAM [ARGUMENT...] [pairs=N]\n");
                return 2;
        }
        program.push_back(nullptr);
        for (char **e = environ; *e; e++)
                if (strncmp(*e, "LD_PRELOAD=", 11))
                        plain_env.push_back(*e);
        plain_env.push_back(nullptr);

        std::vector<std::string> preloads;
        for (std::string all = std::string(argv[1]) + ":", one; !all.empty();) {
                size_t end = all.find(':');
                preloads.push_back("LD_PRELOAD=" + all.substr(0, end));
                all.erase(0, end + 1);
        }
        std::vector<std::vector<char *>> with_env;
        for (std::string &preload : preloads) {
                with_env.push_back(plain_env);
                with_env.back().insert(with_env.back().begin(), &preload[0]);
        }

        runs plain;
        std::vector<runs> with(preloads.size());
        for (long i = -10; i < pairs; i++) {
                cost a = run(program.data(), plain_env.data());
                if (i >= 0)             /* the first few read the files in */
                        plain.add(a);
                for (size_t l = 0; l < with.size(); l++) {
                        cost b = run(program.data(), with_env[l].data());
                        if (i >= 0)
                                with[l].add(b);
                }
        }
        bench::answer answer;
        answer.add("plain_us", median(plain.us));
        for (size_t l = 0; l < with.size(); l++)
                tell(answer, with[l], plain, l);
        return 0;
}
