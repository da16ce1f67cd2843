/*
 * Purpose: a span made of free neighbours of different sets. Dirty and clean neighbours stay apart
 * in the bins (span.h, I2). So a take may find no free span, though a dirty one and the clean ones
 * around it would do together. Fresh memory instead would leave all of them free.
 * Place: span.c asks before it grows a node, and to grow a span over the one behind it.
 * How: a take looks at the dirty spans that were inserted last. What it takes is dirty as a whole.
 *  Of the neighbours it takes only what is missing, so nothing clean gets dirty that stays free.
 * Concurrency: all under the lock of the node. Stores are so ordered that two descriptors never
 *  cover the same pages (pages_fork.c).
 * Failure: NULL: no neighbours that fit; nothing changed.
 */
#include "pages/meta.h"
#include "pages/pages_node.h"

#define LOOKS 16                        /* arbitrary; a take that would grow the node does them */

void stook_pages_count_retaken(struct stook_pages_node *node, const struct stook_span *span,
                               size_t bytes)
{
        if (span->state == STOOK_SPAN_PURGED)
                __atomic_fetch_add(&node->retaken_bytes, bytes, __ATOMIC_RELAXED);
}

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

        stook_pages_count_retaken(node, before, more);
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
                stook_pages_count_retaken(node, after, end);
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
