/*
 * bench/macro/spawn.cc - the time a process takes from start to end
 *
 * Purpose: runs PROGRAM alternately without and with LD_PRELOAD=LIBRARY and prints what the library
 * adds.
 * Use: spawn LIBRARY PROGRAM [pairs=N]. Answer: plain_us, with_us (medians), added_us (median of
 * the differences of neighbours) and the 95 % interval of that median, added_low_us to
 * added_high_us.
 * Place: figure "empty program"; started by bench/run.py. It is itself run without a preload.
 */
#include <algorithm>
#include <cmath>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <vector>

#include "../harness/harness.h"

extern char **environ;

static double run_us(char **argv, char **env)
{
        pid_t child;
        int status;
        uint64_t start = bench::now_ns();
        if (posix_spawn(&child, argv[0], nullptr, nullptr, argv, env) != 0 ||
            waitpid(child, &status, 0) != child || status != 0) {
                fprintf(stderr, "spawn: %s does not run\n", argv[0]);
                exit(2);
        }
        return (double)(bench::now_ns() - start) / 1e3;
}

static double median(std::vector<double> v)
{
        std::nth_element(v.begin(), v.begin() + (long)(v.size() / 2), v.end());
        return v[v.size() / 2];
}

int main(int argc, char **argv)
{
        if (argc < 3) {
                fprintf(stderr, "use: spawn LIBRARY PROGRAM [pairs=N]\n");
                return 2;
        }
        long pairs = bench::option(argc, argv, "pairs", 1000);
        std::string preload = std::string("LD_PRELOAD=") + argv[1];
        std::vector<char *> plain_env, with_env;
        for (char **e = environ; *e; e++) {
                if (!strncmp(*e, "LD_PRELOAD=", 11))
                        continue;
                plain_env.push_back(*e);
                with_env.push_back(*e);
        }
        plain_env.push_back(nullptr);
        with_env.push_back(&preload[0]);
        with_env.push_back(nullptr);
        char *program[] = {argv[2], nullptr};

        bench::answer answer;
        std::vector<double> plain, with, added;
        for (long i = -10; i < pairs; i++) {
                double a = run_us(program, plain_env.data());
                double b = run_us(program, with_env.data());
                if (i < 0)              /* the first few read the files in */
                        continue;
                plain.push_back(a);
                with.push_back(b);
                added.push_back(b - a);
        }
        answer.add("plain_us", median(plain))
                .add("with_us", median(with))
                .add("added_us", median(added));
        std::sort(added.begin(), added.end());
        double n = (double)added.size(), half = 0.98 * std::sqrt(n);
        answer.add("added_low_us", added[(size_t)std::max(0.0, n / 2 - half)]);
        answer.add("added_high_us", added[(size_t)std::min(n - 1, n / 2 + half)]);
        return 0;
}
