/*
 * bench/patterns/programs.cc - mixtures as programs make them
 *
 * Purpose: sizes and lifetimes of kinds of programs: one that computes with long numbers, one that
 * works on families of small sets, and the mixtures of benchmarks that C libraries and allocators
 * are judged by.
 * Place: see pattern.h.
 */
#include "pattern.h"

namespace patterns {
namespace {

constexpr const char *usual = "1,2,16";

/*
 * Numbers of one to eight words. An operation allocates its result and frees an operand of the last
 * few; one number in 64 stays for long.
 */
void numbers(worker &w)
{
        constexpr size_t recent = 8;
        char *operands[recent] = {};
        for (size_t n = w.share(2000000); n > 0; n--, w.ops++) {
                uint64_t pick = w.random.next();
                char *result = make(8 + (pick & 3) * 8 + (pick >> 8 & 31 ? 0 : 32));
                char *&operand = operands[pick >> 16 & (recent - 1)];
                if ((pick >> 24 & 63) == 0) {
                        char *&kept = w.table[w.any_entry()];
                        drop(kept);
                        kept = operand;
                } else {
                        drop(operand);
                }
                operand = result;
        }
        for (char *operand : operands)
                drop(operand);
}

/*
 * A family is an array of pointers and its sets, all of one size. Of each burst half of the sets
 * are filtered out at once; the family is then kept until 31 others came after it.
 */
struct family {
        size_t sets = 0;
        char **set = nullptr;
};

void drop_family(family &f)
{
        for (size_t i = 0; i < f.sets; i++)
                drop(f.set[i]);
        free(f.set);
        f = family();
}

void families(worker &w)
{
        constexpr size_t kept = 32;
        family ring[kept];
        for (size_t n = w.share(8000); n > 0; n--) {
                family &f = ring[n % kept];
                drop_family(f);
                size_t most = 20 + w.random.below(180), size = 16 + 8 * w.random.below(8);
                size_t room = 16;
                f.set = (char **)malloc(room * sizeof(char *));
                w.ops += 1 + most;
                for (size_t i = 0; f.set && i < most; i++) {
                        if (f.sets == room) {
                                room *= 2;
                                w.ops++;
                                f.set = (char **)realloc(f.set, room * sizeof(char *));
                                if (!f.set)
                                        break;
                        }
                        f.set[f.sets++] = make(size);
                }
                if (!f.set)
                        fail("no memory for a family", nullptr);
                size_t left = 0;
                for (size_t i = 0; i < f.sets; i++) {
                        if (w.random.next() >> 63)
                                f.set[left++] = f.set[i];
                        else
                                drop(f.set[i]);
                }
                f.sets = left;
        }
        for (family &f : ring)
                drop_family(f);
}

/*
 * Each power of two is as likely as the next, from 8 up to `limit`: a few are large, most are
 * small.
 */
size_t power_size(worker &w, unsigned highest)
{
        size_t power = (size_t)8 << w.random.below(highest - 2);
        return power + w.random.below((uint32_t)power);
}

/* An entry is freed if it is used, and filled if it is not: half of them are alive. */
void power_law(worker &w)
{
        for (size_t n = w.share(1000000); n > 0; n--) {
                char *&object = w.table[w.any_entry()];
                if (object) {
                        drop(object);
                        object = nullptr;
                } else {
                        object = make(power_size(w, 10));
                        w.ops++;
                }
        }
}

/* Blocks of one size, 25 to 1,600 of them, freed in order; one size after the other. */
void blocks(worker &w)
{
        static constexpr size_t counts[] = {25, 100, 400, 1600};
        for (size_t n = w.share(60); n > 0; n--) {
                for (size_t size = 16; size <= 1024; size *= 4) {
                        for (size_t count : counts) {
                                char *block[1600];
                                for (size_t i = 0; i < count; i++)
                                        block[i] = make(size);
                                for (size_t i = 0; i < count; i++)
                                        drop(block[i]);
                                w.ops += count;
                        }
                }
        }
}

/* 1,024 of each thread's own, replaced at random; a size is as likely as its square is small. */
void inverse_square(worker &w)
{
        constexpr size_t own = 1024;
        char *object[own] = {};
        for (size_t n = w.share(1000000); n > 0; n--, w.ops++) {
                size_t size = (size_t)16 * 65536 / (1 + w.random.below(65536));
                char *&entry = object[w.random.below(own)];
                drop(entry);
                entry = make(std::min<size_t>(size, 32768));
        }
        for (char *left : object)
                drop(left);
}

/*
 * Blocks of one size are put on top of the table, one size after the other, small ones more often.
 * When it is full, its upper half is freed last first; of what is below, every second run is freed
 * in the order of its allocation.
 */
void two_orders(worker &w)
{
        constexpr size_t run = 50;
        size_t top = 0, room = w.entries / run * run;
        while (top < room && w.table[top])      /* what the repeat before left */
                top++;
        for (size_t n = w.share(20000); n > 0 && room > 0; n--, w.ops += run) {
                size_t size = 8 + w.random.below(1 + w.random.below(1000));
                for (size_t i = 0; i < run; i++)
                        w.table[top++] = make(size);
                if (top < room)
                        continue;
                for (; top > room / 2; w.table[top] = nullptr)
                        drop(w.table[--top]);
                for (size_t first = 0; first < top; first += 2 * run) {
                        for (size_t i = first; i < std::min(first + run, top); i++)
                                drop(w.table[i]);
                        std::fill_n(w.table + first, std::min(run, top - first), nullptr);
                }
                top = (size_t)(std::remove(w.table, w.table + top, nullptr) - w.table);
                std::fill_n(w.table + top, w.entries - top, nullptr);
        }
}

} // namespace

pattern_list program_patterns()
{
        static constexpr pattern all[] = {
                {"cfrac", usual, 4096, nullptr, numbers, drop_table,
                 "numbers of 8 to 64 bytes, most freed within a few operations"},
                {"espresso", usual, 0, nullptr, families, nullptr,
                 "bursts of 20 to 200 sets of 16 to 72 bytes, half freed at once"},
                {"alloc_test", usual, 100000, nullptr, power_law, drop_table,
                 "100,000 entries, used or not, sizes 8 to 2,047 by a power law"},
                {"glibc_simple", "1", 0, nullptr, blocks, nullptr,
                 "25 to 1,600 blocks of one size, freed in order; 16 to 1,024 bytes"},
                {"glibc_thread", usual, 0, nullptr, inverse_square, nullptr,
                 "1,024 of each thread's own, 16 bytes to 32 KiB, replaced at random"},
                {"sh6", usual, 20000, nullptr, two_orders, drop_table,
                 "runs of one size up to 1,008 bytes, freed last first, others first first"},
        };
        return {all, sizeof(all) / sizeof(*all)};
}

} // namespace patterns
