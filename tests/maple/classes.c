/*
 * What this proves: every class of write, in trees of every kind of flags and of heights 1 to 4, at
 * the lower end, the upper end and in between, takes exactly the nodes it was said to need. That is
 * no more than the kernel's table says, D being the levels whose nodes change. Refused any of its
 * allocations a write changes nothing; given them it does what it should. Each class was met at
 * each height at which there is one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stook/maple.h>
#include "../../maple/mwrite.h"
#include "fake_cache.h"
#include "oracle.h"

#define HEIGHTS 4
#define CLASSES (MWRITE_SPANNING + 1)

static struct stook_maple tree;
static struct oracle oracle;
static unsigned flags, height, met[CLASSES][HEIGHTS + 1];
static char entries[64];

#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static void failed(const char *what, int line)
{
        printf("classes.c:%d: flags %u height %u: not so: %s\n", line, flags, height, what);
        exit(1);
}

static void same(void)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
        size_t i = 0;
        void *entry;

        expect(stook_maple_validate(&tree) == 0);
        stook_maple_lock(&tree);
        stook_maple_cursor_for_each(&cursor, entry, UINT64_MAX) {
                expect(i < oracle.n && cursor.first == oracle.ranges[i].first &&
                       cursor.last == oracle.ranges[i].last && entry == oracle.ranges[i].entry);
                i++;
        }
        expect(i == oracle.n);
        stook_maple_unlock(&tree);
}

static void store(uint64_t first, uint64_t last, void *entry)
{
        expect(stook_maple_store(&tree, first, last, entry) == 0);
        oracle_store(&oracle, first, last, entry);
}

static unsigned table(const struct mwrite *w)
{
        unsigned levels = w->end == MWRITE_POINTER ? w->top : w->top + 1;

        switch (w->class) {
        case MWRITE_NOTHING: case MWRITE_EXACT_FIT: case MWRITE_APPEND: case MWRITE_SAME_COUNT:
                return 0;
        case MWRITE_NODE:
                return flags & STOOK_MAPLE_RCU ? 1 : 0;
        case MWRITE_ROOT_STORE: case MWRITE_NEW_ROOT:
                return 1;
        case MWRITE_SPLIT: case MWRITE_REBALANCE:
                return 2 * levels + 1;
        default:
                return 3 * levels + 1;
        }
}

/* One write; when its class was met often enough at this height it is left out. */
static void attempt(uint64_t first, uint64_t last, void *entry, unsigned enough)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, first, last);
        struct mwrite w;
        size_t live;
        long requests;

        stook_maple_lock(&tree);
        expect(stook_mwrite_prepare(&w, &tree, first, last, entry, MWRITE_STORE) == 0);
        stook_maple_unlock(&tree);
        expect(w.nodes <= table(&w) && w.nodes <= 3 * stook_maple_height(&tree) + 1);
        if (stook_maple_height(&tree) != height || met[w.class][height] >= enough)
                return;
        met[w.class][height]++;
        live = fake_live;
        for (requests = 1;; requests++) {
                int error;

                fake_fail_in = requests;
                fake_taken = 0;
                stook_maple_lock(&tree);
                error = stook_maple_cursor_store(&cursor, entry);
                stook_maple_unlock(&tree);
                fake_fail_in = 0;
                if (!error)
                        break;
                expect(error == -ENOMEM && fake_live == live && w.nodes);
                same();
        }
        expect(w.nodes ? requests > 1 : requests == 1);
        expect(fake_taken == w.nodes);
        oracle_store(&oracle, first, last, entry);
        same();
        fake_grace();
}

/*
 * Ranges of 10 keys, a gap of 6 behind every third, until the tree has its height, and a few more.
 */
static void build(void)
{
        expect(stook_maple_init(&tree, flags) == 0);
        for (uint64_t at = 16; stook_maple_height(&tree) < height || at % 160; at += 16)
                store(at, at + (at % 48 ? 15 : 9), entries + at / 16 % 16 * 4);
        fake_grace();
        same();
}

static void destroy(void)
{
        stook_maple_destroy(&tree);
        fake_grace();
        expect(fake_live == 0);
        oracle_clear(&oracle);
}

enum { FITS, GAPS, SPLITS, SPANS, ERASES, PAIRS, ENDS, ALL, NOTHING, PHASES };

/*
 * Writes at and behind @at, each phase beginning with a tree of the height wanted; @end is its last
 * key.
 */
