/*
 * What this proves: a cursor's step, over a gap or to the leaf beside, answers what was right at a
 * moment of the call, whatever write is made meanwhile. The write may copy, split, merge or drop
 * the cursor's leaf, the leaf beside and the node above, or store in place. It is made
 *  - between any two instructions of the step of a reader;
 *  - by a writer that is stopped between any two of its instructions. Readers then find the tree
 *    before or after the write. When it has returned, they find the one after;
 *  - between two calls of the lock's holder, whose leaf and node above are then freed, and read as
 *    poison (fake_cache.c).
 * And a step to the leaf beside needs no walk from the root, which is hidden meanwhile.
 *
 *      steps [all|grace]       all: more of the random cases; grace: only the last kind
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <stook/maple.h>
#include "../../maple/mtree.h"
#include "fake_cache.h"
#include "oracle.h"
#include "trap_flag.h"

#define CELL    UINT64_C(10)            /* keys; every other cell has a range at first */
#define CELLS   200
#define PARTS   (unsigned)(CELL / 2)
#define KEY_MAX UINT64_MAX
#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static struct stook_maple tree;
static struct oracle before, after;
static char entries[CELLS] __attribute__((aligned(8)));
static uint64_t random_state;
static const char *part;

/* A case. */
static unsigned flags, odd, kind;       /* odd: the odd cells have the ranges */
static uint64_t cell, target;           /* where cursors stand, where the write is */
static unsigned begin, checks;

static void failed(const char *what, int line)
{
        printf("steps.c:%d: %s: flags %u odd %u cell %d write %u at cell %d instruction %u: "
               "not so: %s\n", line, part, flags, odd, (int)cell, kind, (int)target, begin, what);
        stook_maple_dump(&tree, stdout, STOOK_MAPLE_TEXT);
        fflush(stdout);
        _exit(1);
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 */
static uint64_t below(uint64_t n)
{
        uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (z ^ (z >> 31)) % n;
}

/* ---- trees ---- */

static void store_in(struct oracle *oracle, uint64_t first, uint64_t last, void *entry)
{
        if (oracle)
                oracle_store(oracle, first, last, entry);
        else
                expect(stook_maple_store(&tree, first, last, entry) == 0);
}

/* Leaves and their parents are full, or about half full. */
static void build(void)
{
        unsigned n = CELLS / 2, by = below(2) ? 1 : 37;

        expect(stook_maple_init(&tree, flags) == 0);
        oracle_clear(&before);
        for (unsigned i = 0; i < n; i++) {
                uint64_t at = 2 * (i * by % n) + odd;

                store_in(NULL, at * CELL, at * CELL + CELL - 1, entries + at);
                store_in(&before, at * CELL, at * CELL + CELL - 1, entries + at);
        }
}

enum { WHOLE_CELL, BEGIN_OF_CELL, PART_OF_CELL, ERASE, SPAN, ERASE_MANY, ERASE_ALL, SPLIT, KINDS };

/* @parts: of a SPLIT, which is made of several writes. */
static void make_write(struct oracle *oracle, unsigned parts)
{
        uint64_t key = target * CELL;
        void *entry = entries + 1;

        switch (kind) {
        case WHOLE_CELL:
                store_in(oracle, key, key + CELL - 1, entry);
                break;
        case BEGIN_OF_CELL:
                store_in(oracle, key, key + 2, entry);
                break;
        case PART_OF_CELL:
                store_in(oracle, key + 3, key + 5, entry);
                break;
        case ERASE:
                store_in(oracle, key, key + CELL - 1, NULL);
                break;
        case SPAN:
                store_in(oracle, key + 2, key + 45, entry);
                break;
        case ERASE_MANY:
                store_in(oracle, key + 3, key + 300, NULL);
                break;
        case ERASE_ALL:
                store_in(oracle, 0, KEY_MAX, NULL);
                break;
        default:
                for (unsigned i = 0; i < parts; i++)
                        store_in(oracle, key + 2 * i, key + 2 * i, entry);
        }
}

/* Where cursors begin. */
static struct stook_maple_cursor parked(void)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, cell * CELL + 5, cell * CELL + 5);

        stook_maple_cursor_walk(&cursor);
        return cursor;
}

/* To the first or the last cell of a leaf. */
static void go_to_an_edge(void)
{
        struct stook_maple_cursor cursor = parked();
        uint64_t edge = (below(2) ? cursor.min : cursor.max) / CELL;

        if (edge > 10 && edge < CELLS - 10)
                cell = edge;
}

/* What the tree becomes. */
static void foresee(unsigned parts)
{
        oracle_clear(&after);
        for (size_t i = 0; i < before.n; i++)
                oracle_store(&after, before.ranges[i].first, before.ranges[i].last,
                             before.ranges[i].entry);
        make_write(&after, parts);
}

