/*
 * Purpose: free spans that wait beside the bins: single pages, and the large object that was freed
 * last.
 *
 * Slabs of a page that become empty in random order lie beside free pages sooner or later. To join
 * each with its neighbours at once takes spans out of the middle of bins, and waits for memory at
 * every step. A page that waits is a bit. Those that lie beside each other are joined in one go,
 * lowest first.
 * Place: span.c puts chains of slabs here, and takes single pages from here, lowest first. A thread
 * that looks into the bins has all of them joined first: stook_pages_lock_joined does it. So larger
 * spans are found as if no page ever waited.
 * How: a map of a bit for each page, over a window of 64 GiB of addresses, and above it three
 * levels that say in which words there are any. A span outside of it goes to the bins at once. So
 * does one for which there is no map yet; the next span that is taken makes it.
 * Invariants:
 *  I1 a span that waits is MOVING, dirty and one page long, and is in no other place. The pagemap
 *     leads to it. A child of fork finds it among the descriptors, if it has to make the bins anew
 *     (pages_fork.c).
 *  I2 the words of pages are what counts. A level says "none" only where there is none: a put
 *     stores from the top down, and the search takes away what a level says in vain. So a call that
 *     was jumped out of leaves `bytes` alone wrong (stook_singles_mend).
 * Concurrency: the lock of the node, but for the map, which is made without it.
 *  M1: the release of the map's address pairs with the acquiring load of it: a map of zeros, and
 *  the window's base.
 * Failure: no memory for the map: the span is not put.
 *
 * A program that allocates and frees a large buffer of one size again and again gets it back
 * without the lock, and without a search.
 * Place: span.c puts and takes. purge.c flushes it to the bins at each step that is due, so it ages
 *  there. A take that finds nothing else has it flushed, too.
 * How: it is put there only if the last request for a large object was of its size, and goes to the
 *  bins with the next one of another size. Kept for longer it is in the way where sizes are mixed,
 *  because it is not joined with its neighbours.
 * Invariants:
 *  I3 the span is MOVING and dirty, and in no other place; a child of fork finds it among the
 *     descriptors, if it has to make the bins anew (pages_fork.c).
 *  I4 it is one that may stay (policy/dirty.h) when it is put: below 1 MiB, and nothing that a give
 *     would have purged.
 * Concurrency: one word for each node. To change it is to own what was in it. M2: its release in
 *  put pairs with the acquire in take, flush and the next put.
 */
#include "base/compiler.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"

#define WAYS       STOOK_SINGLES_WAYS
#define WORDS      (WAYS * WAYS * WAYS)
#define WORD_BYTES ((uintptr_t)WAYS << STOOK_MAP_SHIFT)
#define WINDOW     ((uintptr_t)WORDS * WAYS)                            /* in pages */
#define MOST       STOOK_DIRTY_LEAST    /* from here on a give may purge at once */
#define SIZE_SHIFT STOOK_RECENT_SIZE_SHIFT
#define PAGE_SHIFT STOOK_RECENT_PAGE_SHIFT

_Static_assert(MOST >> PAGE_SHIFT < 1 << (64 - SIZE_SHIFT), "a size fits above an address");

/* ---- single pages ---- */

static struct stook_singles_map *map_of(const struct stook_singles *singles)
{
        return __atomic_load_n(&singles->map, __ATOMIC_ACQUIRE);        /* M1 */
}

/* A quarter of the window lies below the first address: a heap mostly grows upwards. */
void stook_singles_make_map(struct stook_singles *singles)
{
        uintptr_t addr = __atomic_exchange_n(&singles->wanted, 0, __ATOMIC_RELAXED);
        struct stook_singles_map *map, *none = NULL;

        if (!addr || map_of(singles) ||
            !(map = stook_meta_bump(sizeof(*map), stook_os_page_bytes())))
                return;
        map->base = (addr & -WORD_BYTES) - (WINDOW / 4 << STOOK_MAP_SHIFT);
        /* If another thread was faster, this one is lost: nothing gives such memory back. */
        __atomic_compare_exchange_n(&singles->map, &none, map, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);                  /* M1 */
}

static void set_bytes(struct stook_singles *singles, size_t bytes)
{
        __atomic_store_n(&singles->bytes, bytes, __ATOMIC_RELAXED);
}

