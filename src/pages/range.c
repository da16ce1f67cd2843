/*
 * Purpose: address space of ours, and the writes and slow lookups of its pagemap.
 * One huge range where it can be had (1 TiB, or a quarter of a smaller address space, halved until
 * it fits). Where a limit binds (RLIMIT_AS, RLIMIT_MEMLOCK), or new mappings are locked, pieces on
 * demand, from 64 MiB, doubling. (Strict overcommit counts what may be written, not address space:
 * pages are committed in small steps anyway.) Each range has its share of the pagemap beside it,
 * and a frontier that only moves up. On several nodes the huge range is cut into ranges of one
 * size, one for each node with memory (stook_node_ranges). A piece is of one node.
 * Invariants:
 *  I1 nothing below a range's frontier is ever unmapped or given back, with the exception in span.h
 *     I3; address space there that has no memory behind it is PROT_NONE. What lies beyond the map
 *     that can be read goes where a limit of address space is set (space_limit.c), and is none of
 *     the range from then on.
 *  I2 the map is readable and writable up to `bytes`, which covers all address space that was
 *     handed out.
 * Concurrency: lock-free: address space is taken by compare-and-swap on the frontier (any
 *  instruction).
 *  M1: a range's fields are written before `state` becomes READY (release), and read after it
 *  (acquire).
 */
#include "base/compiler.h"
#include "base/probe.h"
#include "os/os.h"
#include "pages/source.h"
#include "pages/span.h"
#include "process/checker.h"

/* More than machines have memory; 47 bits of space hold it easily. */
#define HUGE_RANGE    ((size_t)1 << 40)
#define HUGE_LEAST    ((size_t)1 << 34)         /* below this, pieces on demand serve better */
/* Of each node; what it needs above that comes in pieces. */
#define NODE_RANGE    ((size_t)1 << 38)
#define PIECE         ((size_t)64 << 20)
#define PIECE_MOST    ((size_t)16 << 30)
#define PIECE_LEAST   ((size_t)2 << 20)
#define RANGE_ALIGN   ((size_t)2 << 20)         /* huge pages */
#define PLACE_STEP    ((size_t)1 << 30)         /* address space given a policy at once */
/* Bytes of map made writable at once: 32 MiB of range. */
#define MAP_STEP      ((size_t)64 << 10)
/*
 * Left out at a range's start: 13 entries of the map. A free loads the entry of a slab's first
 * page, then the word of a sheaf that was just stored to. Both lie at the start of pages in a small
 * program; where their low 12 bits agree the load waits for the store: 4.1 ns for a malloc and free
 * instead of 3.5, measured.
 */
#define RANGE_SKEW    ((size_t)13 << STOOK_MAP_SHIFT)
#define STATE_FREE    0u
#define STATE_MAKING  1u
#define STATE_READY   2u

/* Weak: the drop-in on aarch64 has its own, beside its sections (dropin/hot_aarch64.S). */
__attribute__((weak)) struct stook_range stook_range;
struct stook_node_ranges stook_node_ranges = { .shift = STOOK_NODES_UNCUT };

static struct stook_range_record ranges[STOOK_RANGES_MAX] STOOK_MOSTLY_UNUSED;
static uint32_t ranges_used;                    /* atomic: slots of `ranges` ever claimed */
/* Atomic, relaxed; changed by space_limit.c. The most of a piece; 0: no limit. */
static uintptr_t limit_share;
static uint32_t set_aside;                      /* atomic, relaxed: source.h */
uint32_t stook_space_reaching;
static uintptr_t beside;                        /* const after start: stook_ranges_beside */
/*
 * Huge pages would make much of the map and of metadata resident that is never touched. The advice
 * against them is a system call, and it comes late: no mapping holds a huge page before this much
 * of the map, or of the metadata, can be touched.
 */
