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
        struct stook_span *span;

        if (!__atomic_load_n(&node->bins[STOOK_SET_RESERVED].spans, __ATOMIC_RELAXED) ||
            !stook_pages_lock(node))
                return NULL;
        span = stook_bins_find(&node->bins[STOOK_SET_RESERVED],
                               bytes + align - stook_os_page_bytes());
        if (span)
                span = stook_pages_take_out(node, span, bytes, align, spares);
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
                if (span && stook_range_commit(span->start, span->bytes))
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

/*
 * ---- at the end of the heap ----
 * Fresh memory is a neighbour there: a large object that does not fit has the heap grow by what is
 * missing, and not by all of it beside memory that stays free. The heap may have grown in vain, if
 * another thread was faster; the next take finds that memory.
 */

/*
 * Under the lock: bytes of the free spans that end at @end: the last one, and the one of the other
 * set before it.
 */
static size_t free_before(struct stook_pages_node *node, uintptr_t end)
{
        struct stook_span *last = stook_pages_before(node, end), *before;

        if (!last || stook_pages_set_of(last) == STOOK_SET_RESERVED)
                return 0;
        before = stook_pages_before(node, last->start);
        if (!before || stook_pages_set_of(before) == STOOK_SET_RESERVED)
                return last->bytes;
        return before->bytes + last->bytes;
}

/* What the free memory at the end of the heap lacks for @bytes; 0: nothing, or there is none. */
static STOOK_NOINLINE size_t missing_for(struct stook_pages_node *node, size_t bytes)
{
        uintptr_t end = stook_range_frontier((unsigned)(node - stook_pages_nodes));
        size_t have, missing, least;

        if (!end || end % STOOK_HUGE_PAGE || !stook_pages_lock(node))
                return 0;
        have = free_before(node, end);
        missing = have && have < bytes ? bytes - have : 0;
        /* Growth would come from there: it is as much as counts as large, or more. */
        least = missing < STOOK_DENSITY_LARGE_LEAST ? STOOK_DENSITY_LARGE_LEAST : missing;
        if (missing && stook_bins_find(&node->bins[STOOK_SET_RESERVED], least))
                missing = 0;
        stook_pages_unlock(node);
        return missing;
}

/*
 * @fresh, in hands, goes to the bins, but for what is beyond @missing. It came for a large object.
 * Return: that, in hands; NULL: nothing.
 */
static STOOK_NOINLINE struct stook_span *insert_grown(struct stook_pages_node *node,
                                                      struct stook_span *fresh, size_t missing)
{
        struct stook_span *spare = stook_meta_span_new(), *rest = NULL;

        if (spare && fresh->bytes > missing) {
                rest = stook_pages_split(fresh, missing, &spare);
                stook_pages_grown_beyond(rest, STOOK_DENSITY_LARGE_LEAST);
        }
        stook_pages_insert_or_pend(node, fresh);
        if (spare)
                stook_meta_span_free(spare);
        return rest;
}

struct stook_span *stook_pages_grow_end(struct stook_pages_node *node, size_t bytes)
{
        size_t missing = missing_for(node, bytes);
        struct stook_span *fresh;

        if (!missing)
                return NULL;
        fresh = stook_pages_grow(node, missing, bytes, stook_os_page_bytes());
        return fresh ? insert_grown(node, fresh, missing) : NULL;
}