/*
 * From the top down: I2. Released for its order alone: who finds a put half done is this thread
 * after a jump, or a child of a fork meanwhile (stook_singles_mend). Else the lock orders all.
 */
static void set_bit(uint64_t *word, uintptr_t bit)
{
        __atomic_store_n(word, *word | UINT64_C(1) << bit % WAYS, __ATOMIC_RELEASE);
}

bool stook_singles_put(struct stook_singles *singles, struct stook_span *span)
{
        struct stook_singles_map *map = map_of(singles);
        uintptr_t page;

        if (STOOK_UNLIKELY(!map)) {
                __atomic_store_n(&singles->wanted, span->start, __ATOMIC_RELAXED);
                return false;
        }
        page = (span->start - map->base) >> STOOK_MAP_SHIFT;
        if (page >= WINDOW)
                return false;
        stook_pages_tag(span);
        __atomic_store_n(&span->kind, STOOK_SPAN_MOVING, __ATOMIC_RELAXED);
        set_bit(&singles->top, page / WAYS / WAYS / WAYS);
        set_bit(&singles->high[page / WAYS / WAYS / WAYS], page / WAYS / WAYS);
        set_bit(&map->some[page / WAYS / WAYS], page / WAYS);
        set_bit(&map->pages[page / WAYS], page);
        set_bytes(singles, singles->bytes + span->bytes);
        return true;
}

/* The first word with bits; what the levels say in vain they say no more. WORDS: no page waits. */
static unsigned lowest(struct stook_singles *singles)
{
        while (singles->top) {
                unsigned at = (unsigned)__builtin_ctzll(singles->top);
                uint64_t *high = &singles->high[at], *some;

                if (!*high) {
                        singles->top &= singles->top - 1;
                        continue;
                }
                at = at * WAYS + (unsigned)__builtin_ctzll(*high);
                some = &singles->map->some[at];
                for (; *some; *some &= *some - 1)
                        if (singles->map->pages[at * WAYS + (unsigned)__builtin_ctzll(*some)])
                                return at * WAYS + (unsigned)__builtin_ctzll(*some);
                *high &= *high - 1;
        }
        return WORDS;
}

/* The address of the lowest of @bits of word @at. */
static uintptr_t addr_at(const struct stook_singles_map *map, unsigned at, uint64_t bits)
{
        return map->base + (((uintptr_t)at * WAYS + (unsigned)__builtin_ctzll(bits))
                            << STOOK_MAP_SHIFT);
}

static struct stook_span *span_at(const struct stook_singles_map *map, unsigned at, uint64_t bits)
{
        return stook_entry_span(stook_pagemap_get(addr_at(map, at, bits)));
}

unsigned stook_singles_take(struct stook_singles *singles, unsigned n, struct stook_span **spans)
{
        struct stook_singles_map *map = singles->map;
        unsigned got = 0, at;

        while (got < n && (at = lowest(singles)) < WORDS) {
                uint64_t left = map->pages[at];

                for (; left && got < n; left &= left - 1, got++) {
                        spans[got] = span_at(map, at, left);
                        /* It is written soon: both lines. */
                        __builtin_prefetch(spans[got], 1);
                        __builtin_prefetch(spans[got]->pair, 1);
                }
                map->pages[at] = left;
        }
        set_bytes(singles, singles->bytes - got * stook_os_page_bytes());
        return got;
}

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
        struct stook_singles_map *map = singles->map;
        struct stook_span *run = NULL;
        unsigned at;

        while ((at = lowest(singles)) < WORDS) {
                uint64_t bits = map->pages[at], left;
                size_t bytes = 0;

                for (left = bits; left; left &= left - 1)
                        bytes += fetch(addr_at(map, at, left));
                map->pages[at] = 0;
                set_bytes(singles, singles->bytes - bytes);
                for (left = bits; left; left &= left - 1)
                        run = join(node, run, span_at(map, at, left));
        }
        if (run)
                stook_pages_insert(node, run);
}

