/*
 * Purpose: huge pages, see advice.h.
 */
#include "base/inject.h"
#include "base/thread.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"
#include "policy/constants.h"
#include "process/checker.h"

#define MAP_RANGE  ((size_t)1 << 40)    /* the largest range; what lies beyond has small pages */
#define DEAR_MS    (10 * STOOK_DECAY_MS)       /* until one is tried again */
#define SMALL_FAULTS 32                 /* timed together: a 16th of what a huge page saves */

enum stook_thp stook_pages_thp = STOOK_THP_AUTO;

struct map {
        uint64_t word[MAP_RANGE / STOOK_HUGE_PAGE / 64];
};

static struct map advised STOOK_MOSTLY_UNUSED;  /* huge pages are asked for */
static struct map for_slabs STOOK_MOSTLY_UNUSED;        /* the node grew by them for slabs */
static struct map parted STOOK_MOSTLY_UNUSED;   /* STOOK_MAPPINGS_BREAK are booked for it */
static uint32_t refused;                /* atomic, relaxed: 1: the system has no huge pages */

void stook_pages_set_thp(enum stook_thp policy)
{
        stook_pages_thp = policy;
}

/* ---- mappings ---- */

static uint32_t booked;                 /* atomic, relaxed: I1 */

bool stook_mappings_book(unsigned mappings)
{
        if (__atomic_add_fetch(&booked, mappings, __ATOMIC_RELAXED) <= STOOK_MAPPINGS_MOST)
                return true;
        stook_mappings_unbook(mappings);
        return false;
}

void stook_mappings_unbook(unsigned mappings)
{
        __atomic_fetch_sub(&booked, mappings, __ATOMIC_RELAXED);
}

/* ---- the map ---- */

static uintptr_t down(uintptr_t addr)
{
        return addr & ~(uintptr_t)(STOOK_HUGE_PAGE - 1);
}

static uintptr_t up(uintptr_t addr)
{
        return down(addr + STOOK_HUGE_PAGE - 1);
}

/* The word of an address's bit; NULL: there is none. */
static uint64_t *word_of(struct map *map, uintptr_t addr, uint64_t *bit)
{
        size_t n = (addr - stook_range.base) / STOOK_HUGE_PAGE;

        *bit = UINT64_C(1) << n % 64;
        return n < MAP_RANGE / STOOK_HUGE_PAGE ? &map->word[n / 64] : NULL;
}

static bool is_set(struct map *map, uintptr_t addr)
{
        uint64_t bit, *word = word_of(map, addr, &bit);

        return word && __atomic_load_n(word, __ATOMIC_RELAXED) & bit;
}

/* True: this thread changed it. */
static bool set(struct map *map, uintptr_t addr)
{
        uint64_t bit, *word = word_of(map, addr, &bit);

        return word && !(__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit);
}

static bool clear(struct map *map, uintptr_t addr)
{
        uint64_t bit, *word = word_of(map, addr, &bit);

        return word && __atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED) & bit;
}

bool stook_huge_is_advised(uintptr_t addr)
{
        return is_set(&advised, addr);
}

/* There is a bit for it, and it is not set. What lies beyond the map is not asked for again. */
static bool is_small(uintptr_t addr)
{
        uint64_t bit, *word = word_of(&advised, addr, &bit);

        return word && !(__atomic_load_n(word, __ATOMIC_RELAXED) & bit);
}

/* False: refused. Nothing is marked, in any case. */
static bool ask(uintptr_t start, uintptr_t end)
{
        bool done = stook_os_advise((void *)start, end - start, STOOK_OS_HUGEPAGE);

        __atomic_store_n(done ? &stook_huge_asked : &refused, 1, __ATOMIC_RELAXED);
        return done;
}

static void advise(uintptr_t start, uintptr_t end)
{
        if (!ask(start, end))
                return;
        for (; start < end; start += STOOK_HUGE_PAGE)
                set(&advised, start);
}

/* ---- what a huge fault costs ---- */

uint32_t stook_huge_dear;
static uint64_t small_ns;               /* atomic, relaxed: of as many small faults; 0: not known */
static uint32_t dear_ms;                /* atomic, relaxed: when the last of them was */

/*
 * The last section of this thread. The kernel forgets it when it takes the CPU away, or delivers a
 * signal. 0: that happened, or there are no sections.
 */
static uint64_t last_section(void)
{
        return stook_self->rseq ? *(volatile uint64_t *)(stook_self->rseq + STOOK_RSEQ_CS) : 0;
}

/*
 * Of the first words of @pages fresh pages. Their content stays: zeros. 0: not known, because the
 * thread may not have run all the time.
 */
