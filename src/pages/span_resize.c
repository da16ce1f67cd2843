/*
 * Purpose: a taken span made smaller, or larger into what lies behind it, or cut. Runs are spans of
 * one size that are neighbours, taken together and given together: one aligned span, cut.
 * Place: called by malloc (realloc of large objects), slab (caches whose memory is theirs in large
 * pieces: special/runs.c) and harden (guards); see span.h. Those with a mapping of their own are
 * resized by own_mapping.c.
 * Invariants:
 *  I1 the descriptors of all spans are there before the large span is taken. So a run is cut whole,
 *     or not taken.
 * Concurrency: the spans are the caller's. Their neighbours change under the node's lock. While
 *  spans are cut, waits are forbidden: until a span is TAKEN, a child of a fork would put it back
 *  into the bins.
 * Failure: false, or NULL: no memory; nothing changed.
 */
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"

/*
 * Grows @span over @more bytes of the free span behind it. Return: 1: done. 0: there is no such
 * span. -1: not known, the lock was refused.
 */
static int grow_into_neighbour(struct stook_pages_node *node, struct stook_span *span, size_t more,
                               struct stook_span **spare)
{
        struct stook_span *after;

        if (!stook_pages_lock(node))
                return -1;
        after = stook_pages_behind(node, span->start + span->bytes);
        if (!after || after->bytes < more || after->state == STOOK_SPAN_RESERVED) {
                stook_pages_unlock(node);
                return 0;
        }
        stook_pages_count_refault(node, after, more);
        stook_pages_absorb(node, span, after, more, spare);
        stook_pages_tag(span);
        stook_pages_unlock(node);
        return 1;
}

/* A span of slabs' size becomes a large one, or the other way round. */
static void count_slabs(struct stook_pages_node *node, size_t was, size_t is)
{
        if (was < STOOK_SLABS_MOST)
                stook_ledger_take_slabs(&node->ledger, -was);
        if (is < STOOK_SLABS_MOST)
                stook_ledger_take_slabs(&node->ledger, is);
}

static bool resize(struct stook_pages_node *node, struct stook_span *span, size_t bytes)
{
        struct stook_span *spare = stook_meta_span_new(), *rest;
        bool done = false;

        if (!spare)
                return false;
        if (bytes < span->bytes) {
                stook_lock_forbid_waits();
                rest = stook_pages_split(span, bytes, &spare);
                rest->state = STOOK_SPAN_DIRTY;
                stook_span_set_age(rest, (uint32_t)stook_os_clock_ms());
                rest->own_mapping = 0;
                stook_pages_tag(span);
                stook_ledger_give(&node->ledger, rest->bytes);
                count_slabs(node, bytes + rest->bytes, bytes);
                stook_pages_insert_or_pend(node, rest);
                stook_lock_allow_waits();
                stook_pages_purge_excess_of(node);
                return true;
        }
        size_t more = bytes - span->bytes;
        int got = grow_into_neighbour(node, span, more, &spare);

        if (got == 0 && stook_range_frontier_is(span->start + span->bytes)) {
                /* Nothing is behind it yet: fresh memory comes here, if no thread is faster. */
                struct stook_span *fresh;

                stook_lock_forbid_waits();
                fresh = stook_pages_grow(node, more, more, stook_os_page_bytes());
                if (fresh)
                        stook_pages_insert_or_pend(node, fresh);
                stook_lock_allow_waits();
                if (fresh) {
                        got = grow_into_neighbour(node, span, more, &spare);
                }
        }
        if (got == 1) {
                stook_ledger_take(&node->ledger, more);
                count_slabs(node, bytes - more, bytes);
                stook_pages_owe(node, 0, false);
                done = true;
        }
        if (spare)
                stook_meta_span_free(spare);
        return done;
}

bool stook_span_resize(struct stook_span *span, size_t bytes)
{
        struct stook_pages_node *node = &stook_pages_nodes[span->node];
        size_t page = stook_os_page_bytes();

        if (!bytes || bytes > PTRDIFF_MAX)
                return false;
        bytes = (bytes + page - 1) & ~(page - 1);
        if (bytes == span->bytes)
                return true;
        if (span->own_mapping)
                return stook_own_resize(node, span, bytes);
        if (bytes > STOOK_SPAN_OWN_MAPPING)
                return false;
        return resize(node, span, bytes);
}

/* ---- cut, and runs ---- */

struct stook_span *stook_span_cut(struct stook_span *span, size_t bytes, struct stook_span *spare)
{
        struct stook_span *rest = stook_pages_split(span, bytes, &spare);

        rest->list.next = rest->list.prev = NULL;
        stook_pages_tag(rest);
        stook_pages_tag(span);
        __atomic_store_n(&rest->kind, STOOK_SPAN_TAKEN, __ATOMIC_RELEASE);
        return rest;
}

static struct stook_span *pop(struct stook_link **chain)
{
        struct stook_span *span = stook_container_of(*chain, struct stook_span, link);

        *chain = span->link.next;
        return span;
}

static void free_spares(struct stook_link *spares)
{
        while (spares)
                stook_meta_span_free(pop(&spares));
}

/* @n descriptors, at *@spares. False: no memory. */
static bool get_spares(size_t n, struct stook_link **spares)
{
        for (*spares = NULL; n; n--) {
                struct stook_span *span = stook_meta_span_new();

                if (!span) {
                        free_spares(*spares);
                        return false;
                }
                stook_link_set_next(&span->link, *spares);
                *spares = &span->link;
        }
        return true;
}

/* From the end, so that @whole becomes the first one. */
static void cut_run(struct stook_span *whole, size_t piece, struct stook_link *spares)
{
        struct stook_link *behind = NULL;

        stook_lock_forbid_waits();
        while (whole->bytes > piece) {
                struct stook_span *last = stook_span_cut(whole, whole->bytes - piece, pop(&spares));

                stook_link_set_next(&last->link, behind);
                behind = &last->link;
        }
        stook_link_set_next(&whole->link, behind);
        stook_lock_allow_waits();
}

struct stook_link *stook_span_take_run(unsigned node, size_t bytes, size_t piece, bool huge)
{
        struct stook_link *spares;
        struct stook_span *span;

        if (!get_spares(bytes / piece - 1, &spares))
                return NULL;
        span = stook_span_take(node, bytes, bytes);
        if (!span) {
                free_spares(spares);
                return NULL;
        }
        if (huge)
                stook_huge_ask(span->start, bytes);
        cut_run(span, piece, spares);
        return &span->link;
}

bool stook_span_renew_run(struct stook_link *first, size_t bytes)
{
        struct stook_span *span = stook_container_of(first, struct stook_span, link);
        uintptr_t start = span->start & ~(uintptr_t)(bytes - 1);

        if (!stook_os_commit((void *)start, bytes))
                return false;
        stook_range_prefer_node(start, bytes, span->node);
        /* The fresh mapping has lost the advice of the old one. */
        if (stook_pages_thp == STOOK_THP_NEVER)
                stook_os_advise((void *)start, bytes, STOOK_OS_NOHUGEPAGE);
        else if (stook_huge_is_advised(start))
                stook_huge_ask(start, bytes);
        return true;
}
