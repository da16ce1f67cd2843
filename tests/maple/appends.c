/*
 * What this proves: readers of an RCU tree see an append in place as a whole, or not at all, at
 * every instruction.
 *
 * First the writer is stepped through an append. After each of its instructions every kind of
 * reader looks, and all of them must see the same tree: the one before, or the one after. Then each
 * reader is stepped through its call, and one or more whole appends are made between any of its
 * instructions. Its answer must be right for one of the trees that there were during the call.
 * Then, two exact fits are made between any of them: a gap gets an entry, the range above loses its
 * own. The range behind both is there all the time, and must be found. Last, the range at the end
 * of the leaf loses its entry, and an append takes its place, which then ends lower.
 * (Stepping keeps the order of a thread's loads and stores. What other orders could do is argued in
 * maple/mnode.h, M5, and looked for by maple/readers.)
 *
 *      appends [all]   all: all trees and interruptions, 3 million answers; else some of them:
 *                      between exact fits and at ends each fourth, for each distance another one
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <stook/maple.h>
#include "../../maple/mtree.h"
#include "trap_flag.h"

#if !defined(__x86_64__)
int main(void)
{
        puts("stepping is for x86-64 only");
        return 77;
}
#else

#define TRAP_FLAG 0x100
#define APPENDS   5
#define STEPS     500                   /* no call has as many */
#define KEY_MAX   UINT64_MAX
#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

struct range { uint64_t first, last; void *entry; };

/* What a call answered. What a call does not tell is 0. */
struct answer { void *entry; uint64_t first, last; };

static struct stook_maple tree;
static struct stook_maple_cursor parked; /* at [20, 29], from before the first append on */
static unsigned flags, pattern, done;   /* pattern: a bit for each append: it leaves a gap */
static struct range appended[APPENDS];
static char entries[APPENDS + 2] __attribute__((aligned(8)));
static unsigned checks;
static bool all;

static void failed(const char *what, int line)
{
        printf("appends.c:%d: flags %u pattern %x done %u: not so: %s\n", line, flags, pattern,
               done, what);
        stook_maple_dump(&tree, stdout, STOOK_MAPLE_TEXT);
        fflush(stdout);
        _exit(1);
}

/* [10, 19], [20, 29], and room for APPENDS above, each after a gap of 5 keys or none. */
static void build(void)
{
        uint64_t key = 30;

        expect(stook_maple_init(&tree, flags) == 0);
        expect(stook_maple_store(&tree, 20, 29, entries) == 0);
        expect(stook_maple_store(&tree, 10, 19, entries + 1) == 0);
        for (unsigned i = 0; i < APPENDS; i++) {
                key += pattern >> i & 1 ? 5 : 0;
                appended[i] = (struct range){ key, key + 9, entries + 2 + i };
                key += 10;
        }
        done = 0;
        parked = (struct stook_maple_cursor)STOOK_MAPLE_CURSOR_INIT(&tree, 20, 20);
        stook_maple_cursor_walk(&parked);
}

static void append(void)
{
        struct range *r = appended + done;

        expect(stook_maple_store(&tree, r->first, r->last, r->entry) == 0);
        done++;
}

/* The range that @key is in after @n appends. */
static struct range range_at(unsigned n, uint64_t key)
{
        struct range gap = { 0, 9, NULL }, r[APPENDS + 2] = {
                { 10, 19, entries + 1 }, { 20, 29, entries },
        };

        memcpy(r + 2, appended, n * sizeof(*r));
        for (unsigned i = 0; i < n + 2; i++) {
                if (key < r[i].first) {
                        gap.last = r[i].first - 1;
                        return gap;
                }
                if (key <= r[i].last)
                        return r[i];
                gap.first = r[i].last + 1;
        }
        gap.last = KEY_MAX;
        return gap;
}

/* ---- calls, and what they should answer ---- */

static struct answer of_range(struct range r)
{
        return (struct answer){ r.entry, r.first, r.last };
}

static struct range above(unsigned n, struct range r, bool gaps)
{
        while (r.last < KEY_MAX) {
                r = range_at(n, r.last + 1);
                if (gaps || r.entry)
                        return r;
        }
        return (struct range){ 0 };
}

static struct range below(unsigned n, struct range r, bool gaps)
{
        while (r.first) {
                r = range_at(n, r.first - 1);
                if (gaps || r.entry)
                        return r;
        }
        return (struct range){ 0 };
}

static struct answer load(uint64_t key)
{
        return (struct answer){ .entry = stook_maple_load(&tree, key) };
}