static uint64_t fault_ns(uintptr_t start, unsigned pages)
{
        uint64_t (*said)(unsigned) = STOOK_INJECT_GET(fault_ns);
        uint64_t section = last_section(), ns = stook_os_clock_ns();

        for (unsigned i = 0; i < pages; i++)
                *(volatile uint64_t *)(start + i * stook_os_page_bytes()) = 0;
        ns = stook_os_clock_ns() - ns;
        return said ? said(pages) : section && last_section() == section ? ns : 0;
}

/* In a mapping for this: elsewhere small pages would be in the way of a huge one. 0: not known. */
static uint64_t find_small_ns(void)
{
        size_t page = stook_os_page_bytes(), bytes = SMALL_FAULTS * page;
        uintptr_t start = (uintptr_t)stook_os_zeroed(bytes);
        uint64_t ns = 0;

        if (start) {
                ns = fault_ns(start, SMALL_FAULTS) * (STOOK_HUGE_PAGE / page) / SMALL_FAULTS;
                stook_os_unreserve((void *)start, bytes);
        }
        return ns;
}

/*
 * The first touch of a huge page that was just asked for. In a virtual machine whose host has no
 * memory behind it yet, it may take longer than all small faults that it saves. Relaxed: of two
 * threads' faults at once one may not be counted.
 */
static void time_fault(uintptr_t start)
{
        uint64_t huge, small = __atomic_load_n(&small_ns, __ATOMIC_RELAXED);
        uint32_t n;

        if (stook_pages_thp != STOOK_THP_AUTO || stook_checker_is_on())
                return;
        huge = fault_ns(start, 1);
        if (!small)
                __atomic_store_n(&small_ns, small = find_small_ns(), __ATOMIC_RELAXED);
        if (!huge || !small)
                return;
        STOOK_INJECT_COUNT(faults_timed);
        n = __atomic_load_n(&stook_huge_dear, __ATOMIC_RELAXED);
        if (huge <= small) {
                n -= n > 0;
        } else if (n < STOOK_HUGE_DEAR) {
                __atomic_store_n(&dear_ms, (uint32_t)stook_os_clock_ms(), __ATOMIC_RELAXED);
                n++;
        }
        __atomic_store_n(&stook_huge_dear, n, __ATOMIC_RELAXED);
}

/*
 * In a forked child as in its parent. After DEAR_MS it takes one dear fault to be so
 * again.
 */
static STOOK_NOINLINE bool is_still_dear(void)
{
        if ((uint32_t)stook_os_clock_ms() - __atomic_load_n(&dear_ms, __ATOMIC_RELAXED) <
            DEAR_MS)
                return true;
        __atomic_store_n(&small_ns, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&stook_huge_dear, STOOK_HUGE_DEAR - 1, __ATOMIC_RELAXED);
        return false;
}

static bool is_dear(void)
{
        return __atomic_load_n(&stook_huge_dear, __ATOMIC_RELAXED) == STOOK_HUGE_DEAR &&
               is_still_dear();
}

/* ---- what is asked for ---- */

static bool is_refused(void)
{
        return __atomic_load_n(&refused, __ATOMIC_RELAXED);
}

static bool is_auto(void)
{
        return stook_pages_thp == STOOK_THP_AUTO && !stook_ranges_limited() && !is_refused() &&
               !is_dear();
}

static bool is_known(const struct stook_pages_node *node, enum stook_density_kind kind)
{
        return stook_density_found(&node->ledger.density[kind]) != STOOK_DENSITY_UNKNOWN;
}

bool stook_huge_is_for_slabs(uintptr_t addr)
{
        return stook_huge_any() && is_set(&for_slabs, addr);
}

/* As far as known: growth for slabs asks for huge pages. */
static bool slabs_are_huge(const struct stook_pages_node *node)
{
        return stook_huge_is_large(&node->ledger, STOOK_DENSITY_SMALL) &&
               stook_density_found(&node->ledger.density[STOOK_DENSITY_SMALL]) == STOOK_DENSE &&
               is_auto();
}

unsigned stook_huge_sets(const struct stook_pages_node *node, size_t bytes)
{
        unsigned dirty = 1 << STOOK_SET_DIRTY, huge = 1 << STOOK_SET_HUGE,
                 clean = 1 << STOOK_SET_CLEAN;

        if (bytes >= STOOK_SLABS_MOST || !stook_huge_any())
                return dirty | clean;
        return dirty | huge | (slabs_are_huge(node) ? 0 : clean);
}

bool stook_huge_wanted(struct stook_pages_node *node, size_t bytes)
{
        return stook_pages_thp == STOOK_THP_ALWAYS ||
               (stook_huge_pays(&node->ledger, bytes) && is_auto());
}

