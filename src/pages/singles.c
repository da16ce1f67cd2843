/*
 * Purpose: free spans of one page that wait beside the bins. Slabs of a page that become empty in
 * random order lie beside free pages sooner or later. To join each with its neighbours at once
 * takes spans out of the middle of bins, and waits for memory at every step. A page that waits is
 * a bit. Those that lie beside each other are joined in one go, lowest first.
 * Place: span.c puts chains of slabs here, and takes single pages from here, lowest first. A thread
 * that looks into the bins has all of them joined first: stook_pages_lock does it. So larger spans
 * are found as if no page ever waited.
 * How: a tree of words, three levels of 64 ways, over a window of 64 GiB of addresses. A span
 * outside of it goes to the bins at once. So does one for whose bit there is no room yet; the next
 * span that is taken makes it.
 * Invariants:
 *  I1 a span that waits is MOVING, dirty and one page long, and is in no other place. The pagemap
 *     leads to it. A child of fork finds it among the descriptors, if it has to make the bins anew
 *     (pages_fork.c).
 *  I2 the words of pages are what counts. `some` of each level and `bytes` follow from them, and
 *     are made anew after a jump out of a call (stook_singles_mend).
 * Concurrency: the lock of the node, but for the window and the levels, which are made without it.
 *  M1: the release of a level's address pairs with each acquiring load of it: a level of zeros.
 * Failure: no memory for a level: the span is not put.
 */
#include "base/compiler.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"

#define WAYS       STOOK_SINGLES_WAYS
#define WAYS_LOG2  6
#define LOW_SHIFT  (2 * WAYS_LOG2)      /* a lowest level stands for so many pages */
#define HIGH_SHIFT (3 * WAYS_LOG2)
#define WINDOW     ((uintptr_t)1 << (4 * WAYS_LOG2))                    /* in pages */
#define ROOM_AT_ONCE 64                 /* lowest levels, of 576 bytes for 16 MiB each */
#define LEVEL_BYTES ((uintptr_t)STOOK_MAP_PAGE << LOW_SHIFT)

_Static_assert(1 << WAYS_LOG2 == WAYS, "ways");

/* A word of the lowest level that has bits, and the way to it. */
struct word {
        struct stook_singles_level *middle, *low;
        unsigned root_way, middle_way, low_way;
};

static unsigned way(uintptr_t page, unsigned shift)
{
        return page >> shift & (WAYS - 1);
}

static struct stook_singles_level *below(const struct stook_singles_level *level, unsigned at)
{
        return __atomic_load_n(&level->below[at], __ATOMIC_ACQUIRE);    /* M1 */
}

/* WINDOW or more: outside. */
static uintptr_t page_of(const struct stook_singles *singles, uintptr_t addr)
{
        uintptr_t base = __atomic_load_n(&singles->base, __ATOMIC_RELAXED);

        return base ? (addr - base) >> STOOK_MAP_SHIFT : WINDOW;
}

size_t stook_singles_bytes(const struct stook_singles *singles)
{
        return __atomic_load_n(&singles->bytes, __ATOMIC_RELAXED);
}

static void set_bytes(struct stook_singles *singles, size_t bytes)
{
        __atomic_store_n(&singles->bytes, bytes, __ATOMIC_RELAXED);
}

/* ---- room ---- */

