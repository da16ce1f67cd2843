/*
 * Purpose: spans between two pages without access, so that a program that writes beyond either end
 * stops at that instruction. A span with guards is cut out of a larger one:
 *
 *      front (one page, or the alignment)      the span       behind (one page)
 *      its last page without access                           without access
 *
 * All three are taken spans with descriptors of their own. So lookups, statistics and readers
 * outside find the span as any other.
 * Place: called by malloc for large objects; calls pages for the larger span.
 * Invariants:
 *  I1 the cut is complete before a page loses its access. So a child of a fork that does not have
 *     this thread never finds such a page in a free span.
 *  I2 pages that do not get their access back are never given: the spans stay taken for ever.
 *  I3 each span with guards is booked in the bound of mappings (pages/advice.h): at most 8192 at a
 *     time, and fewer while huge pages are parted.
 *  I4 a span that was an object is closed, too, and waits in a ring until others follow it. So what
 *     comes late stops at that instruction, or is no live object's. A closed span is a taken one
 *     that no other list knows; it is opened again before it is given.
 * A span with a mapping of its own (above 32 MiB) is not cut. It gets one page of reserved address
 * space behind it, which has no access either; what lies before it is not known.
 * Concurrency: the spans are the caller's. A place of the ring changes by exchange, so a span that
 *  leaves it is one thread's.
 * Failure: beyond I3, or where the system refuses, the span has no guards and serves as well. That
 *  is counted, and said once.
 */
#include "base/lock.h"
#include "harden/harden.h"
#include "os/os.h"
#include "pages/advice.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/span.h"

uint64_t stook_guarded_count;
static uint64_t refused;                /* atomic: pages that are no guards and should be */

static STOOK_COLD void count_refused(void)
{
        static const char words[] = "stook: no more guard pages (vm.max_map_count); "
                                    "further large objects may have none\n";

        if (!__atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED))
                stook_os_write(words, sizeof(words) - 1);
}

uint64_t stook_guards_refused(void)
{
        return __atomic_load_n(&refused, __ATOMIC_RELAXED);
}

/* The last page of the span before, or the first of the span behind. */
static void close_page(uintptr_t page)
{
        if (!stook_os_close((void *)page, stook_os_page_bytes()))
                count_refused();
}

/* ---- spans that were objects ---- */

/*
 * Spans that wait, and what of one keeps its memory meanwhile: more is purged, so that at most 4
 * MiB are resident for nothing. Both arbitrary.
 */
#define CLOSED_MOST  16
#define SAMPLES_MOST 128                /* guarded samples: all of them are purged */
#define DEBUG_MOST   4096               /* of Z=guard: what is known of one is in its first page */
#define CLOSED_BYTES ((size_t)256 << 10)

static struct stook_span *debug_places[DEBUG_MOST] STOOK_MOSTLY_UNUSED;

static struct ring {
        uint32_t count, next;           /* places; atomic, relaxed */
        struct stook_span **places;     /* atomic */
} rings[] = {
        [STOOK_GUARDED_HARDEN] = { CLOSED_MOST, 0, (struct stook_span *[CLOSED_MOST]){ NULL } },
        [STOOK_GUARDED_SAMPLE] = { SAMPLES_MOST, 0, (struct stook_span *[SAMPLES_MOST]){ NULL } },
        [STOOK_GUARDED_DEBUG] = { DEBUG_MOST, 0, debug_places },
};

static const struct stook_span *closed_at(const struct ring *ring, uintptr_t address)
{
        for (unsigned i = 0; i < ring->count; i++) {
                const struct stook_span *span = __atomic_load_n(&ring->places[i],
                                                                __ATOMIC_ACQUIRE);

                if (span && address - span->start < span->bytes)
                        return span;
        }
        return NULL;
}

const struct stook_span *stook_guard_closed_at(uintptr_t address)
{
        const struct stook_span *span = NULL;

        for (unsigned r = STOOK_GUARDED_HARDEN; !span && r < STOOK_GUARDED_END; r++)
                span = closed_at(&rings[r], address);
        return span;
}

/* The span that has waited longest; NULL: there was none. */
static struct stook_span *put_closed(struct ring *ring, struct stook_span *span)
{
        uint32_t at = __atomic_fetch_add(&ring->next, 1, __ATOMIC_RELAXED) % ring->count;

        return __atomic_exchange_n(&ring->places[at], span, __ATOMIC_ACQ_REL);
}