static struct answer load_right(unsigned n, uint64_t key)
{
        return (struct answer){ .entry = range_at(n, key).entry };
}

static struct answer load_range(uint64_t key)
{
        struct answer a;

        a.entry = stook_maple_load_range(&tree, key, &a.first, &a.last);
        return a;
}

static struct answer range_right(unsigned n, uint64_t key)
{
        return of_range(range_at(n, key));
}

static struct answer overlaps(uint64_t key)
{
        return (struct answer){ .first = stook_maple_overlaps(&tree, key, key + 5) };
}

static struct answer overlaps_right(unsigned n, uint64_t key)
{
        struct range r = range_at(n, key);

        return (struct answer){ .first = key <= key + 5 && (r.entry || r.last < key + 5) };
}

static struct answer find(uint64_t key)
{
        struct answer a = { .last = key };

        a.entry = stook_maple_find(&tree, &a.last, KEY_MAX);
        a.last = a.entry ? a.last - 1 : 0;
        return a;
}

static struct answer find_right(unsigned n, uint64_t key)
{
        struct range r = range_at(n, key);

        if (!r.entry)
                r = above(n, r, false);
        return (struct answer){ .entry = r.entry, .last = r.last };
}

static struct answer next(uint64_t key)
{
        return (struct answer){ .entry = stook_maple_next(&tree, key, KEY_MAX) };
}

static struct answer next_right(unsigned n, uint64_t key)
{
        return (struct answer){ .entry = above(n, range_at(n, key), false).entry };
}

static struct answer prev(uint64_t key)
{
        return (struct answer){ .entry = stook_maple_prev(&tree, key, 0) };
}

static struct answer prev_right(unsigned n, uint64_t key)
{
        return (struct answer){ .entry = below(n, range_at(n, key), false).entry };
}

static struct answer walk(uint64_t key)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, key, key);
        void *entry = stook_maple_cursor_walk(&cursor);

        return (struct answer){ entry, cursor.first, cursor.last };
}

/* From [20, 29] one step up, to a gap, too; no walk from the root. */
static struct answer step_up(uint64_t key)
{
        struct stook_maple_cursor cursor = parked;
        void *entry = stook_maple_cursor_next_range(&cursor, KEY_MAX);

        (void)key;
        return (struct answer){ entry, cursor.first, cursor.last };
}

static struct answer step_up_right(unsigned n, uint64_t key)
{
        (void)key;
        return of_range(range_at(n, 30));
}

/* The same over a gap, if one is there. */
static struct answer step_over(uint64_t key)
{
        struct stook_maple_cursor cursor = parked;
        void *entry = stook_maple_cursor_next(&cursor, KEY_MAX);

        (void)key;
        return (struct answer){ entry, cursor.first, cursor.last };
}

static struct answer step_over_right(unsigned n, uint64_t key)
{
        struct range r = above(n, range_at(n, 20), false);

        (void)key;
        return of_range(r.entry ? r : range_at(n, KEY_MAX));
}

/* The highest range, from the gap above it. */
static struct answer step_down(uint64_t key)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, KEY_MAX, KEY_MAX);
        void *entry;

        (void)key;
        stook_maple_cursor_walk(&cursor);
        entry = stook_maple_cursor_prev_range(&cursor, 0);
        return (struct answer){ entry, cursor.first, cursor.last };
}

static struct answer step_down_right(unsigned n, uint64_t key)
{
        (void)key;
        return of_range(below(n, range_at(n, KEY_MAX), true));
}

static const struct call {
        struct answer (*make)(uint64_t key);
        struct answer (*right)(unsigned n, uint64_t key);
        bool keys;                      /* asks for the key */
} calls[] = {
        { load, load_right, true }, { load_range, range_right, true },
        { overlaps, overlaps_right, true }, { find, find_right, true }, { next, next_right, true },
        { prev, prev_right, true }, { walk, range_right, true }, { step_up, step_up_right, false },
        { step_over, step_over_right, false }, { step_down, step_down_right, false },
};
#define CALLS (sizeof(calls) / sizeof(*calls))

static bool same(struct answer a, struct answer b)
{
        return a.entry == b.entry && a.first == b.first && a.last == b.last;
}

/* ---- stepping: `at_step` is called before each instruction ---- */

static void (*volatile at_step)(void);

