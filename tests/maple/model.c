/*
 * What this proves: random calls of every kind, on trees of all flags, do what a sorted array of
 * ranges does; after every step the tree is valid and holds the same. A write takes exactly the
 * nodes it was said to need, and never more than the kernel's table allows; one that fails for want
 * of memory changes nothing. No node is lost.
 *
 *      model [STEPS [SEED]]    steps for each kind of tree and of keys; the seed is printed, the
 *                              same seed gives the same calls
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <stook/maple.h>
#include "../../maple/mwrite.h"
#include "fake_cache.h"
#include "oracle.h"

static uint64_t seed, random_state;
static long step;
static struct stook_maple tree;
static struct oracle oracle;
static unsigned flags, kind;
static unsigned seen[MWRITE_SPANNING + 1][6];   /* writes by class and height */

#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static void failed(const char *what, int line)
{
        printf("model.c:%d: seed %" PRIu64 " flags %u kind %u step %ld: not so: %s\n", line, seed,
               flags, kind, step, what);
        stook_maple_dump(&tree, stdout, STOOK_MAPLE_TEXT);
        exit(1);
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 */
static uint64_t draw(void)
{
        uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static uint64_t below(uint64_t n)
{
        return draw() % n;
}

/* ---- keys ---- */

enum { SMALL, MIDDLE, TOP, WHOLE, LARGE, KINDS };

/*
 * Keys collide often enough that ranges are split, met exactly and swallowed; the ends of the key
 * space are among them.
 */
static uint64_t draw_key(void)
{
        switch (kind) {
        case SMALL:
                return below(60);
        case MIDDLE:
                return below(3000);
        case TOP:
                return UINT64_MAX - below(1000);
        case WHOLE:
                switch (below(8)) {
                case 0: return below(3);
                case 1: return UINT64_MAX - below(3);
                default: return below(500) * (UINT64_MAX / 500);
                }
        default:
                return below(60000);
        }
}

static void draw_range(uint64_t *first, uint64_t *last)
{
        uint64_t a = draw_key(), span = kind == WHOLE ? UINT64_MAX / 100 : 30, to;

        switch (below(kind == LARGE ? 300 : 40)) {
        case 0:                                 /* anything up to everything */
                to = draw_key();
                break;
        case 1:
                to = below(2) ? UINT64_MAX : a;
                break;
        case 2: case 3: case 4: case 5: case 6:
                to = a;
                break;
        case 7: { /* exactly a range, or from its begin to the end of another */
                struct oracle_range r = oracle_range_of(&oracle, a),
                                    s = oracle_range_of(&oracle, draw_key());

                a = r.first;
                to = below(4) ? r.last : s.last;
                break;
        }
        default:
                to = a + below(span);
                if (to < a)
                        to = UINT64_MAX;
        }
        *first = a < to ? a : to;
        *last = a < to ? to : a;
}

static void *draw_entry(void)
{
        static char entries[4096];

        switch (below(50)) {
        case 0: return (void *)(uintptr_t)(4096 + 2 + 4 * below(100)); /* low bits 10 */
        case 1: return (void *)(uintptr_t)(1 + 2 * below(100));
        default: return entries + below(sizeof(entries)) / 4 * 4;
        }
}

/* ---- the tree against the oracle ---- */

static void same(void)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
        size_t i = 0;
        void *entry;

        expect(stook_maple_validate(&tree) == 0);
        expect(stook_maple_empty(&tree) == !oracle.n);
        stook_maple_lock(&tree);
        stook_maple_cursor_for_each(&cursor, entry, UINT64_MAX) {
                expect(i < oracle.n);
                expect(cursor.first == oracle.ranges[i].first);
                expect(cursor.last == oracle.ranges[i].last);
                expect(entry == oracle.ranges[i].entry);
                i++;
        }
        expect(i == oracle.n);
        stook_maple_unlock(&tree);
}

static void check_loads(void)
{
        for (int n = 0; n < 4; n++) {
                uint64_t key = draw_key(), limit = draw_key(), at = key;
                struct oracle_range r = oracle_range_of(&oracle, key);
                size_t i = oracle_at(&oracle, key);
                bool in = i < oracle.n && oracle.ranges[i].first <= limit && key <= limit;
                void *found;

                /* With wide compares, where there are any, and without. */
                for (int wide = 1; wide >= 0; wide--) {
                        stook_mload_choose(wide);
                        expect(stook_maple_load(&tree, key) == r.entry);
                        expect(stook_maple_load(&tree, r.first) == r.entry &&
                               stook_maple_load(&tree, r.last) == r.entry);
                }
                found = stook_maple_find(&tree, &at, limit);
                expect(found == (in ? oracle.ranges[i].entry : NULL));
                expect(at == (in ? oracle.ranges[i].last + 1 : key));
                i += i < oracle.n && oracle.ranges[i].first <= key;
                in = i < oracle.n && oracle.ranges[i].first <= limit;
                expect(stook_maple_next(&tree, key, limit) == (in ? oracle.ranges[i].entry : NULL));
                i = oracle_at(&oracle, key);
                in = i && oracle.ranges[i - 1].last >= limit;
                expect(stook_maple_prev(&tree, key, limit) ==
                       (in ? oracle.ranges[i - 1].entry : NULL));
        }
}

/* A cursor wanders up and down and stays with the oracle. */
static void check_wandering(void)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, draw_key(), 0);
        struct oracle_range r;
        uint64_t limit;
        void *entry;

        cursor.last = cursor.first;
        stook_maple_lock(&tree);
        expect(stook_maple_cursor_walk(&cursor) == oracle_load(&oracle, cursor.first));
        for (int n = 0; n < 12; n++) {
                r = oracle_range_of(&oracle, cursor.first);
                expect(cursor.first == r.first && cursor.last == r.last);
                limit = draw_key();
                if (!below(8))
                        stook_maple_cursor_pause(&cursor);
                switch (below(4)) {
                case 0:
                        entry = stook_maple_cursor_next_range(&cursor, limit);
                        if (r.last >= limit) {
                                expect(!entry && stook_maple_cursor_status(&cursor) ==
                                                         (oracle.n ? STOOK_MAPLE_CURSOR_OVERFLOW
                                                                   : STOOK_MAPLE_CURSOR_NONE));
                                break;
                        }
                        r = oracle_range_of(&oracle, r.last + 1);
                        expect(entry == r.entry && cursor.first == r.first &&
                               cursor.last == r.last);
                        break;
                case 1:
                        entry = stook_maple_cursor_prev_range(&cursor, limit);
                        if (r.first <= limit) {
                                expect(!entry && stook_maple_cursor_status(&cursor) ==
                                                         (oracle.n ? STOOK_MAPLE_CURSOR_UNDERFLOW
                                                                   : STOOK_MAPLE_CURSOR_NONE));
                                break;
                        }
                        r = oracle_range_of(&oracle, r.first - 1);
                        expect(entry == r.entry && cursor.first == r.first &&
                               cursor.last == r.last);
                        break;
                case 2:
                        entry = below(2) ? stook_maple_cursor_next(&cursor, limit)
                                         : stook_maple_cursor_find(&cursor, limit);
                        while (r.last < limit) {
                                r = oracle_range_of(&oracle, r.last + 1);
                                if (r.entry)
                                        break;
                        }
                        expect(cursor.first == r.first && cursor.last == r.last);
                        expect(!entry || entry == r.entry);
                        expect(!!entry ==
                               (stook_maple_cursor_status(&cursor) == STOOK_MAPLE_CURSOR_ACTIVE ||
                                stook_maple_cursor_status(&cursor) == STOOK_MAPLE_CURSOR_ROOT));
                        break;
                case 3:
                        entry = below(2) ? stook_maple_cursor_prev(&cursor, limit)
                                         : stook_maple_cursor_find_rev(&cursor, limit);
                        while (r.first > limit) {
                                r = oracle_range_of(&oracle, r.first - 1);
                                if (r.entry)
                                        break;
                        }
                        expect(cursor.first == r.first && cursor.last == r.last);
                        expect(!entry || entry == r.entry);
                        expect(!!entry ==
                               (stook_maple_cursor_status(&cursor) == STOOK_MAPLE_CURSOR_ACTIVE ||
                                stook_maple_cursor_status(&cursor) == STOOK_MAPLE_CURSOR_ROOT));
                        break;
                }
        }
        stook_maple_unlock(&tree);
}