static bool close_span(struct stook_span *span)
{
        size_t page = stook_os_page_bytes();

        /* The last page stays, or the first: debug modes have there what is known of the object. */
        if (span->use.guarded == STOOK_GUARDED_SAMPLE)
                stook_os_purge((void *)span->start, span->bytes);
        else if (span->use.guarded == STOOK_GUARDED_DEBUG && span->bytes > page)
                stook_os_purge((void *)(span->start + page), span->bytes - page);
        else if (span->bytes > CLOSED_BYTES)
                stook_os_purge((void *)span->start, span->bytes - page);
        span->state = STOOK_SPAN_DIRTY;
        return stook_os_close((void *)span->start, span->bytes);
}

/* A span that may be closed, and its guards: all get their access back by one call. False: I2. */
static bool give_with_guards(struct stook_span *span)
{
        size_t page = stook_os_page_bytes();
        struct stook_span *front, *behind;

        if (!stook_os_open((void *)(span->start - page), span->bytes + 2 * page))
                return false;
        front = stook_entry_span(stook_pagemap_get(span->start - STOOK_MAP_PAGE));
        behind = stook_entry_span(stook_pagemap_get(span->start + span->bytes));
        stook_span_give(front);
        stook_span_give(behind);
        stook_span_give(span);
        stook_mappings_unbook(STOOK_MAPPINGS_GUARDED);
        return true;
}

/* False: none waits. */
static bool let_one_go(void)
{
        for (unsigned r = STOOK_GUARDED_HARDEN; r < STOOK_GUARDED_END; r++)
                for (unsigned i = 0; i < rings[r].count; i++) {
                        struct stook_span *span = put_closed(&rings[r], NULL);

                        if (span && give_with_guards(span))
                                return true;
                }
        return false;
}

void stook_guards_open_all(void)
{
        while (let_one_go())
                ;
}

/* ---- takes and gives ---- */

/* False: as many as there may be have guards, or wait. */
static bool book(void)
{
        return stook_mappings_book(STOOK_MAPPINGS_GUARDED) ||
               (let_one_go() && stook_mappings_book(STOOK_MAPPINGS_GUARDED));
}

/* NULL: no memory. */
static struct stook_span *take_cut(unsigned node, size_t lead, size_t bytes, size_t align)
{
        size_t page = stook_os_page_bytes();
        struct stook_span *spares[2] = { stook_meta_span_new(), stook_meta_span_new() };
        struct stook_span *span = NULL;

        if (spares[0] && spares[1])
                span = stook_span_take(node, lead + bytes + page, align);
        if (span) {
                stook_lock_forbid_waits();      /* this thread owns three spans */
                span = stook_span_cut(span, lead, spares[0]);
                stook_span_cut(span, bytes, spares[1]);
                spares[0] = spares[1] = NULL;
                span->use.guarded = STOOK_GUARDED_HARDEN;
                close_page(span->start - page);
                close_page(span->start + bytes);
                stook_lock_allow_waits();
        }
        for (unsigned i = 0; i < 2; i++)
                if (spares[i])
                        stook_meta_span_free(spares[i]);
        return span;
}

struct stook_span *stook_span_take_guarded(unsigned node, size_t bytes, size_t align)
{
        size_t page = stook_os_page_bytes(), lead = align > page ? align : page;
        struct stook_span *span;

        if (!bytes || bytes > PTRDIFF_MAX - lead - 2 * page)
                return NULL;
        bytes = (bytes + page - 1) & ~(page - 1);
        if (lead + bytes + page > STOOK_SPAN_OWN_MAPPING)
                return stook_span_take_own(node, bytes, lead, page);
        if (!book()) {
                count_refused();
                return stook_span_take(node, bytes, align);
        }
        span = take_cut(node, lead, bytes, align);
        if (span)
                __atomic_fetch_add(&stook_guarded_count, 1, __ATOMIC_RELAXED);
        else
                stook_mappings_unbook(STOOK_MAPPINGS_GUARDED);
        return span;
}

void stook_span_give_guarded(struct stook_span *span)
{
        if (!span->use.guarded) {
                stook_span_give(span);
                return;
        }
        __atomic_fetch_sub(&stook_guarded_count, 1, __ATOMIC_RELAXED);
        if (close_span(span))
                span = put_closed(&rings[span->use.guarded], span);
        if (span)
                give_with_guards(span);
}