static void on_trap(int signal, siginfo_t *info, void *context)
{
        greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

        (void)signal, (void)info;
        if (at_step)
                at_step();
        if (!at_step)
                g[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static __attribute__((noinline)) void step(void (*then)(void))
{
        at_step = then;
        TRAP_FLAG_ON();
}

static void stop(void)
{
        at_step = NULL;
}

/* ---- the writer is stepped ---- */

static const uint64_t keys[] = { 5, 25, 30, 33, 36, 39, 41, 45, 1000, KEY_MAX };
#define KEYS (sizeof(keys) / sizeof(*keys))

static unsigned before;                 /* appends done when the stepped one began */
static bool visible;

static void all_look(void)
{
        unsigned held = stook_mtree_locked;
        bool now;

        stook_mtree_locked = 0;         /* as another thread */
        now = stook_maple_load(&tree, appended[before].first) != NULL;
        expect(now || !visible);
        visible = now;
        for (unsigned i = 0; i < CALLS; i++)
                for (unsigned k = 0; k < (calls[i].keys ? KEYS : 1); k++, checks++)
                        expect(same(calls[i].make(keys[k]),
                                    calls[i].right(before + visible, keys[k])));
        stook_mtree_locked = held;
}

static void step_the_writer(void)
{
        build();
        for (before = 0; before < APPENDS; before++) {
                visible = false;
                step(all_look);
                append();
                stop();
                all_look();
                expect(visible);
        }
        expect(stook_maple_validate(&tree) == 0);
        stook_maple_destroy(&tree);
}

/* ---- a reader is stepped ---- */

static unsigned steps, begin, every;

static void append_between(void)
{
        if (steps >= begin && (steps - begin) % every == 0) {
                append();
                if (done == APPENDS || every > STEPS)
                        stop();
        }
        steps++;
}

/* False: the call had ended before the first append. */
static bool step_a_reader(const struct call *call, uint64_t key)
{
        struct answer answer;
        bool right = false;

        build();
        steps = 0;
        step(append_between);
        answer = call->make(key);
        stop();
        for (unsigned n = 0; n <= done; n++)
                right |= same(answer, call->right(n, key));
        if (!right)
                printf("call %zu key %llu: %p [%llu, %llu]; appends from instruction %u, each %u\n",
                       (size_t)(call - calls), (unsigned long long)key, answer.entry,
                       (unsigned long long)answer.first, (unsigned long long)answer.last, begin,
                       every);
        expect(right);
        stook_maple_destroy(&tree);
        checks++;
        return done;
}

static void step_readers(void)
{
        static const uint64_t some[] = { 41, KEY_MAX, 33 };
        static const unsigned distances[] = { STEPS + 1, 2, 1, 8 };

        for (unsigned i = 0; i < CALLS; i++) {
                /* Two appends between two loads of this call: it has few instructions. */
                bool brief = !all && calls[i].make == step_over, each = all || brief;

                for (unsigned k = 0; k < (!calls[i].keys ? 1 : all ? 3 : 2); k++)
                        for (unsigned d = brief; d < (all ? 4 : 2); d++) {
                                every = distances[d];
                                for (begin = each ? 0 : (i + k + d) % 11;
                                     step_a_reader(calls + i, some[k]);)
                                        begin += each ? 1 : 11;
                                expect(begin > 10);
                        }
        }
}

/* ---- exact fits between a reader's instructions ---- */

#define B (entries + 3)
#define C (entries + 4)

static unsigned first_of(unsigned i)
{
        return all ? 0 : (i + every / 3) % 4;
}

static bool goes_on(void)
{
        bool more = steps > begin;

        begin += all ? 1 : 4;
        return more;
}

static void two_fits_between(void)
{
        if (steps == begin)
                expect(stook_maple_store(&tree, 20, 29, B) == 0);
        if (steps == begin + every) {
                expect(stook_maple_store(&tree, 30, 39, NULL) == 0);
                stop();
        }
        steps++;
}

static struct answer gap_between(uint64_t key)
{
        struct answer a = load_range(key);

        expect((!a.entry || a.entry == B) && a.first == 20 && a.last == 29);
        return a;
}

static struct answer overlap_behind(uint64_t key)
{
        expect(stook_maple_overlaps(&tree, key, 45));
        return (struct answer){ 0 };
}

static struct answer found_behind(uint64_t key)
{
        struct answer a = next(key);

        expect(a.entry == entries || a.entry == C);
        return a;
}

/* Over the gap from [10, 19]. */
static struct answer stepped_behind(uint64_t key)
{
        struct stook_maple_cursor cursor = parked;
        void *entry = stook_maple_cursor_next(&cursor, KEY_MAX);

        (void)key;
        expect((entry == B && cursor.first == 20 && cursor.last == 29) ||
               (entry == entries && cursor.first == 30 && cursor.last == 39) ||
               (entry == C && cursor.first == 40 && cursor.last == 49));
        return (struct answer){ 0 };
}

/* From [40, 49] down. A gap at 30 came after the range at 20. */
static struct answer stepped_before(uint64_t key)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 40, 40);
        void *entry;

        (void)key;
        stook_maple_cursor_walk(&cursor);
        entry = stook_maple_cursor_prev(&cursor, 0);
        expect((entry == B && cursor.first == 20 && cursor.last == 29) ||
               (entry == entries && cursor.first == 30 && cursor.last == 39));
        return (struct answer){ 0 };
}

