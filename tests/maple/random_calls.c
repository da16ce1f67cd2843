/*
 * What this proves: placeholders, replace, load_range, overlaps, searches for room, cursors moved
 * within their leaf, and RCU switched on and off do what a sorted array of ranges does, in random
 * order, on trees of all flags. (model.c has the other calls.)
 *
 *      random_calls [STEPS [SEED]]    steps for each kind of tree; the same seed, the same calls
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <stook/maple.h>
#include "fake_cache.h"
#include "oracle.h"

#define KEYS        2000
#define PLACEHOLDER STOOK_MAPLE_PLACEHOLDER

static uint64_t seed, state;
static long step;
static struct stook_maple tree;
static struct oracle oracle;
static unsigned flags;

#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static void failed(const char *what, int line)
{
        printf("random_calls.c:%d: seed %" PRIu64 " flags %u step %ld: not so: %s\n", line, seed,
               flags, step, what);
        stook_maple_dump(&tree, stdout, STOOK_MAPLE_TEXT);
        exit(1);
}

/* The upper half of a linear congruential generator (Knuth's constants). */
static uint64_t below(uint64_t n)
{
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (state >> 33) % n;
}

static void *draw_entry(void)
{
        switch (below(6)) {
        case 0: return NULL;
        case 1: return PLACEHOLDER;
        case 2: return (void *)(uintptr_t)(1 + 2 * below(9));
        default: return (void *)(uintptr_t)(4096 + 2 * below(999));
        }
}

static bool seen(const void *entry)
{
        return entry && entry != PLACEHOLDER;
}

/* The first range that readers see, at or after @i of the oracle's; its size: none. */
static size_t seen_from(size_t i)
{
        while (i < oracle.n && !seen(oracle.ranges[i].entry))
                i++;
        return i;
}

static void *seen_before(uint64_t first)
{
        void *found = NULL;

        for (size_t i = 0; i < oracle.n && oracle.ranges[i].first < first; i++)
                if (seen(oracle.ranges[i].entry))
                        found = oracle.ranges[i].entry;
        return found;
}

static void write_something(void)
{
        uint64_t first = below(KEYS), last = first + below(below(30) ? 12 : KEYS);
        struct oracle_range there = oracle_range_of(&oracle, first);
        STOOK_MAPLE_CURSOR(cursor, &tree, first, last);
        void *entry = draw_entry(), *old = &cursor;
        int error;

        stook_maple_lock(&tree);
        switch (below(4)) {
        case 0:
                error = stook_maple_insert(&tree, first, last, PLACEHOLDER);
                expect(error == (oracle_free(&oracle, first, last) ? 0 : -EEXIST));
                if (!error)
                        oracle_store(&oracle, first, last, PLACEHOLDER);
                break;
        case 1:
                error = stook_maple_erase(&tree, first, &old);
                expect(error == (there.entry ? 0 : -ENOENT) &&
                       old == (error ? &cursor : there.entry));
                if (there.entry)
                        oracle_store(&oracle, there.first, there.last, NULL);
                break;
        default:
                expect(!stook_maple_cursor_replace(&cursor, entry, &old));
                expect(old == there.entry && cursor.first == first && cursor.last == last);
                oracle_store(&oracle, first, last, entry);
        }
        stook_maple_unlock(&tree);
}

static void look(void)
{
        uint64_t key = below(KEYS), last = key + below(20), found_first, found_last, at = key;
        struct oracle_range range = oracle_range_of(&oracle, key);
        void *entry = seen(range.entry) ? range.entry : NULL;
        size_t next = seen_from(oracle_at(&oracle, key));

        expect(stook_maple_load(&tree, key) == entry);
        expect(stook_maple_load_range(&tree, key, &found_first, &found_last) == entry);
        expect(found_first == range.first && found_last == range.last);
        expect(stook_maple_overlaps(&tree, key, last) == !oracle_free(&oracle, key, last));
        entry = stook_maple_find(&tree, &at, UINT64_MAX);
        expect(entry == (next < oracle.n ? oracle.ranges[next].entry : NULL));
        if (entry)
                expect(at == oracle.ranges[next].last + 1);
        if (range.last < UINT64_MAX) {
                next = seen_from(oracle_at(&oracle, range.last + 1));
                expect(stook_maple_next(&tree, key, UINT64_MAX) ==
                       (next < oracle.n ? oracle.ranges[next].entry : NULL));
        }
        expect(stook_maple_prev(&tree, key, 0) == seen_before(range.first));
}

/* The whole tree, both ways, with what readers see and with all that is there. */
static void walk_all(void)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
        STOOK_MAPLE_CURSOR(all, &tree, 0, 0);
        size_t i = seen_from(0);
        uint64_t at = 0;
        void *entry;

        expect(stook_maple_validate(&tree) == 0);
        stook_maple_lock(&tree);
        stook_maple_cursor_for_each(&cursor, entry, UINT64_MAX) {
                expect(i < oracle.n && cursor.first == oracle.ranges[i].first &&
                       cursor.last == oracle.ranges[i].last && entry == oracle.ranges[i].entry);
                i = seen_from(i + 1);
        }
        expect(i == oracle.n);
        stook_maple_cursor_set(&cursor, UINT64_MAX, UINT64_MAX);
        stook_maple_cursor_for_each_rev(&cursor, entry, 0) {
                do
                        expect(i--);
                while (!seen(oracle.ranges[i].entry));
                expect(cursor.first == oracle.ranges[i].first &&
                       cursor.last == oracle.ranges[i].last && entry == oracle.ranges[i].entry);
        }
        do {
                struct oracle_range range = oracle_range_of(&oracle, at);

                expect(stook_maple_cursor_find_range(&all, UINT64_MAX) == range.entry);
                expect(all.first == range.first && all.last == range.last);
                at = all.last + 1;
        } while (at);
        while (all.first) {
                struct oracle_range range = oracle_range_of(&oracle, all.first - 1);

                expect(stook_maple_cursor_find_range_rev(&all, 0) == range.entry);
                expect(all.first == range.first && all.last == range.last);
        }
        stook_maple_unlock(&tree);
}

