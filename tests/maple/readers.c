/*
 * What this proves: readers of an RCU tree, beside two writers that split, merge, span and erase
 * all the time, find for every key the old or the new entry, never neither, never an older one than
 * before, and bounds that belong to it; what stays is never missed and met once. Afterwards the
 * tree is valid and every node is back.
 *
 * The keys are cut into blocks of 64. The first 8 keys of each are its anchor, one range that never
 * changes. Blocks by turns are
 *   covered   always full: pieces, whole blocks and runs of blocks are overwritten, one anchor
 *             apart, but never erased
 *   open      stored to and erased at random
 * An entry is a number that says which range was stored, and when.
 *
 *      readers [small|memb|bp [STORES [FLAGS]]]        stores by each writer; STOOK_MAPLE_STORES
 *                                                      overrides
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stook/maple.h>
#include <stook/rcu.h>
#ifdef HAVE_URCU
#include <urcu/flavor.h>
extern const struct rcu_flavor_struct urcu_memb_flavor, urcu_bp_flavor;
#endif
#include "small_rcu.h"

#define BLOCK    64
#define ANCHOR   8
#define BLOCKS   400
#define KEYS     ((uint64_t)BLOCKS * BLOCK)
#define READERS  2
#define WRITERS  2

static struct stook_maple tree;
static const struct stook_rcu *rcu = &small_rcu;
static void (*enrol)(void) = small_rcu_register, (*leave)(void) = small_rcu_unregister;
static uint64_t generation;             /* the tree's lock */
static uint32_t stop;
static uint64_t seen_ranges, seen_changes;
static uint64_t tip = KEYS;             /* atomic: the key that was appended last, or about so */

#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static void failed(const char *what, int line)
{
        printf("readers.c:%d: not so: %s\n", line, what);
        fflush(stdout);
        abort();
}