static void step_exact_fits(void)
{
        static struct answer (*const make[])(uint64_t) = {
                gap_between, overlap_behind, found_behind, stepped_behind, stepped_before,
        };

        for (unsigned i = 0; i < sizeof(make) / sizeof(*make); i++)
                for (every = 0; every < 30; every += 3) {
                        begin = first_of(i);
                        do {
                                expect(stook_maple_init(&tree, flags) == 0);
                                expect(stook_maple_store(&tree, 40, 49, C) == 0);
                                expect(stook_maple_store(&tree, 30, 39, entries) == 0);
                                expect(stook_maple_store(&tree, 10, 19, entries + 1) == 0);
                                stook_maple_cursor_set(&parked, 10, 10);
                                stook_maple_cursor_walk(&parked);
                                steps = 0;
                                step(two_fits_between);
                                make[i](25);
                                stop();
                                expect(stook_maple_load(&tree, 45) == C);
                                stook_maple_destroy(&tree);
                                checks++;
                        } while (goes_on());
                        expect(begin > 10);
                }
}

/* ---- an exact fit and an append at the end of the leaf, between a reader's instructions ---- */

static uint64_t left;                   /* keys that the append leaves as a gap */

static void replace_the_end(void)
{
        if (steps == begin)
                expect(stook_maple_store(&tree, 20, KEY_MAX, NULL) == 0);
        if (steps == begin + every) {
                expect(stook_maple_store(&tree, 20 + left, 29, B) == 0);
                stop();
        }
        steps++;
}

/* [@first, @last] had @entry at some moment. */
static void was(const void *entry, uint64_t first, uint64_t last)
{
        expect((entry == entries && first == 20 && last == KEY_MAX) ||
               (!entry && first == 20 && (last == KEY_MAX || (left && last == 19 + left))) ||
               (!entry && first == 30 && last == KEY_MAX) ||
               (entry == B && first == 20 + left && last == 29));
}

static void step_ends(void)
{
        static struct answer (*const make[])(uint64_t) = {
                load_range, walk, step_up, step_over, step_down,
        };
        struct answer a;

        for (unsigned i = 0; i < sizeof(make) / sizeof(*make); i++)
                for (every = 0; every < 6; every += 3) {
                        begin = first_of(i + left / 5 * 2);
                        do {
                                expect(stook_maple_init(&tree, flags) == 0);
                                expect(stook_maple_store(&tree, 20, KEY_MAX, entries) == 0);
                                expect(stook_maple_store(&tree, 10, 19, entries + 1) == 0);
                                stook_maple_cursor_set(&parked, 10, 10);
                                stook_maple_cursor_walk(&parked);
                                steps = 0;
                                step(replace_the_end);
                                a = make[i](20);
                                stop();
                                /* A step over a gap may end there; one down may come to 10. */
                                if ((make[i] != step_over || a.entry) &&
                                    (make[i] != step_down || a.entry != entries + 1))
                                        was(a.entry, a.first, a.last);
                                stook_maple_destroy(&tree);
                                checks++;
                        } while (goes_on());
                        expect(begin > 10);
                }
}

int main(int argc, char **argv)
{
        struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

        all = argc > 1 && !strcmp(argv[1], "all");
        sigaction(SIGTRAP, &action, NULL);
        for (unsigned i = 0; i < 2; i++) {
                flags = STOOK_MAPLE_RCU | (i ? STOOK_MAPLE_GAPS : 0);
                for (pattern = 10 * i; pattern < 1 << APPENDS; pattern += all ? 5 : 15)
                        step_the_writer();
                for (pattern = 10 * i; pattern < 1 << APPENDS; pattern += all ? 3 : 31)
                        step_readers();
                step_exact_fits();
                for (left = 0; left < 10; left += 5)
                        step_ends();
        }
        printf("%u answers\n", checks);
        return checks < 10000;
}
#endif