/* ---- writes ---- */

/* The kernel's table of nodes that a write takes, D and S by their largest. */
static unsigned table(const struct mwrite *w)
{
        unsigned height = w->rootless ? 0 : w->height;

        switch (w->class) {
        case MWRITE_NOTHING: case MWRITE_EXACT_FIT: case MWRITE_APPEND: case MWRITE_SAME_COUNT:
                return 0;
        case MWRITE_NODE:
                return flags & STOOK_MAPLE_RCU ? 1 : 0;
        case MWRITE_ROOT_STORE:
                return w->first == 0 && w->last == 0 && mroot_can_hold(w->entry) && !oracle.n ? 0
                                                                                              : 1;
        case MWRITE_NEW_ROOT:
                return 1;
        case MWRITE_SPLIT: case MWRITE_REBALANCE:
                return 2 * height + 1;
        default:
                return 3 * height + 1;
        }
}

/* A store that is first looked at, then done: without memory first, sometimes. */
static void store(uint64_t first, uint64_t last, void *entry)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, first, last);
        size_t live, waiting;
        struct mwrite w;
        unsigned nodes;

        stook_maple_lock(&tree);
        expect(stook_mwrite_prepare(&w, &tree, first, last, entry, MWRITE_STORE) == 0);
        live = fake_live;
        waiting = fake_waiting;
        nodes = w.nodes;
        seen[w.class][w.height < 6 ? w.height : 5]++;
        expect(nodes <= table(&w));
        if (nodes && !below(4)) {
                fake_fail_in = 1;
                if (below(2)) {
                        expect(stook_maple_cursor_store(&cursor, entry) == -ENOMEM);
                        expect(stook_maple_cursor_status(&cursor) == STOOK_MAPLE_CURSOR_ERROR);
                } else if (below(2)) {
                        expect(stook_maple_cursor_preallocate(&cursor, entry) == -ENOMEM);
                } else {
                        expect(stook_maple_cursor_store_prealloc(&cursor, entry) == -ENOMEM);
                }
                fake_fail_in = 0;
                expect(fake_live == live && fake_waiting == waiting);
                stook_maple_unlock(&tree);
                same();
                stook_maple_lock(&tree);
        }
        fake_taken = 0;
        switch (below(3)) {
        case 0:
                stook_maple_unlock(&tree);
                expect(stook_maple_store(&tree, first, last, entry) == 0);
                stook_maple_lock(&tree);
                break;
        case 1:
                expect(stook_maple_cursor_store(&cursor, entry) == 0);
                break;
        case 2:
                expect(stook_maple_cursor_preallocate(&cursor, entry) == 0);
                expect(stook_maple_cursor_preallocated(&cursor) == nodes);
                expect(fake_live == live + nodes);
                fake_fail_in = 1;
                expect(stook_maple_cursor_store_prealloc(&cursor, entry) == 0);
                fake_fail_in = 0;
        }
        expect(fake_taken == nodes);
        stook_maple_unlock(&tree);
        oracle_store(&oracle, first, last, entry);
}