static uint64_t draw(uint64_t *state)
{
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

/* 16 bits of first, 16 of last, 31 of when, and a low bit that makes it no reserved pointer. */
static void *entry_of(uint64_t first, uint64_t last, uint64_t when)
{
        return (void *)(uintptr_t)(first << 48 | last << 32 | (when & 0x7fffffff) << 1 | 1);
}

static uint64_t first_of(const void *entry) { return (uintptr_t)entry >> 48; }
static uint64_t last_of(const void *entry) { return (uintptr_t)entry >> 32 & 0xffff; }
static uint64_t when_of(const void *entry) { return (uintptr_t)entry >> 1 & 0x7fffffff; }

static bool is_anchor(uint64_t key) { return key % BLOCK < ANCHOR; }
static bool is_covered(uint64_t key) { return key / BLOCK % 2 == 0; }

static void check_range(uint64_t key, uint64_t first, uint64_t last, const void *entry)
{
        expect(first <= key && key <= last);
        if (!entry) {
                expect(!is_anchor(key) && !is_covered(key));
                return;
        }
        if (is_anchor(key)) {
                expect(first == key - key % BLOCK && last == first + ANCHOR - 1 &&
                       when_of(entry) == 0);
        } else {
                /* What is left of a range that was stored. */
                expect(first_of(entry) <= first && last <= last_of(entry));
                expect(when_of(entry) > 0);
        }
}

/* One key again and again: what is seen may only become newer. */
static void look_at_keys(uint64_t *random, uint64_t *newest)
{
        for (int i = 0; i < 50; i++) {
                uint64_t key = draw(random) % KEYS;
                void *entry = stook_maple_load(&tree, key);

                if (!entry) {
                        expect(!is_anchor(key) && !is_covered(key));
                        continue;
                }
                expect(first_of(entry) <= key && key <= last_of(entry));
                expect(is_anchor(key) == (when_of(entry) == 0));
                expect(when_of(entry) >= newest[key]);
                if (when_of(entry) > newest[key])
                        __atomic_fetch_add(&seen_changes, 1, __ATOMIC_RELAXED);
                newest[key] = when_of(entry);
        }
}

static void walk_up(uint64_t *random)
{
        uint64_t from = draw(random) % KEYS, to = from + draw(random) % 3000,
                 limit = to < KEYS ? to : KEYS - 1;
        uint64_t anchor = from - from % BLOCK + (is_anchor(from) ? 0 : BLOCK), end = 0;
        STOOK_MAPLE_CURSOR(cursor, &tree, from, from);
        void *entry;

        stook_maple_cursor_for_each(&cursor, entry, limit) {
                expect(cursor.last >=
                       end); /* the next may begin earlier than the one before ended: it is newer */
                check_range(cursor.first, cursor.first, cursor.last, entry);
                expect(is_anchor(cursor.first) ? cursor.first == anchor : cursor.first < anchor);
                anchor += is_anchor(cursor.first) ? BLOCK : 0;
                end = cursor.last + 1;
                __atomic_fetch_add(&seen_ranges, 1, __ATOMIC_RELAXED);
        }
        expect(anchor > limit);
}

static void walk_down(uint64_t *random)
{
        uint64_t from = draw(random) % KEYS, to = from > 3000 ? from - 3000 : 0, begin = UINT64_MAX,
                 anchors = 0, wanted;
        STOOK_MAPLE_CURSOR(cursor, &tree, from, from);
        void *entry;

        stook_maple_cursor_for_each_rev(&cursor, entry, to) {
                expect(cursor.first < begin);
                check_range(cursor.first, cursor.first, cursor.last, entry);
                anchors += is_anchor(cursor.first);
                begin = cursor.first;
        }
        wanted = from / BLOCK - (to + BLOCK - ANCHOR) / BLOCK + 1;
        expect(anchors == wanted);
}

static void find_simply(uint64_t *random)
{
        uint64_t key = draw(random) % KEYS, at = key;
        void *entry = stook_maple_find(&tree, &at, UINT64_MAX);

        if (!entry) {
                expect(key / BLOCK + 1 >= BLOCKS);
                return;
        }
        expect(at > key);
        expect(at <= key - key % BLOCK + BLOCK + ANCHOR || key / BLOCK + 1 >= BLOCKS);
        entry = stook_maple_next(&tree, key, KEYS - 1);
        expect(entry || key / BLOCK + 1 >= BLOCKS);
        entry = stook_maple_prev(&tree, key, 0);
        expect(entry || key < ANCHOR);
}

/* Above the blocks writers append, key by key, to leaves that end in a gap. */
static void look_at_the_tip(uint64_t *random)
{
        for (int i = 0; i < 100; i++) {
                uint64_t key = __atomic_load_n(&tip, __ATOMIC_RELAXED) + draw(random) % 8, first,
                         last;
                void *entry = stook_maple_load(&tree, key);

                expect(!entry || (first_of(entry) <= key && key <= last_of(entry)));
                entry = stook_maple_load_range(&tree, key, &first, &last);
                expect(first <= key && key <= last);
                expect(!entry || (first_of(entry) <= first && last <= last_of(entry)));
        }
}

static void *reader(void *seed)
{
        uint64_t random = (uintptr_t)seed, *newest = calloc(KEYS, sizeof(*newest));

        expect(newest);
        enrol();
        do {
                rcu->read_lock();
                look_at_keys(&random, newest);
                walk_up(&random);
                walk_down(&random);
                find_simply(&random);
                look_at_the_tip(&random);
                rcu->read_unlock();
        } while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE));
        leave();
        free(newest);
        return NULL;
}

/* ---- writers ---- */

static void store(uint64_t first, uint64_t last, bool erase)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, first, last);
        void *entry;

        stook_maple_lock(&tree);
        entry = erase ? NULL : entry_of(first, last, ++generation);
        if (generation % 2) {
                expect(stook_maple_cursor_preallocate(&cursor, entry) == 0);
                expect(stook_maple_cursor_store_prealloc(&cursor, entry) == 0);
        } else {
                expect(stook_maple_store(&tree, first, last, entry) == 0);
        }
        stook_maple_unlock(&tree);
}