/* A cursor that is moved, stepped and overtaken, and never reset. */
static void move(struct stook_maple_cursor *cursor)
{
        uint64_t key = below(2) ? cursor->first + below(40) : below(KEYS);
        struct oracle_range range = oracle_range_of(&oracle, key);

        stook_maple_lock(&tree);
        stook_maple_cursor_move(cursor, key, key);
        expect(stook_maple_cursor_status(cursor) == STOOK_MAPLE_CURSOR_START);
        expect(stook_maple_cursor_walk(cursor) == range.entry);
        for (unsigned steps = (unsigned)below(4); steps--; ) {
                bool up = below(2);

                if (up ? range.last == UINT64_MAX : !range.first)
                        break;
                range = oracle_range_of(&oracle, up ? range.last + 1 : range.first - 1);
                expect((up ? stook_maple_cursor_next_range(cursor, UINT64_MAX)
                           : stook_maple_cursor_prev_range(cursor, 0)) == range.entry);
                expect(cursor->first == range.first && cursor->last == range.last);
        }
        stook_maple_unlock(&tree);
}

/* All places for a size, one after the other. */
static void search(void)
{
        uint64_t size = 1 + below(12), min = below(KEYS), max = min + below(KEYS), at, want = 0;
        STOOK_MAPLE_CURSOR(cursor, &tree, min, min);
        int error, there;

        expect(stook_maple_empty_area(&tree, size, min, max, &at) ==
               (oracle_lowest(&oracle, min, max, size, &want) ? 0 : -EBUSY));
        expect(!oracle_lowest(&oracle, min, max, size, &want) || at == want);
        expect(stook_maple_empty_area_rev(&tree, size, min, max, &at) ==
               (oracle_highest(&oracle, min, max, size, &want) ? 0 : -EBUSY));
        expect(!oracle_highest(&oracle, min, max, size, &want) || at == want);
        stook_maple_lock(&tree);
        for (at = min; at <= max; at = cursor.last + 1) {
                there = oracle_lowest(&oracle, at, max, size, &want) ? 0 : -EBUSY;
                error = stook_maple_cursor_empty_area_next(&cursor, size, max);
                expect(error == there);
                if (error)
                        break;
                expect(cursor.first == want && cursor.last == want + size - 1);
        }
        expect(stook_maple_cursor_empty_area_next(&cursor, size, max) == -EBUSY);
        stook_maple_cursor_set(&cursor, max, max);
        for (at = max; ; at = cursor.first - 1) {
                there = oracle_highest(&oracle, min, at, size, &want) ? 0 : -EBUSY;
                error = stook_maple_cursor_empty_area_prev(&cursor, size, min);
                expect(error == there);
                if (error)
                        break;
                expect(cursor.first == want && cursor.last == want + size - 1);
                if (want == min)
                        break;
        }
        stook_maple_unlock(&tree);
}

static void alloc_cyclic(uint64_t *next)
{
        uint64_t lo = below(KEYS), hi = lo + below(40), from = *next > lo ? *next : lo, want = 0;
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
        void *entry = below(2) ? PLACEHOLDER : (void *)(uintptr_t)4096;
        int there = from <= hi && oracle_lowest(&oracle, from, hi, 1, &want) ? 0
                    : from > lo && oracle_lowest(&oracle, lo, hi, 1, &want)  ? 1
                                                                              : -EBUSY;

        stook_maple_lock(&tree);
        expect(stook_maple_cursor_alloc_cyclic(&cursor, entry, lo, hi, next) == there);
        stook_maple_unlock(&tree);
        if (there < 0)
                return;
        expect(cursor.first == want && cursor.last == want && *next == want + 1);
        oracle_store(&oracle, want, want, entry);
}

static void run(long steps)
{
        STOOK_MAPLE_CURSOR(moved, &tree, 0, 0);
        uint64_t next = 0;

        expect(!stook_maple_init(&tree, flags));
        for (step = 0; step < steps; step++) {
                write_something();
                look();
                move(&moved);
                if (flags & STOOK_MAPLE_GAPS && below(4) == 0)
                        search();
                if (flags & STOOK_MAPLE_GAPS && below(4) == 0)
                        alloc_cyclic(&next);
                if (below(8) == 0)
                        fake_grace();
                if (below(50) == 0)
                        expect(!stook_maple_set_rcu(&tree, below(2)));
                if (below(16) == 0)
                        walk_all();
        }
        walk_all();
        stook_maple_destroy(&tree);
        fake_grace();
        expect(!fake_live);
        oracle_clear(&oracle);
}

int main(int argc, char **argv)
{
        long steps = argc > 1 ? atol(argv[1]) : 1500;

        seed = state = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
        printf("seed %" PRIu64 "\n", seed);
        for (flags = 0; flags < 8; flags++)
                run(steps);
        return 0;
}
