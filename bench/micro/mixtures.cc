/*
 * bench/micro/mixtures.cc - cycles of an allocation and a free, in mixtures of sizes
 *
 * Purpose: what malloc and free cost in mixtures as programs make them, in the processor's own
 * cycles, where its clock rate changes and other programs use it. So two libraries that differ in a
 * few instructions can be told apart.
 * How: a part is 2,000 allocations, and about as many frees. The time-stamp counter is read around
 * it. A loop of additions, of which each waits for the one before, takes a cycle for each: one runs
 * before and one behind the part, and tells how many cycles a tick of the counter is. A part whose
 * two loops differ by more than 3 % was not alone on the core, or the clock rate changed in it: it
 * is left out. The figure is the tenth percentile of the others. It has the mixture's own work in
 * it: choices by random numbers, and a byte written to each object.
 * Answer: NAME_cycles for each mixture; quiet_percent, parts that were not left out.
 * Options: parts=N (2000) of each mixture. Exit status 1: all parts of a mixture were left out.
 */
#include <algorithm>
#include <string>
#include <vector>

#include "../harness/harness.h"
#include "../harness/tsc.h"

namespace {

constexpr size_t part = 2000;
constexpr double loud = 0.03;   /* two loops in a row differ by 0.5 % where nothing disturbs them */

char *make(size_t size)
{
        char *object = (char *)malloc(size);
        bench::keep(object);
        if (!object)
                abort();
        *object = 1;
        return object;
}

struct mixture {
        virtual ~mixture() = default;
        virtual void run(bench::rng &random) = 0;
};

/* Long numbers: 8 to 64 bytes, one operand of the last eight freed for each; 1 in 64 is kept. */
struct cfrac : mixture {
        char *operands[8] = {}, *kept[4096] = {};

        void run(bench::rng &random) override
        {
                for (size_t n = part; n > 0; n--) {
                        uint64_t pick = random.next();
                        char *result = make(8 + (pick & 3) * 8 + (pick >> 8 & 31 ? 0 : 32));
                        char *&operand = operands[pick >> 16 & 7];
                        if ((pick >> 24 & 63) == 0)
                                std::swap(kept[pick >> 32 & 4095], operand);
                        free(operand);
                        operand = result;
                }
        }
};

/* Bursts of 20 to 199 sets of one size: half are freed at once, the rest after 31 bursts more. */
struct espresso : mixture {
        std::vector<char *> bursts[32];
        size_t next = 0;

        espresso()
        {
                for (auto &burst : bursts)
                        burst.reserve(200);
        }
        void run(bench::rng &random) override
        {
                for (size_t left = part; left > 0; next++) {
                        auto &burst = bursts[next % 32];
                        for (char *set : burst)
                                free(set);
                        burst.clear();
                        size_t size = 16 + 8 * random.below(8);
                        size_t sets = std::min<size_t>(20 + random.below(180), left);
                        for (size_t i = 0; i < sets; i++)
                                burst.push_back(make(size));
                        left -= sets;
                        size_t stay = 0;
                        for (char *set : burst) {
                                if (random.next() >> 63)
                                        burst[stay++] = set;
                                else
                                        free(set);
                        }
                        burst.resize(stay);
                }
        }
};

/* One of 1,000 objects is replaced, by one of a size as programs ask for them. */
struct mixed : mixture {
        char *objects[1000] = {};

        void run(bench::rng &random) override
        {
                for (size_t n = part; n > 0; n--) {
                        char *&object = objects[random.below(1000)];
                        free(object);
                        object = make(bench::mixed_size(random));
                }
        }
};

/* Batches of 64 bytes, or of random sizes up to @Most: freed in order, or last first. */
template <size_t Batch, bool LastFirst, size_t Most = 0> struct batches : mixture {
        void run(bench::rng &random) override
        {
                char *objects[Batch];
                for (size_t n = 0; n < part; n += Batch) {
                        for (char *&object : objects)
                                object = make(Most ? 1 + random.below(Most) : 64);
                        for (size_t i = 0; i < Batch; i++)
                                free(objects[LastFirst ? Batch - 1 - i : i]);
                }
        }
        static constexpr size_t made = (part + Batch - 1) / Batch * Batch;
};

/* Ticks of the counter for each cycle. */
double ticks_a_cycle()
{
        constexpr unsigned steps = 2500;
        uint64_t sum = 0, one = 1, start = bench::tsc();
        for (unsigned i = 0; i < steps; i++) {
                sum += one;
                bench::keep(sum);
                sum += one;
                bench::keep(sum);
                sum += one;
                bench::keep(sum);
                sum += one;
                bench::keep(sum);
                bench::keep(one);
        }
        return (double)(bench::tsc() - start) / (4.0 * steps);
}

struct totals {
        size_t all = 0, quiet = 0;
};

/* Cycles of an allocation and a free; negative: no part was quiet. */
double cycles_of(mixture &what, size_t allocations, long parts, totals &count)
{
        std::vector<double> found;
        bench::rng random(1);

        found.reserve((size_t)parts);
        for (long n = -10; n < parts; n++) {    /* the first ten warm up */
                double before = ticks_a_cycle();
                uint64_t start = bench::tsc();
                what.run(random);
                uint64_t ticks = bench::tsc() - start;
                double behind = ticks_a_cycle();
                if (n < 0)
                        continue;
                count.all++;
                if (std::max(before, behind) > (1 + loud) * std::min(before, behind))
                        continue;
                count.quiet++;
                found.push_back((double)ticks / ((before + behind) / 2) / (double)allocations);
        }
        if (found.empty())
                return -1;
        std::sort(found.begin(), found.end());
        return found[found.size() / 10];
}

} // namespace

int main(int argc, char **argv)
{
        static cfrac numbers;
        static espresso sets;
        static mixed sizes;
        static batches<64, false> fifo;
        static batches<16, true> lifo;
        static batches<64, false, 512> mixed64;
        const struct {
                const char *name;
                mixture &what;
                size_t allocations;
        } all[] = {
                {"cfrac", numbers, part},
                {"espresso", sets, part},
                {"mixed", sizes, part},
                {"fifo", fifo, fifo.made},
                {"lifo", lifo, lifo.made},
                {"mixed64", mixed64, mixed64.made},
        };
        long parts = bench::option(argc, argv, "parts", 2000);
        totals count;
        bool found = true;

        if (parts < 1) {
                fprintf(stderr, "mixtures: bad options\n");
                return 2;
        }
        bench::pin_to(0);
        bench::answer answer;
        for (auto &m : all) {
                double cycles = cycles_of(m.what, m.allocations, parts, count);
                found &= cycles >= 0;
                answer.add((std::string(m.name) + "_cycles").c_str(), cycles);
        }
        answer.add("quiet_percent", 100.0 * (double)count.quiet / (double)count.all);
        return found ? 0 : 1;
}
