/*
 * Purpose: a taken span made smaller, or larger into what lies behind it.
 * Place: called by malloc (realloc of large objects); see span.h. Those with a mapping of their own
 * are resized by own_mapping.c.
 * Concurrency: the span is the caller's. Its neighbours change under the node's lock.
 * Failure: false: it stays as it was.
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
        after = stook_pages_free_at(node, span->start + span->bytes);
        if (!after || after->start != span->start + span->bytes || after->bytes < more ||
            after->state == STOOK_SPAN_RESERVED) {
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
                stook_pages_purge_big(node);
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