bool stook_huge_may_be_wanted(const struct stook_pages_node *node, size_t bytes)
{
        return is_auto() && stook_density_kind_of(bytes) == STOOK_DENSITY_LARGE &&
               !is_known(node, STOOK_DENSITY_LARGE);
}

void stook_huge_grown(struct stook_pages_node *node, size_t need, size_t request, uintptr_t start,
                      size_t bytes, bool huge)
{
        if (stook_pages_thp == STOOK_THP_NEVER)
                stook_os_advise((void *)start, bytes, STOOK_OS_NOHUGEPAGE);
        stook_huge_tell_grown(&node->ledger, need, request, start, bytes, huge);
        if (!huge)
                return;
        if (start % STOOK_HUGE_PAGE == 0 && bytes % STOOK_HUGE_PAGE == 0) {
                advise(start, start + bytes);
                if (request < STOOK_SLABS_MOST && stook_pages_thp == STOOK_THP_AUTO)
                        for (uintptr_t at = start; at < start + bytes; at += STOOK_HUGE_PAGE)
                                set(&for_slabs, at);
                time_fault(start);
        } else {
                stook_os_advise((void *)start, bytes, STOOK_OS_HUGEPAGE);
        }
}

bool stook_huge_own_wanted(struct stook_pages_node *node, uintptr_t start, size_t have, size_t more)
{
        if (stook_pages_thp == STOOK_THP_ALWAYS)
                return true;
        if (!is_auto() || more < STOOK_HUGE_PAGE)
                return false;
        return have ? stook_density_is_dense(start, have)
                    : stook_density_found(&node->ledger.density[STOOK_DENSITY_LARGE]) ==
                              STOOK_DENSE;
}

/* ---- what a purge breaks ---- */

/* Mappings for a huge page whose advice is not that of those around it. False: refused. */
static bool part(uintptr_t addr)
{
        if (is_set(&parted, addr))
                return true;
        if (!stook_mappings_book(STOOK_MAPPINGS_BREAK))
                return false;
        if (!set(&parted, addr))                        /* another thread was faster */
                stook_mappings_unbook(STOOK_MAPPINGS_BREAK);
        return true;
}

static void join(uintptr_t addr)
{
        if (clear(&parted, addr))
                stook_mappings_unbook(STOOK_MAPPINGS_BREAK);
}

/* A part of the huge page at @addr is purged. */
static void break_one(uintptr_t addr)
{
        if (!stook_huge_is_advised(addr) || !part(addr))
                return;
        clear(&advised, addr);
        stook_os_advise((void *)addr, STOOK_HUGE_PAGE, STOOK_OS_NOHUGEPAGE);
}

static uint32_t count_small(uintptr_t start, uintptr_t end)
{
        uint32_t n = 0;

        for (; start < end; start += STOOK_HUGE_PAGE)
                n += is_small(start);
        return n;
}

/* A huge page of these, or one beside them, is advised. */
static bool is_beside(uintptr_t start, uintptr_t end)
{
        for (uintptr_t at = start - STOOK_HUGE_PAGE; at <= end; at += STOOK_HUGE_PAGE)
                if (stook_huge_is_advised(at))
                        return true;
        return false;
}

/*
 * Those that were broken, or were small, come back huge. Beside a huge page they become a part of
 * that one's mapping. Elsewhere they part one, all together, and the first is booked for it. That
 * is so, too, if it was broken before: it may have been small among small ones before that. One
 * that is advised already stays booked, if it is.
 */
static void make_whole(uintptr_t start, uintptr_t end)
{
        bool beside = is_beside(start, end);

        if ((!beside && !part(start)) || !ask(start, end))
                return;
        for (uintptr_t at = start; at < end; at += STOOK_HUGE_PAGE)
                if (set(&advised, at) && (beside || at != start))
                        join(at);
}

void stook_huge_purge(struct stook_pages_node *node, uintptr_t start, size_t bytes)
{
        uintptr_t end = start + bytes, first = up(start), last = down(end);

        for (unsigned kind = 0; kind < STOOK_DENSITY_KINDS; kind++)
                stook_density_forget(&node->ledger.density[kind], start, bytes);
        if (stook_pages_thp != STOOK_THP_AUTO && stook_pages_thp != STOOK_THP_ALWAYS)
                return;
        if (start < first)
                break_one(down(start));
        if (last < end && (last >= first || last > start))
                break_one(last);
}

/* Also where all bits are set: other memory may have been mapped there since. */
void stook_huge_ask(uintptr_t start, size_t bytes)
{
        if (stook_pages_thp != STOOK_THP_NEVER)
                make_whole(start, start + bytes);
}