static void insert(void)
{
        uint64_t first, last;
        void *entry = draw_entry();
        int result;

        draw_range(&first, &last);
        result = stook_maple_insert(&tree, first, last, entry);
        expect(result == (oracle_free(&oracle, first, last) ? 0 : -EEXIST));
        if (!result)
                oracle_store(&oracle, first, last, entry);
}

static void erase(void)
{
        uint64_t key = draw_key();
        struct oracle_range r = oracle_range_of(&oracle, key);
        int error = r.entry ? 0 : -ENOENT;
        void *old = NULL;

        if (below(2)) {
                /* Only trees for RCU ask for memory. */
                fake_fail_in = flags & STOOK_MAPLE_RCU ? 0 : 1;
                expect(stook_maple_erase(&tree, key, &old) == error);
                fake_fail_in = 0;
        } else {
                STOOK_MAPLE_CURSOR(cursor, &tree, key, key);

                stook_maple_lock(&tree);
                expect(stook_maple_cursor_erase(&cursor, &old) == error);
                expect(cursor.first == r.first && cursor.last == r.last);
                stook_maple_unlock(&tree);
        }
        expect(old == r.entry);
        if (r.entry)
                oracle_store(&oracle, r.first, r.last, NULL);
}

static void fit(void)
{
        uint64_t a = draw_key(), b = draw_key(), min = a < b ? a : b, max = a < b ? b : a,
                 start = 77, next, expected;
        uint64_t size = below(4) ? 1 + below(20)
                                 : 1 + below(max - min + 1 ? max - min + 1 : UINT64_MAX);
        void *entry = draw_entry();
        bool found;
        int result;

        if (!(flags & STOOK_MAPLE_GAPS)) {
                expect(stook_maple_alloc(&tree, entry, size, min, max, &start) == -EINVAL &&
                       start == 77);
                return;
        }
        switch (below(4)) {
        case 0:
                found = oracle_lowest(&oracle, min, max, size, &expected);
                result = stook_maple_alloc(&tree, entry, size, min, max, &start);
                break;
        case 1:
                found = oracle_highest(&oracle, min, max, size, &expected);
                result = stook_maple_alloc_top(&tree, entry, size, min, max, &start);
                break;
        case 2: {
                STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
                bool top = below(2);

                found = (top ? oracle_highest : oracle_lowest)(&oracle, min, max, size, &expected);
                stook_maple_lock(&tree);
                result = (top ? stook_maple_cursor_empty_area_rev
                              : stook_maple_cursor_empty_area)(&cursor, size, min, max);
                if (!result) {
                        start = cursor.first;
                        expect(cursor.last - cursor.first == size - 1);
                        expect(stook_maple_cursor_store(&cursor, entry) == 0);
                }
                stook_maple_unlock(&tree);
                break;
        }
        default:
                size = 1;
                next = draw_key();
                expected = next > min ? next : min;
                found = expected <= max && oracle_lowest(&oracle, expected, max, 1, &expected);
                result = 0;
                if (!found && next > min) {
                        found = oracle_lowest(&oracle, min, max, 1, &expected);
                        result = 1;
                }
                if (tree.wrapped)
                        result = 1;
                expect(stook_maple_alloc_cyclic(&tree, entry, min, max, &next, &start) ==
                       (found ? result : -EBUSY));
                expect(!found || next == start + 1);
                result = found ? 0 : -EBUSY;
        }
        expect(result == (found ? 0 : -EBUSY));
        expect(start == (found ? expected : 77));
        if (found)
                oracle_store(&oracle, start, start + (size - 1), entry);
}