#define ADVICE_FROM ((size_t)1 << 20)
/* Const after start: what the advice is for, from the first range's map on. 0: it was given. */
static size_t unadvised;
static bool advice_given;                       /* atomic, relaxed; two threads may both give it */

/*
 * ---- memory behind it, and from which node it comes ----
 * On one node fresh pages are mapped over address space. On several a mapping carries the policy of
 * its node, so it stays, and only its access changes.
 * A policy is set on unused address space, in steps of 1 GiB. With one call for every 2 MiB a
 * process ends at 127 GiB, out of mappings. The policy is a preference: a node that is full is no
 * failure. Where the task has a policy of its own (numactl), that is what its user wants, and no
 * other is set. With STOOK_STRICT_NUMA the layers above follow that policy: each call names the
 * node that it found there. So pages are placed then, too, or they would come from another one.
 * Where the system refuses (a sandbox), pages come from where they are touched first. That is right
 * except for requests for another node.
 * I3 each step that replaces a mapping inside a range sets its policy again.
 */

static bool several, over_policy;       /* const after start */
static uint32_t places;                 /* atomic, relaxed: 1 until the system refuses */

void stook_range_prefer_start(void)
{
        several = stook_os_node_count() > 1;
        places = several && !stook_os_topology_is_fake() &&
                 (over_policy || !stook_os_has_policy());
}

void stook_pages_place_over_policy(bool over)
{
        over_policy = over;
}

void stook_range_prefer_node(uintptr_t start, size_t bytes, unsigned node)
{
        if (__atomic_load_n(&places, __ATOMIC_RELAXED) &&
            !stook_os_prefer_node((void *)start, bytes, node))
                __atomic_store_n(&places, 0, __ATOMIC_RELAXED);
}

bool stook_range_commit(uintptr_t start, size_t bytes)
{
        STOOK_PROBE2(pages_commit, start, bytes);
        return several ? stook_os_enable((void *)start, bytes)
                       : stook_os_commit((void *)start, bytes);
}

/* A fresh mapping: one that had pages never merges with its neighbours. */
bool stook_range_decommit(uintptr_t start, size_t bytes, unsigned node)
{
        if (!stook_os_decommit((void *)start, bytes))
                return false;
        stook_range_prefer_node(start, bytes, node);
        return true;
}

bool stook_range_renew(uintptr_t start, size_t bytes, unsigned node)
{
        bool done = stook_os_commit((void *)start, bytes);

        stook_range_prefer_node(start, bytes, node);
        return done;
}

/* ---- ranges ---- */

static size_t round_up(size_t n, size_t to)
{
        return (n + to - 1) & ~(to - 1);
}

static bool ready(const struct stook_range_record *r)
{
        return __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == STATE_READY;     /* M1 */
}

/* Room in the table for @n ranges; the first of them. STOOK_RANGES_MAX: there is none. */
static uint32_t claim(uint32_t n)
{
        uint32_t i = __atomic_load_n(&ranges_used, __ATOMIC_RELAXED);

        while (i + n <= STOOK_RANGES_MAX)
                if (__atomic_compare_exchange_n(&ranges_used, &i, i + n, true, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED))
                        return i;
        return STOOK_RANGES_MAX;
}

static void publish(struct stook_range_record *r, uintptr_t base, size_t size, uint64_t *entries,
                    unsigned node)
{
        r->base = base;
        r->size = size;
        r->entries = entries;
        r->node = node;
        __atomic_store_n(&r->frontier, round_up(RANGE_SKEW, stook_os_page_bytes()),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&r->state, STATE_READY, __ATOMIC_RELEASE);             /* M1 */
        stook_checker_add_roots((const void *)base, size);
}

/*
 * @parts ranges of @size bytes in one reservation, of nodes[0..parts-1], published in the table;
 * behind them their map, and @more bytes of address space (stook_ranges_beside). NULL: table full,
 * or no address space. The table is claimed last: places that are claimed for ranges which then
 * cannot be had are lost if other threads claim at the same time, and there are few.
 */
