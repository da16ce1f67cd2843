/*
 * Purpose: slabs of debugged caches that were destroyed stay without access for a while, so that a
 * use of what is gone stops at that instruction (life/guard_hit.c), and meets no new owner.
 * Place: called by watch when a cache is destroyed; calls pages.
 * Invariants:
 *  I1 a span in the ring is a taken one that no other list knows. It gets its access back before it
 *     is given; one that does not stays taken for ever.
 * Concurrency: a cache is destroyed with the registry mutex held, so one thread changes the ring. A
 *  handler of the signal reads it; it finds a place whole, or without a span (release, acquire).
 */
#include "debug/debug_inside.h"
#include "os/os.h"
#include "pages/span.h"

/* Spans that wait, and what of one keeps its memory meanwhile. Both arbitrary. */
#define CLOSED_MOST  64
#define CLOSED_BYTES ((size_t)64 << 10)

struct closed {
        struct stook_span *span;                /* atomic; NULL: none */
        struct stook_debug debug;               /* of its cache: a copy */
        size_t stride;
};
static struct closed closed[CLOSED_MOST] STOOK_MOSTLY_UNUSED;
static uint32_t next_closed;
static const struct stook_debug *ending;        /* whose cache is being destroyed */

bool stook_debug_describe_closed(uintptr_t address, struct stook_report_about *about)
{
        for (unsigned i = 0; i < CLOSED_MOST; i++) {
                const struct stook_span *span = __atomic_load_n(&closed[i].span, __ATOMIC_ACQUIRE);
                uintptr_t object;

                if (!span || address - span->start >= span->bytes)
                        continue;
                object = address - (address - span->start) % closed[i].stride;
                about->object = (void *)object;
                if (stook_os_enable((void *)span->start, span->bytes) &&
                    object + closed[i].stride <= span->start + span->bytes)
                        stook_debug_add_tracks(&closed[i].debug, (void *)object, about);
                return true;
        }
        return false;
}

static void give(struct stook_span *span)
{
        if (stook_os_enable((void *)span->start, span->bytes))          /* I1 */
                stook_span_give(span);
}

static void close_later(struct stook_slabs *slabs, struct stook_span *span)
{
        struct closed *place = &closed[next_closed++ % CLOSED_MOST];
        struct stook_span *before = __atomic_exchange_n(&place->span, NULL, __ATOMIC_ACQ_REL);

        if (before)
                give(before);
        if (span->bytes > CLOSED_BYTES)
                stook_os_purge((void *)span->start, span->bytes);
        if (!stook_os_close((void *)span->start, span->bytes)) {
                give(span);
                return;
        }
        place->debug = *ending;
        place->stride = slabs->stride;
        __atomic_store_n(&place->span, span, __ATOMIC_RELEASE);
}

void stook_debug_close_slabs(const struct stook_debug *debug)
{
        ending = debug;
        if ((debug->flags & STOOK_CACHE_RED_ZONE) &&
            !stook_slabs_only_shrink(debug->slabs))
                debug->slabs->give_later = close_later;
}