static void dup(void)
{
        struct stook_maple copy, was;
        size_t live = fake_live, nodes = stook_maple_nodes(&tree);
        long requests;

        expect(stook_maple_init(&copy, flags) == 0);
        fake_requests = 0;
        expect(stook_maple_dup(&tree, &copy) == 0);
        requests = fake_requests;
        expect(fake_live == live + nodes);
        was = tree;
        tree = copy;
        same();
        tree = was;
        stook_maple_destroy(&copy);
        fake_grace();
        for (long n = 1; n <= requests; n += 1 + (long)below(5)) {
                live = fake_live;
                fake_fail_in = n;
                expect(stook_maple_dup(&tree, &copy) == -ENOMEM);
                fake_fail_in = 0;
                expect(stook_maple_empty(&copy));
                expect(fake_live - fake_waiting == live);
        }
}

static void one_step(void)
{
        uint64_t first, last;

        switch (below(12)) {
        default:
                draw_range(&first, &last);
                store(first, last, draw_entry());
                break;
        case 0: case 1:
                draw_range(&first, &last);
                store(first, last, NULL);
                break;
        case 2:
                insert();
                break;
        case 3: case 4:
                erase();
                break;
        case 5: case 6:
                fit();
                break;
        case 7:
                check_wandering();
                check_loads();
                return;
        case 8:
                if (below(50))
                        return;
                dup();
                break;
        }
        if (flags & STOOK_MAPLE_RCU) {
                fake_rcu_full = !below(6);
                if (!below(10))
                        fake_grace();
        }
        same();
}

/* Trees of many ranges begin with them, so that they are high. */
static void run(long steps)
{
        expect(stook_maple_init(&tree, flags) == 0);
        if (kind == LARGE || kind == MIDDLE)
                for (unsigned n = kind == LARGE ? 4000 : 300; n; n--) {
                        uint64_t first = draw_key(), last = first + below(4);
                        void *entry = draw_entry();

                        expect(stook_maple_store(&tree, first, last, entry) == 0);
                        oracle_store(&oracle, first, last, entry);
                }
        fake_grace();
        same();
        if (kind == LARGE)
                steps /= 20;
        for (step = 0; step < steps; step++)
                one_step();
        stook_maple_destroy(&tree);
        fake_rcu_full = false;
        stook_maple_destroy(&tree);
        fake_grace();
        expect(fake_live == 0);
        oracle_clear(&oracle);
}

int main(int argc, char **argv)
{
        long steps = argc > 1 ? atol(argv[1]) : 3000;

        seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
        random_state = seed;
        printf("seed %" PRIu64 "\n", seed);
        for (flags = 0; flags < 8; flags++)
                for (kind = 0; kind < KINDS; kind++)
                        run(steps);
        for (unsigned class = MWRITE_ROOT_STORE; class <= MWRITE_SPANNING; class++) {
                printf("class %u by height:", class);
                for (unsigned height = 0; height < 6; height++)
                        printf(" %u", seen[class][height]);
                printf("\n");
        }
        return 0;
}
