/*
 * Purpose: huge pages where purged memory is taken again. What was purged in parts comes back in
 * small pages, though all of a huge page lies free by then. So a take that begins such a huge page
 * asks for it again. A spike that comes a second time then has few faults.
 * Place: span.c asks under the lock when it has found a span, and goes on when the lock is dropped.
 * How: as growth does (span_grow.c), a take has more in hands than it needs for a moment: up to the
 *  end of the last huge page that it begins. These are purged once more, as a whole, and are asked
 *  for; then the rest goes to the bins. The purge finds no page, but page tables: where one is
 *  left, the system makes no huge page. It lets them go if a purge covers all of a huge page (Linux
 *  6.14, x86-64). Before that, memory that was in small pages comes back in small ones.
 * Concurrency: only the owner may purge, because what another thread takes there has content.
 *  So the huge pages are in hands meanwhile, and no lock is held.
 * Failure: without a descriptor for the rest all of it goes back to the bins; nothing is taken.
 */
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pages_node.h"

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