static struct stook_range_record *range_add(size_t size, const uint8_t *nodes, uint32_t parts,
                                           size_t more)
{
        size_t page = stook_os_page_bytes(), map = round_up(stook_map_bytes(size * parts), page);
        bool room = __atomic_load_n(&ranges_used, __ATOMIC_RELAXED) + parts <= STOOK_RANGES_MAX;
        size_t bytes = size * parts;
        char *base = room ? stook_os_reserve(bytes + map + more, RANGE_ALIGN) : NULL;
        uint64_t *entries = base ? (uint64_t *)(void *)(base + bytes) : NULL;
        uint32_t i = STOOK_RANGES_MAX;

        /*
         * Locked mappings become resident as soon as they have memory behind them, so nothing is
         * taken ahead of use.
         */
        if (base && !__atomic_load_n(&ranges_used, __ATOMIC_RELAXED) && !limit_share &&
            stook_os_is_locked(base)) {
                limit_share = PIECE_MOST;
                stook_os_unreserve(base, bytes + map + more);
                return NULL;
        }
        if (entries && (parts == 1 || stook_os_show(entries, map)))
                i = claim(parts);
        if (i == STOOK_RANGES_MAX) {
                if (base)
                        stook_os_unreserve(base, bytes + map + more);
                return NULL;
        }
        if (parts == 1 && more)
                unadvised = map + more;
        else
                stook_os_advise(entries, map + more, STOOK_OS_NOHUGEPAGE);
        if (more)
                beside = (uintptr_t)base + bytes + map;
        if (i == 0) {
                stook_range.base = (uintptr_t)base;
                stook_range.entries = entries;
        }
        for (uint32_t part = 0; part < parts; part++)
                publish(&ranges[i + part], (uintptr_t)base + part * size, size,
                        entries + (part * size >> STOOK_MAP_SHIFT), nodes[part]);
        return &ranges[i];
}

/* ---- a range for each node, on several nodes ---- */

/* Those with memory. */
static uint32_t list_nodes(uint8_t nodes[STOOK_NODES_MAX])
{
        uint32_t n = 0;

        for (unsigned node = 0; node < stook_os_node_count(); node++)
                if (stook_os_node_has_memory(node))
                        nodes[n++] = (uint8_t)node;
        return n;
}

/*
 * Never more than a quarter of all addresses. With 47 bits and more that is no bound; RISC-V's Sv39
 * leaves 38 to a program, and so 64 GiB for the range.
 */
static size_t huge_most(size_t wanted)
{
        size_t most = (size_t)(stook_os_address_space() / 4);

        return wanted < most ? wanted : most;
}

/* The huge range, cut into one for each node. False: no such address space. */
static bool add_node_ranges(const uint8_t *nodes, uint32_t n)
{
        size_t size = NODE_RANGE;

        while (huge_most(n * size) < n * size)
                size /= 2;
        for (; size >= HUGE_LEAST && !limit_share; size /= 2) {
                if (!range_add(size, nodes, n, STOOK_RANGES_BESIDE))
                        continue;
                stook_node_ranges.shift = (uint32_t)__builtin_ctzl(size);
                for (uint32_t i = 0; i < n; i++)
                        stook_node_ranges.node[i] = nodes[i];
                __atomic_store_n(&stook_range.bytes, n * size, __ATOMIC_RELEASE);       /* M1 */
                return true;
        }
        return false;
}

/* ---- start ---- */

