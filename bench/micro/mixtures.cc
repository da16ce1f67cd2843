/*
 * bench/micro/mixtures.cc - an allocation and a free, in mixtures of sizes
 *
 * Purpose: what malloc and free cost in mixtures as programs make them. The figure has the
 * mixture's own work in it: choices by random numbers, and a byte written to each object.
 * Place: bench/measure/slices.py runs it; bench/patterns has such programs as a whole, with their
 * memory.
 */
#include <algorithm>
#include <vector>

#include "../harness/slices.h"

namespace {

constexpr size_t part = 2000;

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

} // namespace

int main(int argc, char **argv)
{
        static cfrac numbers;
        static espresso sets;
        static mixed sizes;
        static batches<64, false> fifo;
        static batches<16, true> lifo;
        static batches<64, false, 512> mixed64;
        static bench::rng random(1);
        bench::slices all;
        auto add = [&](const char *name, mixture &what, size_t made) {
                all.add(name, made, [&what, made](size_t n) {
                        for (; n > 0; n -= made)
                                what.run(random);
                });
        };

        bench::pin_to(0);
        add("cfrac", numbers, part);
        add("espresso", sets, part);
        add("mixed", sizes, part);
        add("fifo", fifo, fifo.made);
        add("lifo", lifo, lifo.made);
        add("mixed64", mixed64, mixed64.made);
        return all.run(argc, argv);
}