static void plan_write(unsigned some_kind, uint64_t at)
{
        kind = some_kind;
        target = at;
        foresee(PARTS);
}

static void draw_case(unsigned some_flags)
{
        static const int beside[] = { -9, -2, -1, 0, 1, 2, 9 };

        flags = some_flags;
        odd = (unsigned)below(2);
        cell = 10 + below(CELLS - 20);
        begin = (unsigned)below(250);
        build();
        if (below(4))
                go_to_an_edge();
        plan_write((unsigned)below(KINDS),
                   cell + (uint64_t)beside[below(sizeof(beside) / sizeof(*beside))]);
}

static void end_case(void)
{
        expect(stook_maple_validate(&tree) == 0);
        stook_maple_destroy(&tree);
        fake_grace();
        expect(!fake_live);
}

/* The write is an append to the leaf below that of the cursors: at the begin of its gap, or not. */
static void draw_append(unsigned some_flags, unsigned some_kind)
{
        struct stook_maple_cursor cursor, lower;
        unsigned n;

        for (;; end_case()) {
                draw_case(some_flags);
                cursor = lower = parked();
                stook_maple_cursor_set(&lower, cursor.min - 1, cursor.min - 1);
                if (cursor.min != cell * CELL || stook_maple_cursor_walk(&lower))
                        continue;
                n = mnode_count(lower.node);
                if (n <= MNODE_ENTRIES - 2 && lower.index == n - 1)
                        break;
        }
        plan_write(some_kind, cell - 1);
}

/* ---- steps ---- */

/* A kind of step: near: the limit lies three keys from where the cursor stands. */
struct call { bool up, gaps, near; };
#define CALLS 8u

static struct call call_of(unsigned i)
{
        return (struct call){ i & 1, i & 2, i & 4 };
}

static uint64_t limit_of(struct call call, uint64_t first, uint64_t last)
{
        if (!call.near)
                return call.up ? KEY_MAX : 0;
        return call.up ? (last < KEY_MAX - 3 ? last + 3 : last) : first > 3 ? first - 3 : first;
}

struct answer {
        void *entry;
        uint64_t first, last;
        enum stook_maple_status status;
};

static struct answer make(struct stook_maple_cursor *cursor, struct call call)
{
        uint64_t limit = limit_of(call, cursor->first, cursor->last);
        void *entry = call.up ? (call.gaps ? stook_maple_cursor_next_range(cursor, limit)
                                           : stook_maple_cursor_next(cursor, limit))
                              : (call.gaps ? stook_maple_cursor_prev_range(cursor, limit)
                                           : stook_maple_cursor_prev(cursor, limit));

        checks++;
        return (struct answer){ entry, cursor->first, cursor->last,
                                stook_maple_cursor_status(cursor) };
}

static bool is_right(const struct oracle *oracle, uint64_t first, uint64_t last, struct call call,
                     struct answer answer)
{
        uint64_t limit = limit_of(call, first, last);
        struct oracle_range r = { first, last, NULL };
        bool found = false;

        while (!found && (call.up ? r.last < limit : r.first > limit)) {
                r = oracle_range_of(oracle, call.up ? r.last + 1 : r.first - 1);
                found = r.entry || call.gaps;
        }
        /* NONE: all was erased, now or when the call ended. */
        return answer.entry == (found ? r.entry : NULL) && answer.first == r.first &&
               answer.last == r.last &&
               (answer.status == STOOK_MAPLE_CURSOR_NONE ? kind == ERASE_ALL :
                found == (answer.status == STOOK_MAPLE_CURSOR_ACTIVE));
}

/* These steps begin when the tree is as in @oracle. */
static void go_on(struct stook_maple_cursor *cursor, const struct oracle *oracle, unsigned from)
{
        for (unsigned i = 0; i < 4; i++) {
                uint64_t first = cursor->first, last = cursor->last;
                struct call call = call_of(from + (i == 3));

                expect(is_right(oracle, first, last, call, make(cursor, call)));
        }
}

/* ---- stepping: `at_step` is called before each instruction ---- */

static void (*volatile at_step)(void);
static unsigned steps;
static bool written;

#if defined(__x86_64__)
static void on_trap(int signal, siginfo_t *info, void *context)
{
        greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

        (void)signal, (void)info;
        if (at_step)
                at_step();
        if (!at_step)
                g[REG_EFL] &= ~(greg_t)0x100;
}

static __attribute__((noinline)) void step(void (*then)(void))
{
        steps = 0;
        at_step = then;
        TRAP_FLAG_ON();
}
#endif

static void write_once(void)
{
        if (steps++ == begin) {
                make_write(NULL, PARTS);
                written = true;
                at_step = NULL;
        }
}