/*
 * Where the huge pages of @span end. Its last one is huge, too, where what lies behind @span is a
 * STOOK_PART of it at most, and has memory: the next large object begins there.
 */
static uintptr_t huge_end(const struct stook_span *span)
{
        uintptr_t end = span->start + span->bytes, last = up(end);

        return last - end <= span->bytes / STOOK_PART &&
               last <= stook_range_frontier(span->node) ? last : down(end);
}

/*
 * The first large object of a process comes before any was looked at; its memory would be small for
 * as long as it is reused. If it is not written after all, that is found when the next one comes.
 */
void stook_span_fresh_will_be_written(const struct stook_span *span)
{
        struct stook_pages_node *node = &stook_pages_nodes[span->node];
        uintptr_t start = up(span->start), end = huge_end(span);

        if (is_auto() && start < end && !span->own_mapping && !span->use.guarded &&
            stook_huge_is_large(&node->ledger, STOOK_DENSITY_LARGE) &&
            !is_known(node, STOOK_DENSITY_LARGE) &&
            count_small(start, end)) {
                make_whole(start, end);
                time_fault(start);
        }
}

/* ---- what is taken again ---- */

bool stook_huge_may_come_again(const struct stook_pages_node *node, size_t request,
                               uintptr_t start, uintptr_t end)
{
        return !is_refused() &&
               (stook_pages_thp == STOOK_THP_ALWAYS ||
                (is_auto() && stook_huge_regrows(&node->ledger, stook_density_kind_of(request)))) &&
               count_small(start, end);
}

void stook_huge_taken_again(struct stook_pages_node *node, size_t request, uintptr_t start,
                            uintptr_t end)
{
        enum stook_density_kind kind = stook_density_kind_of(request);
        bool wanted = stook_pages_thp == STOOK_THP_ALWAYS ||
                      stook_huge_pays_again(&node->ledger, kind);

        stook_huge_tell(&node->ledger, kind, start, end - start, wanted);
        if (!wanted)
                return;
        stook_os_purge((void *)start, end - start);
        for (; start < end; start += STOOK_HUGE_PAGE)
                if (is_small(start))
                        make_whole(start, start + STOOK_HUGE_PAGE);
}

/*
 * What was purged in parts comes back in small pages, though all of a huge page lies free by then.
 * So a take that begins such a huge page asks for it again. A spike that comes a second time then
 * has few faults. As growth does (span_grow.c), a take has more in hands than it needs for a
 * moment: up to the end of the last huge page that it begins. These are purged once more, as a
 * whole, and are asked for; then the rest goes to the bins. The purge finds no page, but page
 * tables: where one is left, the system makes no huge page. It lets them go if a purge covers all
 * of a huge page (Linux 6.14, x86-64). Before that, memory that was in small pages comes back in
 * small ones. Only the owner may purge, because what another thread takes there has content. So the
 * huge pages are in hands meanwhile, and no lock is held. Without a descriptor for the rest all of
 * it goes back to the bins; nothing is taken.
 */
bool stook_pages_begins_huge(const struct stook_pages_node *node, const struct stook_span *span,
                             size_t bytes, struct stook_pages_again *again)
{
        uintptr_t mask = STOOK_HUGE_PAGE - 1, most = (span->start + span->bytes) & ~mask;
        uintptr_t end = (span->start + bytes + mask) & ~mask;

        again->start = (span->start + mask) & ~mask;
        again->end = end < most ? end : most;
        if (span->state != STOOK_SPAN_PURGED || again->start >= again->end ||
            !stook_huge_may_come_again(node, bytes, again->start, again->end))
                again->start = again->end = 0;
        return again->end;
}

void stook_pages_begin_huge(struct stook_pages_node *node, struct stook_span *span, size_t bytes,
                            const struct stook_pages_again *again, struct stook_span **spare)
{
        size_t held = again->end - span->start;

        held = held > bytes ? held : bytes;
        stook_pages_remove(node, span);
        if (span->bytes > held)
                stook_pages_insert(node, stook_pages_split(span, held, spare));
}

struct stook_span *stook_pages_ask_again(struct stook_pages_node *node, struct stook_span *span,
                                         size_t bytes, const struct stook_pages_again *again,
                                         struct stook_span **spare)
{
        stook_huge_taken_again(node, bytes, again->start, again->end);
        if (span->bytes == bytes)
                return span;
        if (!*spare && !(*spare = stook_meta_span_new())) {
                stook_pages_insert_or_pend(node, span);
                return NULL;
        }
        stook_pages_insert_or_pend(node, stook_pages_split(span, bytes, spare));
        return span;
}