bool stook_ranges_start(void)
{
        uint64_t limit = stook_os_address_limit_at_start();
        uint8_t nodes[STOOK_NODES_MAX];
        uint32_t n;

        if (limit != UINT64_MAX)
                limit_share = limit / 8 ? limit / 8 : 1;
        stook_range_prefer_start();
        n = list_nodes(nodes);
        stook_node_ranges.node[0] = nodes[0];
        if (!limit_share) {
                if (n > 1 && add_node_ranges(nodes, n))
                        return true;
                for (size_t size = huge_most(HUGE_RANGE);
                     n == 1 && size >= HUGE_LEAST && !limit_share; size /= 2)
                        if (range_add(size, nodes, 1, STOOK_RANGES_BESIDE))
                                return true;
                limit_share = PIECE_MOST;
        }
        for (size_t size = PIECE; size >= PIECE_LEAST; size /= 2)
                if (size <= limit_share && range_add(size, nodes, 1, 0))
                        return true;
        return range_add(PIECE_LEAST, nodes, 1, 0) != NULL;
}

uintptr_t stook_ranges_beside(void)
{
        return beside;
}

void stook_ranges_grown(size_t reach)
{
        if (reach < ADVICE_FROM || !unadvised ||
            __atomic_load_n(&advice_given, __ATOMIC_RELAXED))
                return;
        __atomic_store_n(&advice_given, true, __ATOMIC_RELAXED);
        stook_os_advise(ranges[0].entries, unadvised, STOOK_OS_NOHUGEPAGE);
}

bool stook_ranges_limited(void)
{
        return __atomic_load_n(&limit_share, __ATOMIC_RELAXED) != 0;
}

void stook_ranges_limit(size_t share, bool aside)
{
        __atomic_store_n(&limit_share, share && share < PIECE_LEAST ? PIECE_LEAST : share,
                         __ATOMIC_RELAXED);
        __atomic_store_n(&set_aside, aside, __ATOMIC_RELAXED);
}

/*
 * Makes the map of [0, end) of a range writable, then says so. Several threads may do it at once.
 */
