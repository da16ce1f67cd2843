/*
 * Purpose: a span made of free neighbours of different sets. Dirty and clean neighbours stay apart
 * in the bins (span.h, I2). So a take may find no free span, though a dirty one and the clean ones
 * around it would do together. Fresh memory instead would leave all of them free.
 * Place: span.c asks before it grows a node, and to grow a span over the one behind it.
 * How: a take looks at the dirty spans that were inserted last. What it takes is dirty as a whole.
 *  Of the neighbours it takes only what is missing, so nothing clean gets dirty that stays free.
 * Concurrency: all under the lock of the node. Stores are so ordered that two descriptors never
 *  cover the same pages (pages_fork.c).
 * At the end of the heap fresh memory is such a neighbour: a large object that does not fit there
 *  has the heap grow by what is missing, and not by all of it beside memory that stays free.
 * Failure: NULL: no neighbours that fit; nothing changed. stook_pages_grow_end: the heap may have
 *  grown in vain, if another thread was faster; the next take finds that memory.
 */
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pages_node.h"

#define LOOKS 16                        /* arbitrary; a take that would grow the node does them */

void stook_pages_absorb(struct stook_pages_node *node, struct stook_span *span,
                        struct stook_span *after, size_t more, struct stook_span **spare)
{
        stook_pages_remove(node, after);
        if (after->bytes > more)
                stook_pages_insert(node, stook_pages_split(after, more, spare));
        /* Before the span grows over it: in a fork's child pages may leak, not overlap. */
        stook_meta_span_free(after);
        span->bytes += more;
}

/* The last @more bytes of @before become the front of @span. Return: the descriptor of both. */
static struct stook_span *absorb_before(struct stook_pages_node *node, struct stook_span *span,
                                        struct stook_span *before, size_t more,
                                        struct stook_span **spare)
{
        struct stook_span *front = before;
        size_t bytes = span->bytes;

        stook_pages_count_refault(node, before, more);
        stook_pages_remove(node, before);
        if (before->bytes > more) {
                front = stook_pages_split(before, before->bytes - more, spare);
                stook_pages_insert(node, before);
        }
        front->state = span->state;
        stook_meta_span_free(span);
        front->bytes += bytes;
        return front;
}

static size_t clean_bytes(const struct stook_span *span)
{
        return span && stook_pages_set_of(span) == STOOK_SET_CLEAN ? span->bytes : 0;
}

/* @span, which is dirty, with its clean neighbours, if they are @bytes together. */
static struct stook_span *join(struct stook_pages_node *node, struct stook_span *span,
                               size_t bytes, struct stook_span **spare)
{
        struct stook_span *before = stook_pages_free_at(node, span->start - 1);
        struct stook_span *after = stook_pages_free_at(node, span->start + span->bytes);
        size_t missing = bytes - span->bytes, front = 0, end;

        if (before && before->start + before->bytes == span->start)
                front = clean_bytes(before);
        end = after && after->start == span->start + span->bytes ? clean_bytes(after) : 0;
        if (span->bytes >= bytes || front + end < missing)
                return NULL;
        end = end < missing ? end : missing;
        stook_pages_remove(node, span);
        if (end) {
                stook_pages_count_refault(node, after, end);
                stook_pages_absorb(node, span, after, end, spare);
        }
        if (missing > end)
                span = absorb_before(node, span, before, missing - end, spare);
        return span;
}

struct stook_span *stook_pages_take_joined(struct stook_pages_node *node, size_t bytes,
                                           struct stook_span **spare)
{
        struct stook_list *next = node->aged.prev;

        for (unsigned i = 0; i < LOOKS && next != &node->aged; i++, next = next->prev) {
                struct stook_span *span = stook_container_of(next, struct stook_span, list);

                if ((span = join(node, span, bytes, spare)))
                        return span;
        }
        return NULL;
}

/*
 * Under the lock: bytes of the free spans that end at @end: the last one, and the one of the other
 * set before it.
 */
static size_t free_before(struct stook_pages_node *node, uintptr_t end)
{
        struct stook_span *last = stook_pages_free_at(node, end - 1), *before;

        if (!last || last->start + last->bytes != end ||
            stook_pages_set_of(last) == STOOK_SET_RESERVED)
                return 0;
        before = stook_pages_free_at(node, last->start - 1);
        if (!before || before->start + before->bytes != last->start ||
            stook_pages_set_of(before) == STOOK_SET_RESERVED)
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
