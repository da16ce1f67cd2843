/*
 * Purpose: fresh memory for the bins: address space from a range's frontier (or address space that
 * became free again), with pages behind it. No lock is held over the system call. It works without
 * the lock, too.
 * Invariant: I1 memory taken ahead of use is at most an eighth of what is in use, or GROW_LEAST, or
 *  what a huge page has left. Untouched it costs nothing, but mlockall would make it
 *  resident.
 * Failure: NULL; address space that got no memory is kept as reserved spans.
 */
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"

#define GROW_LEAST ((size_t)256 << 10)
#define GROW_MOST  ((size_t)32 << 20)
/*
 * From here on the pagemap of what is got is made resident by one call: it is a 512th, and each of
 * its pages would be a fault of its own, of 3 us, when a span begins or ends there.
 */
#define MAP_AHEAD  ((size_t)4 << 20)

static struct stook_span *describe(struct stook_pages_node *node, uintptr_t start, size_t bytes,
                                   enum stook_span_state state, struct stook_span **spare)
{
        struct stook_span *span = *spare;

        *spare = NULL;
        span->start = start;
        span->bytes = bytes;
        span->state = (uint8_t)state;
        stook_span_set_node(span, (uint8_t)(node - stook_pages_nodes));
        __atomic_store_n(&span->kind, STOOK_SPAN_MOVING, __ATOMIC_RELEASE);
        return span;
}

/* Reserved address space that became free again; NULL: none that fits. */
static struct stook_span *reuse(struct stook_pages_node *node, size_t bytes, size_t align,
                                struct stook_span *spares[2])
{
        struct stook_span *span, *rest = NULL, *front = NULL;
        uintptr_t start;

        if (!__atomic_load_n(&node->bins[STOOK_SET_RESERVED].spans, __ATOMIC_RELAXED) ||
            !stook_pages_lock_beside_singles(node))
                return NULL;
        span = stook_bins_find(&node->bins[STOOK_SET_RESERVED],
                               bytes + align - stook_os_page_bytes());
        if (span) {
                stook_pages_remove(node, span);
                start = (span->start + align - 1) & ~(uintptr_t)(align - 1);
                if (start != span->start) {
                        front = span;
                        span = stook_pages_split(front, start - front->start, &spares[0]);
                }
                if (span->bytes > bytes)
                        rest = stook_pages_split(span, bytes, &spares[1]);
                if (front)
                        stook_pages_insert(node, front);
                if (rest)
                        stook_pages_insert(node, rest);
        }
        stook_pages_unlock(node);
        return span;
}

struct stook_span *stook_pages_reserve(struct stook_pages_node *node, size_t bytes, size_t align)
{
        struct stook_span *spares[2] = { stook_meta_span_new(), stook_meta_span_new() },
                          *span = NULL;

        if (spares[0] && spares[1])
                span = reuse(node, bytes, align, spares);
        if (!span && spares[0] && spares[1]) {
                uintptr_t gap, start;
                size_t gap_bytes;

                start = stook_range_bump((unsigned)(node - stook_pages_nodes), bytes, align, &gap,
                                         &gap_bytes);
                if (start) {
                        span = describe(node, start, bytes, STOOK_SPAN_RESERVED, &spares[0]);
                        if (gap_bytes)
                                stook_pages_insert_or_pend(node,
                                                    describe(node, gap, gap_bytes,
                                                             STOOK_SPAN_RESERVED, &spares[1]));
                }
        }
        for (unsigned i = 0; i < 2; i++)
                if (spares[i])
                        stook_meta_span_free(spares[i]);
        return span;
}

/*
 * How much to get where @bytes are needed: some ahead of use; whole huge pages if it is much. For a
 * large object it is STOOK_DENSITY_LARGE_LEAST or more.
 */
static size_t growth(struct stook_pages_node *node, size_t bytes, size_t request)
{
        size_t ahead = stook_ledger_used(&node->ledger) / 8;

        ahead = ahead < GROW_LEAST ? GROW_LEAST : ahead > GROW_MOST ? GROW_MOST : ahead;
        ahead = ahead >= STOOK_HUGE_PAGE ? ahead & ~(STOOK_HUGE_PAGE - 1) : GROW_LEAST;
        if (request >= STOOK_DENSITY_LARGE_LEAST && ahead < STOOK_DENSITY_LARGE_LEAST)
                ahead = STOOK_DENSITY_LARGE_LEAST;
        return bytes < ahead ? ahead : bytes;
}

/*
 * Where growth asks for huge pages, or where the object that it is for may ask for them, it begins
 * and ends at their boundaries. If two growths shared one, its first part would be touched before
 * the second is there, and it would never become huge. Elsewhere growth is not aligned so: a huge
 * page would make memory resident that is not in use. Return: the growth asks.
 */
static bool align_to_huge(struct stook_pages_node *node, size_t request, size_t *want,
                          size_t *align)
{
        bool wanted = stook_huge_wanted(node, request) && *want >= STOOK_HUGE_PAGE;

        if (!wanted && !stook_huge_may_be_wanted(node, request))
                return false;
        *align = *align < STOOK_HUGE_PAGE ? STOOK_HUGE_PAGE : *align;
        *want = (*want + STOOK_HUGE_PAGE - 1) & ~(STOOK_HUGE_PAGE - 1);
        return wanted;
}

struct stook_span *stook_pages_grow(struct stook_pages_node *node, size_t bytes, size_t request,
                                    size_t align)
{
        size_t aligned = align, want = growth(node, bytes, request);
        bool huge = align_to_huge(node, request, &want, &aligned);
        struct stook_span *span;

        for (;;) {
                span = stook_pages_reserve(node, want, aligned);
                if (span && stook_place_commit(span->start, span->bytes))
                        break;
                if (span)
                        stook_pages_insert_or_pend(node, span);
                if (want == bytes && aligned == align)
                        return NULL;
                want = bytes;                   /* memory is scarce: exactly what is needed */
                aligned = align;
                huge = false;
        }
        span->state = STOOK_SPAN_ZERO;
        __atomic_fetch_add(&node->ledger.committed, span->bytes, __ATOMIC_RELAXED);
        stook_huge_grown(node, bytes, request, span->start, span->bytes, huge);
        if (span->bytes >= MAP_AHEAD)
                stook_pagemap_prepare(span->start, span->bytes);
        return span;
}

void stook_pages_grown_beyond(struct stook_span *rest, size_t request)
{
        if (request < STOOK_DENSITY_LARGE_LEAST || rest->bytes >= STOOK_HUGE_PAGE ||
            !stook_huge_is_advised(rest->start))
                return;
        rest->state = STOOK_SPAN_DIRTY;
        stook_span_set_age(rest, (uint32_t)stook_os_clock_ms());
}