/* What the levels do not say has no bits: I2. */
void stook_singles_mend(struct stook_singles *singles, bool forget)
{
        struct stook_singles_map *map = map_of(singles);
        size_t n = 0;

        for (unsigned i = 0; map && i < WAYS * WAYS; i++)
                for (uint64_t left = map->some[i]; left; left &= left - 1) {
                        uint64_t *word = &map->pages[i * WAYS + (unsigned)__builtin_ctzll(left)];

                        *word = forget ? 0 : *word;
                        n += (unsigned)__builtin_popcountll(*word);
                }
        set_bytes(singles, n * stook_os_page_bytes());
}

static bool is_single(const struct stook_span *span, uintptr_t addr)
{
        return span && span->start == addr && span->kind == STOOK_SPAN_MOVING &&
               span->state == STOOK_SPAN_DIRTY && span->bytes == stook_os_page_bytes();
}

bool stook_singles_are_sound(const struct stook_singles *singles)
{
        const struct stook_singles_map *map = map_of(singles);
        size_t n = 0;

        for (unsigned i = 0; map && i < WORDS; i++)
                for (uint64_t left = map->pages[i]; left; left &= left - 1, n++)
                        if (!is_single(span_at(map, i, left), addr_at(map, i, left)) ||
                            !(map->some[i / WAYS] >> i % WAYS & 1) ||
                            !(singles->high[i / WAYS / WAYS] >> i / WAYS % WAYS & 1) ||
                            !(singles->top >> i / WAYS / WAYS & 1))
                                return false;
        return n * stook_os_page_bytes() == stook_singles_bytes(singles);
}

/* ---- the large object that was freed last ---- */

static uint64_t word_of(const struct stook_span *span)
{
        return (uint64_t)(uintptr_t)span | (uint64_t)(span->bytes >> PAGE_SHIFT) << SIZE_SHIFT;
}

static struct stook_span *span_of(uint64_t word)
{
        return (struct stook_span *)(uintptr_t)(word & ((UINT64_C(1) << SIZE_SHIFT) - 1));
}

bool stook_recent_put(struct stook_pages_node *node, struct stook_span *span)
{
        uint64_t before, word = word_of(span);

        if (__atomic_load_n(&node->asked_bytes, __ATOMIC_RELAXED) != span->bytes ||
            span->bytes >= MOST || span_of(word) != span ||
            stook_pages_dirty(node) + span->bytes > stook_dirty_limit(&node->ledger))
                return false;
        stook_lock_forbid_waits();
        __atomic_store_n(&span->kind, STOOK_SPAN_MOVING, __ATOMIC_RELAXED);
        before = __atomic_exchange_n(&node->recent, word, __ATOMIC_ACQ_REL);    /* M2 */
        if (before)
                stook_pages_insert_or_pend(node, span_of(before));
        stook_lock_allow_waits();
        return true;
}

struct stook_span *stook_recent_take(struct stook_pages_node *node, size_t bytes)
{
        uint64_t word = __atomic_load_n(&node->recent, __ATOMIC_RELAXED);

        if (__atomic_load_n(&node->asked_bytes, __ATOMIC_RELAXED) != bytes)
                __atomic_store_n(&node->asked_bytes, bytes, __ATOMIC_RELAXED);
        if (word >> SIZE_SHIFT != bytes >> PAGE_SHIFT) {
                stook_recent_flush(node);
                return NULL;
        }
        /* M2. If the word came back meanwhile, it means the same again. */
        return __atomic_compare_exchange_n(&node->recent, &word, 0, false, __ATOMIC_ACQUIRE,
                                           __ATOMIC_RELAXED)
                       ? span_of(word) : NULL;
}

bool stook_recent_insert(struct stook_pages_node *node)
{
        uint64_t word = __atomic_load_n(&node->recent, __ATOMIC_RELAXED);

        if (word)
                word = __atomic_exchange_n(&node->recent, 0, __ATOMIC_ACQUIRE);         /* M2 */
        if (word)
                stook_pages_insert(node, span_of(word));
        return word;
}

void stook_recent_flush(struct stook_pages_node *node)
{
        uint64_t word;

        if (!__atomic_load_n(&node->recent, __ATOMIC_RELAXED))
                return;
        stook_lock_forbid_waits();
        word = __atomic_exchange_n(&node->recent, 0, __ATOMIC_ACQUIRE);         /* M2 */
        if (word)
                stook_pages_insert_or_pend(node, span_of(word));
        stook_lock_allow_waits();
}