static bool map_reach(struct stook_range_record *r, uintptr_t end)
{
        uintptr_t have = __atomic_load_n(&r->bytes, __ATOMIC_ACQUIRE), want;
        size_t page = stook_os_page_bytes(), from, to;

        if (end <= have)
                return true;
        from = stook_map_bytes(have) & ~(page - 1);
        to = round_up(stook_map_bytes(end), MAP_STEP > page ? MAP_STEP : page);
        if (to > round_up(stook_map_bytes(r->size), page))
                to = round_up(stook_map_bytes(r->size), page);
        stook_ranges_grown(to);
        if (!stook_os_enable((char *)r->entries + from, to - from))
                return false;
        want = (uintptr_t)to / 8 << STOOK_MAP_SHIFT;
        if (want > r->size)
                want = r->size;
        while (have < want)
                if (__atomic_compare_exchange_n(&r->bytes, &have, want, true, __ATOMIC_RELEASE,
                                                __ATOMIC_ACQUIRE))
                        break;
        if (r == &ranges[0] && stook_node_ranges.shift == STOOK_NODES_UNCUT) {
                uintptr_t fast = __atomic_load_n(&stook_range.bytes, __ATOMIC_RELAXED);

                while (fast < want)
                        if (__atomic_compare_exchange_n(&stook_range.bytes, &fast, want, true,
                                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
                                break;
        }
        return true;
}

/*
 * Sets the policy of the address space up to @end. Two threads at once set the same.
 */
static void place_reach(struct stook_range_record *r, uintptr_t end)
{
        uintptr_t have = __atomic_load_n(&r->placed, __ATOMIC_RELAXED), want;

        if (end <= have)
                return;
        want = end + PLACE_STEP - 1 < r->size ? (end + PLACE_STEP - 1) & ~(PLACE_STEP - 1)
                                              : r->size;
        stook_range_prefer_node(r->base + have, want - have, r->node);
        while (have < want)
                if (__atomic_compare_exchange_n(&r->placed, &have, want, true, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED))
                        break;
}

STOOK_INLINE uintptr_t bump_in(struct stook_range_record *r, size_t bytes, size_t align,
                               uintptr_t *gap, size_t *gap_bytes)
{
        uintptr_t at = __atomic_load_n(&r->frontier, __ATOMIC_ACQUIRE), start, end;

        do {
                start = ((r->base + at + align - 1) & ~(uintptr_t)(align - 1)) - r->base;
                end = start + bytes;
                if (start < at || end < start || end > __atomic_load_n(&r->size, __ATOMIC_RELAXED))
                        return 0;
                if (!map_reach(r, end))
                        return 0;
                place_reach(r, end);
        } while (!__atomic_compare_exchange_n(&r->frontier, &at, end, true, __ATOMIC_ACQUIRE,
                                              __ATOMIC_ACQUIRE));
        *gap = r->base + at;
        *gap_bytes = start - at;
        return r->base + start;
}

static uintptr_t bump(struct stook_range_record *r, size_t bytes, size_t align, uintptr_t *gap,
                      size_t *gap_bytes)
{
        uintptr_t got;

        stook_space_begin();
        got = bump_in(r, bytes, align, gap, gap_bytes);
        stook_space_end();
        return got;
}

/* The range that was reserved ahead of use, while it must not be used further. */
static bool is_aside(const struct stook_range_record *r)
{
        return __atomic_load_n(&set_aside, __ATOMIC_RELAXED) && beside &&
               (r == &ranges[0] || (stook_node_ranges.shift != STOOK_NODES_UNCUT &&
                                    r->base - ranges[0].base <
                                            __atomic_load_n(&stook_range.bytes, __ATOMIC_RELAXED)));
}

uintptr_t stook_range_bump(unsigned node, size_t bytes, size_t align, uintptr_t *gap,
                           size_t *gap_bytes)
{
        uint32_t used = __atomic_load_n(&ranges_used, __ATOMIC_RELAXED);
        uint8_t nodes[1] = { (uint8_t)node };
        uintptr_t got;
        size_t size, share;

        /* The newest first: the older ones are used up. */
        for (uint32_t i = used; i-- > 0;)
                if (ready(&ranges[i]) && ranges[i].node == node && !is_aside(&ranges[i]) &&
                    (got = bump(&ranges[i], bytes, align, gap, gap_bytes)))
                        return got;

        /* A new piece: twice as large each time, but not far ahead of use. */
        size = PIECE;
        for (uint32_t i = 1; i < used && size < PIECE_MOST; i++)
                if (ready(&ranges[i]) && ranges[i].node == node)
                        size *= 2;
        share = __atomic_load_n(&limit_share, __ATOMIC_RELAXED);
        if (share && size > share)
                size = share & ~(RANGE_ALIGN - 1);
        for (;;) {
                size_t skew = round_up(RANGE_SKEW, align < RANGE_ALIGN ? align : RANGE_ALIGN);
                size_t least = round_up(bytes + skew + (align > RANGE_ALIGN ? align : 0),
                                        RANGE_ALIGN);
                struct stook_range_record *r;

                if (least < bytes)
                        return 0;
                if (size < least)
                        size = least;
                r = range_add(size, nodes, 1, 0);
                if (r)
                        return bump(r, bytes, align, gap, gap_bytes);
                if (size == least)
                        return 0;
                size /= 2;
                size &= ~(RANGE_ALIGN - 1);
        }
}

struct stook_range_record *stook_range_of(uintptr_t addr)
{
        uint32_t used = __atomic_load_n(&ranges_used, __ATOMIC_RELAXED);

        for (uint32_t i = used; i-- > 0;)
                if (ready(&ranges[i]) &&
                    addr - ranges[i].base < __atomic_load_n(&ranges[i].size, __ATOMIC_RELAXED))
                        return &ranges[i];
        return NULL;
}

bool stook_range_frontier_is(uintptr_t addr)
{
        struct stook_range_record *r = stook_range_of(addr);

        return r && addr == r->base + __atomic_load_n(&r->frontier, __ATOMIC_RELAXED);
}

uintptr_t stook_range_frontier(unsigned node)
{
        for (uint32_t i = __atomic_load_n(&ranges_used, __ATOMIC_RELAXED); i-- > 0;)
                if (ready(&ranges[i]) && ranges[i].node == node)
                        return ranges[i].base +
                               __atomic_load_n(&ranges[i].frontier, __ATOMIC_RELAXED);
        return 0;
}

unsigned stook_ranges_count(void)
{
        unsigned n = 0;

        for (uint32_t i = 0; i < __atomic_load_n(&ranges_used, __ATOMIC_RELAXED); i++)
                n += ready(&ranges[i]);
        return n;
}

size_t stook_ranges_reserved(void)
{
        size_t n = 0;

        for (uint32_t i = 0; i < __atomic_load_n(&ranges_used, __ATOMIC_RELAXED); i++)
                if (ready(&ranges[i]))
                        n += ranges[i].size;
        return n;
}

/* ---- the pagemap beyond its fast case: pagemap.h ---- */

_Static_assert(STOOK_SLAB_MAP_PAGES_MAX - 1 == STOOK_ENTRY_PAGE_MASK, "page number of an entry");
_Static_assert(_Alignof(struct stook_span) == 128,
               "the page number lies in the low bits of the descriptor's address");

static uint64_t *entry_of(uintptr_t addr)
{
        uintptr_t off = addr - stook_range.base;
        struct stook_range_record *r;

        if (STOOK_LIKELY(off < __atomic_load_n(&stook_range.bytes, __ATOMIC_RELAXED)))
                return &stook_range.entries[off >> STOOK_MAP_SHIFT];
        r = stook_range_of(addr);
        if (!r || addr - r->base >= __atomic_load_n(&r->bytes, __ATOMIC_ACQUIRE))
                return NULL;
        return &r->entries[(addr - r->base) >> STOOK_MAP_SHIFT];
}

uint64_t stook_pagemap_lookup_piece(uintptr_t addr)
{
        uint64_t *e = entry_of(addr);

        return e ? __atomic_load_n(e, __ATOMIC_RELAXED) : 0;
}

unsigned stook_address_node_of_piece(uintptr_t addr)
{
        struct stook_range_record *r = stook_range_of(addr);

        return r ? r->node : 0;
}

bool stook_pagemap_ours(uintptr_t addr)
{
        return stook_range_of(addr) != NULL;
}

void stook_pagemap_set(uintptr_t addr, uint64_t entry)
{
        uint64_t *e = entry_of(addr);

        if (e)
                __atomic_store_n(e, entry, __ATOMIC_RELEASE);
}

void stook_pagemap_prepare(uintptr_t start, size_t bytes)
{
        uintptr_t page = stook_os_page_bytes(), from, to;
        uint64_t *first = entry_of(start), *last = entry_of(start + bytes - STOOK_MAP_PAGE);

        if (!first || !last)
                return;
        from = (uintptr_t)first & ~(page - 1);
        to = (uintptr_t)(last + 1);
        stook_os_advise((void *)from, (to - from + page - 1) & ~(page - 1), STOOK_OS_POPULATE);
}

void stook_pagemap_set_slab(struct stook_span *span, unsigned cache_index)
{
        uint64_t *e = entry_of(span->start);
        uint64_t entry = stook_entry_of_slab(cache_index, span, span->start);

        for (size_t i = 0; i < span->bytes >> STOOK_MAP_SHIFT; i++)
                __atomic_store_n(&e[i], entry, __ATOMIC_RELEASE);
}

void stook_pagemap_clear_slab(struct stook_span *span)
{
        uint64_t *e = entry_of(span->start);

        for (size_t i = 0; i < span->bytes >> STOOK_MAP_SHIFT; i++)
                __atomic_store_n(&e[i], 0, __ATOMIC_RELEASE);
}