static void *writer(void *arg)
{
        uint64_t random = 1000 + (uintptr_t)arg % 16, stores = (uintptr_t)arg / 16;

        enrol();
        for (uint64_t i = 0; i < stores; i++) {
                uint64_t block = draw(&random) % BLOCKS, base = block * BLOCK + ANCHOR,
                         room = BLOCK - ANCHOR;
                uint64_t first = base + draw(&random) % room,
                         last = first + draw(&random) % (base + room - first);

                if (draw(&random) % 16 == 0) {
                        first = base;
                        last = base + room - 1;
                }
                if (is_covered(first))
                        store(first, last, false);
                else if (draw(&random) % 3)
                        store(first, draw(&random) % 2 ? first : last, false);
                else if (draw(&random) % 2)
                        store(first, last, true);
                else
                        stook_maple_erase(&tree, first, NULL);
                /* Far above, without anchors: many leaves at once are made and spanned. */
                if (i % 64 == 63)
                        store(KEYS + draw(&random) % 20000, KEYS + 20000 + draw(&random) % 16000,
                              draw(&random) % 2);
                else
                        store(KEYS + i % 36000, KEYS + i % 36000, false);
                __atomic_store_n(&tip, KEYS + i % 36000, __ATOMIC_RELAXED);
        }
        leave();
        return NULL;
}

static void nothing(void)
{
}

static void choose_epoch(void)
{
        rcu = &stook_rcu_epoch;
        enrol = leave = nothing;
}

#ifdef HAVE_URCU
static void choose(const char *name)
{
        bool bp = !strcmp(name, "bp");
        const struct rcu_flavor_struct *flavour = bp ? &urcu_bp_flavor : &urcu_memb_flavor;

        rcu = bp ? &stook_urcu_bp : &stook_urcu_memb;
        enrol = flavour->register_thread;
        leave = flavour->unregister_thread;
}
#endif

int main(int argc, char **argv)
{
        const char *env = getenv("STOOK_MAPLE_STORES");
        uint64_t stores = env        ? strtoull(env, NULL, 0)
                          : argc > 2 ? strtoull(argv[2], NULL, 0)
                                     : 20000;
        unsigned flags = STOOK_MAPLE_RCU | (argc > 3 ? (unsigned)atoi(argv[3]) : 0);
        pthread_t readers[READERS], writers[WRITERS];
        struct stook_cache *nodes;

        if (argc > 1 && !strcmp(argv[1], "epoch")) {
                choose_epoch();
        } else if (argc > 1 && strcmp(argv[1], "small")) {
#ifdef HAVE_URCU
                choose(argv[1]);
#else
                printf("built without liburcu\n");
                return 77;
#endif
        }
        enrol();
        expect(stook_rcu_use(rcu) == 0);
        expect(stook_maple_init(&tree, flags) == 0);
        for (uint64_t block = 0; block < BLOCKS; block++) {
                uint64_t first = block * BLOCK;

                expect(stook_maple_insert(&tree, first, first + ANCHOR - 1,
                                          entry_of(first, first + ANCHOR - 1, 0)) == 0);
                if (is_covered(first))
                        store(first + ANCHOR, first + BLOCK - 1, false);
        }
        for (uintptr_t i = 0; i < READERS; i++)
                expect(!pthread_create(readers + i, NULL, reader, (void *)(i + 1)));
        for (uintptr_t i = 0; i < WRITERS; i++)
                expect(!pthread_create(writers + i, NULL, writer, (void *)(stores * 16 + i)));
        leave();
        for (int i = 0; i < WRITERS; i++)
                pthread_join(writers[i], NULL);
        __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
        for (int i = 0; i < READERS; i++)
                pthread_join(readers[i], NULL);
        enrol();
        printf("%" PRIu64 " stores, height %u; %" PRIu64 " ranges and %" PRIu64 " changes seen\n",
               generation, stook_maple_height(&tree), seen_ranges, seen_changes);
        expect(stook_maple_validate(&tree) == 0);
        stook_maple_destroy(&tree);
        nodes = stook_cache_find("maple_node");
        expect(nodes);
        expect(stook_cache_destroy(nodes) == 0);        /* -EBUSY if one is left */
        leave();
        return 0;
}