static void writes(unsigned phase, uint64_t at, uint64_t end, unsigned enough)
{
        struct oracle_range r = oracle_range_of(&oracle, at), next;
        void *fresh = entries + 61;

        switch (phase) {
        case FITS:
                attempt(r.first, r.last, fresh, enough);
                attempt(r.first, r.last - (r.last > r.first), NULL, enough);
                break;
        case GAPS: /* the bound between two ranges moves; two become one */
                r = oracle_range_of(&oracle, at + 20);
                next = oracle_range_of(&oracle, r.last == UINT64_MAX ? r.first : r.last + 1);
                attempt(r.first, next.first, fresh, enough);
                attempt(r.first, next.last, NULL, enough);
                break;
        case SPLITS:
                for (uint64_t key = at; key < at + 96; key += 2)
                        attempt(key, key, fresh - key % 60, enough);
                break;
        case SPANS:
                attempt(at, at + 300, fresh, enough);
                attempt(at + 100, at + 5000, NULL, enough);
                attempt(end / 4, end / 4 * 3, NULL, enough);
                break;
        case ERASES:                            /* leaves run empty */
                for (uint64_t key = at; key < at + 700; key += 16) {
                        r = oracle_range_of(&oracle, key);
                        attempt(r.first, r.last, NULL, enough);
                }
                break;
        case PAIRS:
                for (uint64_t key = at; key < at + 900; key += 32)
                        attempt(key, key + 31, fresh, enough);
                break;
        case ENDS:
                attempt(end + 100, end + 200, entries, enough);
                attempt(UINT64_MAX, UINT64_MAX, entries, enough);
                attempt(0, end, entries + 4, enough);
                break;
        case ALL:
                attempt(0, UINT64_MAX, entries, enough);
                break;
        case NOTHING:
                attempt(0, UINT64_MAX, NULL, enough);
        }
}

static void all_writes(void)
{
        for (unsigned phase = 0; phase < PHASES; phase++)
                for (unsigned place = 0; place < 3; place++) {
                        uint64_t end;

                        build();
                        end = oracle.ranges[oracle.n - 1].last;
                        writes(phase,
                               place == 0   ? 0
                               : place == 1 ? end / 2
                               : end > 400  ? end - 400
                                            : 16,
                               end, (phase + 1) * (place + 1) * 4);
                        destroy();
                }
}

static void without_nodes(void)
{
        static const struct { uint64_t first, last; int direct;
        } first_stores[] = {
                { 0, 0, 1 },
                { 0, 1, 0 },
                { 1, 1, 0 },
                { 5, 90, 0 },
                { UINT64_MAX, UINT64_MAX, 0 },
                { 0, UINT64_MAX, 0 },
        };
        void *entry = entries, *odd = (void *)(uintptr_t)4098;

        for (unsigned i = 0; i < sizeof(first_stores) / sizeof(*first_stores); i++)
                for (int with_root = 0; with_root < 2; with_root++) {
                        expect(stook_maple_init(&tree, flags) == 0);
                        if (with_root)
                                store(0, 0, entry);
                        attempt(first_stores[i].first, first_stores[i].last, entries + 8, 100);
                        expect((stook_maple_height(&tree) == 0) == first_stores[i].direct);
                        destroy();
                }
        expect(stook_maple_init(&tree, flags) == 0);
        attempt(0, 0, odd, 100);                /* its low bits are a node's */
        expect(stook_maple_height(&tree) == 1);
        destroy();
        /* What is left after an erase needs no node any more. */
        expect(stook_maple_init(&tree, flags) == 0);
        store(0, 0, entry);
        store(1, 1, entry);
        store(1, 1, NULL);
        expect(stook_maple_height(&tree) == 0 && !stook_maple_empty(&tree));
        same();
        store(0, 0, NULL);
        expect(stook_maple_empty(&tree));
        destroy();
}

int main(void)
{
        for (flags = 0; flags < 4; flags++) {
                for (unsigned class = 0; class < CLASSES; class++)
                        for (height = 0; height <= HEIGHTS; height++)
                                met[class][height] = 0;
                height = 0;
                without_nodes();
                expect(met[MWRITE_ROOT_STORE][0] >= 10);
                for (height = 1; height <= HEIGHTS; height++)
                        all_writes();
                for (height = 1; height <= HEIGHTS; height++)
                        for (unsigned class = MWRITE_EXACT_FIT; class < CLASSES; class++) {
                                bool in_place = class == MWRITE_SAME_COUNT;

                                if ((height == 1 &&
                                     (class == MWRITE_SPANNING || class == MWRITE_REBALANCE)) ||
                                    (in_place && flags & STOOK_MAPLE_RCU))
                                        continue;
                                if (!met[class][height])
                                        printf("class %u\n", class);
                                expect(met[class][height]);
                        }
        }
        return 0;
}
