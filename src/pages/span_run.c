/*
 * Purpose: runs: spans of one size that are neighbours, taken together and given together. A run is
 * taken as one aligned span, and cut.
 * Place: called by slab, for caches whose memory is theirs in large pieces (slab/slab_run.c); calls
 * the second stage for the large span.
 * Invariants:
 *  I1 the descriptors of all spans are there before the large span is taken. So a run is cut whole,
 *     or not taken.
 * Concurrency: the spans are the caller's. While they are cut, waits are forbidden: until a span is
 *  TAKEN, a child of a fork would put it back into the bins.
 * Failure: NULL: no memory; nothing changed.
 */
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pages_node.h"
#include "pages/place.h"

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
static void cut(struct stook_span *whole, size_t piece, struct stook_link *spares)
{
        struct stook_link *behind = NULL;

        stook_lock_forbid_waits();
        while (whole->bytes > piece) {
                struct stook_span *spare = pop(&spares);
                struct stook_span *last = stook_pages_split(whole, whole->bytes - piece, &spare);

                last->list.next = last->list.prev = NULL;
                stook_pages_tag(last);
                stook_link_set_next(&last->link, behind);
                behind = &last->link;
                __atomic_store_n(&last->kind, STOOK_SPAN_TAKEN, __ATOMIC_RELEASE);
        }
        stook_pages_tag(whole);
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
        cut(span, piece, spares);
        return &span->link;
}

bool stook_span_renew_run(struct stook_link *first, size_t bytes)
{
        struct stook_span *span = stook_container_of(first, struct stook_span, link);
        uintptr_t start = span->start & ~(uintptr_t)(bytes - 1);

        if (!stook_os_commit((void *)start, bytes))
                return false;
        stook_place(start, bytes, span->node);
        /* The fresh mapping has lost the advice of the old one. */
        if (stook_pages_thp == STOOK_THP_NEVER)
                stook_os_advise((void *)start, bytes, STOOK_OS_NOHUGEPAGE);
        else if (stook_huge_is_advised(start))
                stook_huge_ask(start, bytes);
        return true;
}