static void step_a_reader(void)
{
        struct stook_maple_cursor cursor = parked();
        uint64_t first = cursor.first, last = cursor.last;
        unsigned from = (unsigned)below(CALLS);
        struct call call = call_of(from);
        struct answer answer;
        bool right;

        written = false;
        step(write_once);
        answer = make(&cursor, call);
        at_step = NULL;
        right = is_right(&before, first, last, call, answer);
        for (unsigned parts = 1; written && parts <= PARTS; parts++) {
                foresee(parts);
                right |= is_right(&after, first, last, call, answer);
        }
        expect(right);
        go_on(&cursor, written ? &after : &before, from);
}

static struct stook_maple_cursor place;
static unsigned looks;                  /* calls after each instruction */

static void look(void)
{
        unsigned held = stook_mtree_locked;

        stook_mtree_locked = 0;         /* as another thread */
        for (unsigned i = 0; i < looks; i++, steps++) {
                struct stook_maple_cursor cursor = place;
                struct call call = call_of(steps);
                struct answer answer = make(&cursor, call);

                expect(is_right(&before, place.first, place.last, call, answer) ||
                       is_right(&after, place.first, place.last, call, answer));
        }
        stook_mtree_locked = held;
}

static void step_the_writer(unsigned some_looks)
{
        looks = some_looks;
        place = parked();
        step(look);
        make_write(NULL, PARTS);
        at_step = NULL;
        for (unsigned i = 0; i < CALLS; i++) {
                struct stook_maple_cursor cursor = place;

                go_on(&cursor, &after, i);
        }
}

/* ---- the holder of the lock ---- */

static void by_the_holder(void)
{
        for (unsigned i = 0; i < CALLS; i++) {
                struct stook_maple_cursor cursor;

                draw_case((unsigned)below(8));
                stook_maple_lock(&tree);
                cursor = parked();
                if (below(2))
                        go_on(&cursor, &before, i);
                else if (below(2))
                        cursor.first = cursor.last = cell * CELL + 4;
                make_write(NULL, PARTS);
                fake_grace();
                go_on(&cursor, &after, i);
                stook_maple_unlock(&tree);
                end_case();
        }
}

/* Full leaves have 16 entries: in at most 2 of 33 steps up is there another node above the leaf. */
static void without_the_root(void)
{
        unsigned walks = 0;

        draw_case(STOOK_MAPLE_EXTERNAL_LOCK | (unsigned)below(2));
        for (unsigned i = 0; i < 2; i++) {
                struct stook_maple_cursor cursor = parked();
                uintptr_t root = tree.root;

                for (unsigned j = 0; j < 66; j++) {
                        struct call call = { i, true, false };
                        struct stook_maple_cursor kept = cursor;

                        if (i ? cursor.last == KEY_MAX : !cursor.first)
                                break;
                        tree.root = 0;
                        make(&cursor, call);
                        tree.root = root;
                        if (stook_maple_cursor_status(&cursor) == STOOK_MAPLE_CURSOR_ACTIVE)
                                continue;
                        cursor = kept;
                        stook_maple_cursor_reset(&cursor);
                        stook_maple_cursor_walk(&cursor);
                        make(&cursor, call);
                        walks++;
                }
        }
        expect(walks <= 6);
        end_case();
}

int main(int argc, char **argv)
{
        bool all = argc > 1 && !strcmp(argv[1], "all"), grace = argc > 1 && !all;

        part = "holder";
        for (unsigned i = 0; i < (all ? 20000 : 500); i++)
                by_the_holder();
        part = "without the root";
        for (unsigned i = 0; i < 100; i++)
                without_the_root();
#if defined(__x86_64__)
        struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
        static const unsigned of_readers[] = {
                STOOK_MAPLE_RCU, STOOK_MAPLE_RCU | STOOK_MAPLE_GAPS,
                STOOK_MAPLE_RCU | STOOK_MAPLE_EXTERNAL_LOCK,
        };

        sigaction(SIGTRAP, &action, NULL);
        part = "reader";
        for (unsigned i = 0; !grace && i < (all ? 300000 : 1500); i++) {
                if (i % 4)
                        draw_case(of_readers[i % 3]);
                else
                        draw_append(of_readers[i % 3], BEGIN_OF_CELL);
                step_a_reader();
                end_case();
        }
        part = "writer";
        for (unsigned i = 0; !grace && i < (all ? 10000 : 20); i++) {
                draw_case(of_readers[i % 3]);
                if (kind != SPLIT)      /* many writes */
                        step_the_writer(1);
                end_case();
        }
        part = "append";
        for (unsigned i = 0; !grace && i < (all ? 500 : 4); i++) {
                draw_append(of_readers[i % 3], PART_OF_CELL);
                step_the_writer(CALLS);
                end_case();
        }
#else
        (void)grace;
#endif
        oracle_clear(&before);
        oracle_clear(&after);
        printf("%u steps\n", checks);
        return 0;
}