/* A quarter of the window lies below the first address: a heap mostly grows upwards. */
static void make_window(struct stook_singles *singles, uintptr_t addr)
{
        uintptr_t none = 0, base = (addr & ~(LEVEL_BYTES - 1)) - (WINDOW / 4 << STOOK_MAP_SHIFT);

        __atomic_compare_exchange_n(&singles->base, &none, base, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
}

/* NULL: no memory. */
static struct stook_singles_level *make_below(struct stook_singles_level *level, unsigned at)
{
        struct stook_singles_level *none = NULL, *made = below(level, at);

        if (made)
                return made;
        made = stook_meta_bump(sizeof(*made), 0);
        /* If another thread was faster, this one is lost: nothing gives such memory back. */
        if (made && !__atomic_compare_exchange_n(&level->below[at], &none, made, false,
                                                 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return none;
        return made;
}

static void make_room(struct stook_singles *singles, uintptr_t addr)
{
        uintptr_t page = page_of(singles, addr);
        struct stook_singles_level *middle;

        if (page >= WINDOW)
                return;
        middle = make_below(&singles->root, way(page, HIGH_SHIFT));
        if (middle)
                make_below(middle, way(page, LOW_SHIFT));
}

void stook_singles_make_room_wanted(struct stook_singles *singles)
{
        uintptr_t addr = __atomic_exchange_n(&singles->wanted, 0, __ATOMIC_RELAXED);
        uintptr_t last = __atomic_load_n(&singles->wanted_last, __ATOMIC_RELAXED);

        if (!addr)
                return;
        make_window(singles, addr);
        for (unsigned i = 0; i < ROOM_AT_ONCE && addr < last; i++, addr += LEVEL_BYTES)
                make_room(singles, addr);
        make_room(singles, last);
}

/* Under the lock. Two threads may see parts of two wishes: then one of them is told again. */
static void want_room(struct stook_singles *singles, uintptr_t addr)
{
        uintptr_t first = __atomic_load_n(&singles->wanted, __ATOMIC_RELAXED);

        if (!first || addr > singles->wanted_last)
                __atomic_store_n(&singles->wanted_last, addr, __ATOMIC_RELAXED);
        if (!first || addr < first)
                __atomic_store_n(&singles->wanted, addr, __ATOMIC_RELAXED);
}

/* ---- in and out ---- */

bool stook_singles_put(struct stook_singles *singles, struct stook_span *span)
{
        uintptr_t page = page_of(singles, span->start);
        struct stook_singles_level *root = &singles->root, *middle = NULL, *low = NULL;

        if (page < WINDOW)
                middle = below(root, way(page, HIGH_SHIFT));
        if (middle)
                low = below(middle, way(page, LOW_SHIFT));
        if (STOOK_UNLIKELY(!low)) {
                if (page < WINDOW || !__atomic_load_n(&singles->base, __ATOMIC_RELAXED))
                        want_room(singles, span->start);
                return false;
        }
        stook_pages_tag(span);
        __atomic_store_n(&span->kind, STOOK_SPAN_MOVING, __ATOMIC_RELAXED);
        low->pages[way(page, WAYS_LOG2)] |= UINT64_C(1) << way(page, 0);
        low->some |= UINT64_C(1) << way(page, WAYS_LOG2);
        middle->some |= UINT64_C(1) << way(page, LOW_SHIFT);
        root->some |= UINT64_C(1) << way(page, HIGH_SHIFT);
        set_bytes(singles, singles->bytes + span->bytes);
        return true;
}

/* False: no page waits. */
static bool lowest(struct stook_singles *singles, struct word *word)
{
        if (!singles->root.some)
                return false;
        word->root_way = (unsigned)__builtin_ctzll(singles->root.some);
        word->middle = below(&singles->root, word->root_way);
        word->middle_way = (unsigned)__builtin_ctzll(word->middle->some);
        word->low = below(word->middle, word->middle_way);
        word->low_way = (unsigned)__builtin_ctzll(word->low->some);
        return true;
}

/* The address of the lowest of @bits of a word. */
static uintptr_t addr_at(const struct stook_singles *singles, const struct word *word,
                         uint64_t bits)
{
        uintptr_t page = (uintptr_t)word->root_way << HIGH_SHIFT |
                         (uintptr_t)word->middle_way << LOW_SHIFT |
                         (uintptr_t)word->low_way << WAYS_LOG2 | (unsigned)__builtin_ctzll(bits);

        return __atomic_load_n(&singles->base, __ATOMIC_RELAXED) + (page << STOOK_MAP_SHIFT);
}

static struct stook_span *span_at(const struct stook_singles *singles, const struct word *word,
                                  uint64_t bits)
{
        return stook_entry_span(stook_pagemap_get(addr_at(singles, word, bits)));
}

/* Takes @bits, pages of @bytes together, out of a word. */
static void drop(struct stook_singles *singles, const struct word *word, uint64_t bits,
                 size_t bytes)
{
        word->low->pages[word->low_way] &= ~bits;
        if (!word->low->pages[word->low_way])
                word->low->some &= ~(UINT64_C(1) << word->low_way);
        if (!word->low->some)
                word->middle->some &= ~(UINT64_C(1) << word->middle_way);
        if (!word->middle->some)
                singles->root.some &= ~(UINT64_C(1) << word->root_way);
        set_bytes(singles, singles->bytes - bytes);
}

/* The first @n of them, at most. *@word: the others stay there. */
static unsigned take_of_word(struct stook_singles *singles, const struct word *word, unsigned n,
                             struct stook_span **spans)
{
        uint64_t all = word->low->pages[word->low_way], left = all;
        unsigned got = 0;

        for (; left && got < n; left &= left - 1, got++) {
                spans[got] = span_at(singles, word, left);
                /* It is written soon: both lines. */
                __builtin_prefetch(spans[got], 1);
                __builtin_prefetch(spans[got]->pair, 1);
        }
        drop(singles, word, all ^ left, got * stook_os_page_bytes());
        return got;
}

unsigned stook_singles_take(struct stook_singles *singles, unsigned n, struct stook_span **spans)
{
        struct word word;
        unsigned got = 0;

        while (got < n && lowest(singles, &word))
                got += take_of_word(singles, &word, n - got, spans + got);
        return got;
}

/* ---- to the bins ---- */

/* @span lies behind @run. Both are in hands. Return: what is in hands: both, or @span. */
static struct stook_span *join(struct stook_pages_node *node, struct stook_span *run,
                               struct stook_span *span)
{
        size_t bytes = span->bytes;

        if (!run || run->start + run->bytes != span->start) {
                if (run)
                        stook_pages_insert(node, run);
                return span;
        }
        stook_pages_keep_age(run, span);
        /* Before the run grows over it: in a fork's child pages may leak, not overlap. */
        stook_meta_span_free(span);
        run->bytes += bytes;
        return run;
}

/* It is soon inserted: its descriptor, and those beside it, come meanwhile. Return: its bytes. */
static size_t fetch(uintptr_t addr)
{
        size_t page = stook_os_page_bytes();

        stook_pagemap_fetch(addr - 1);
        stook_pagemap_fetch(addr);
        stook_pagemap_fetch(addr + page);
        return page;
}

/* Not inline, and without an array of spans: for the depth of the stack. */
STOOK_NOINLINE void stook_singles_join(struct stook_pages_node *node)
{
        struct stook_singles *singles = &node->singles;
        struct stook_span *run = NULL;
        struct word word;

        while (lowest(singles, &word)) {
                uint64_t bits = word.low->pages[word.low_way], left;
                size_t bytes = 0;

                for (left = bits; left; left &= left - 1)
                        bytes += fetch(addr_at(singles, &word, left));
                drop(singles, &word, bits, bytes);
                for (left = bits; left; left &= left - 1)
                        run = join(node, run, span_at(singles, &word, left));
        }
        if (run)
                stook_pages_insert(node, run);
}

/* ---- a call that was jumped out of; checks ---- */

static size_t mend_low(struct stook_singles_level *low, bool forget)
{
        size_t n = 0;

        low->some = 0;
        for (unsigned i = 0; i < WAYS; i++) {
                if (forget)
                        low->pages[i] = 0;
                for (uint64_t left = low->pages[i]; left; left &= left - 1)
                        n++;
                low->some |= (uint64_t)(low->pages[i] != 0) << i;
        }
        return n;
}

static size_t mend_middle(struct stook_singles_level *middle, bool forget)
{
        size_t n = 0;

        middle->some = 0;
        for (unsigned i = 0; i < WAYS; i++) {
                struct stook_singles_level *low = below(middle, i);

                if (!low)
                        continue;
                n += mend_low(low, forget);
                middle->some |= (uint64_t)(low->some != 0) << i;
        }
        return n;
}

void stook_singles_mend(struct stook_singles *singles, bool forget)
{
        size_t n = 0;

        singles->root.some = 0;
        for (unsigned i = 0; i < WAYS; i++) {
                struct stook_singles_level *middle = below(&singles->root, i);

                if (!middle)
                        continue;
                n += mend_middle(middle, forget);
                singles->root.some |= (uint64_t)(middle->some != 0) << i;
        }
        set_bytes(singles, n * stook_os_page_bytes());
}

/* What follows from the words of @low agrees with them: the bytes that it adds, or SIZE_MAX. */
static size_t sound_low(const struct stook_singles *singles, struct word *word)
{
        size_t bytes = 0;

        for (word->low_way = 0; word->low_way < WAYS; word->low_way++) {
                uint64_t left = word->low->pages[word->low_way];

                if ((left != 0) != (word->low->some >> word->low_way & 1))
                        return SIZE_MAX;
                for (; left; left &= left - 1) {
                        const struct stook_span *span = span_at(singles, word, left);

                        if (!span || span->start != addr_at(singles, word, left) ||
                            span->kind != STOOK_SPAN_MOVING ||
                            span->state != STOOK_SPAN_DIRTY ||
                            span->bytes != stook_os_page_bytes())
                                return SIZE_MAX;
                        bytes += span->bytes;
                }
        }
        return bytes;
}

static size_t sound_middle(const struct stook_singles *singles, struct word *word)
{
        size_t bytes = 0, more;

        for (word->middle_way = 0; word->middle_way < WAYS; word->middle_way++) {
                word->low = below(word->middle, word->middle_way);
                more = word->low ? sound_low(singles, word) : 0;
                if (more == SIZE_MAX || (more != 0) != (word->middle->some >> word->middle_way & 1))
                        return SIZE_MAX;
                bytes += more;
        }
        return bytes;
}

bool stook_singles_are_sound(const struct stook_singles *singles)
{
        struct word word;
        size_t bytes = 0, more;

        for (word.root_way = 0; word.root_way < WAYS; word.root_way++) {
                word.middle = below(&singles->root, word.root_way);
                more = word.middle ? sound_middle(singles, &word) : 0;
                if (more == SIZE_MAX || (more != 0) != (singles->root.some >> word.root_way & 1))
                        return false;
                bytes += more;
        }
        return bytes == stook_singles_bytes(singles);
}
