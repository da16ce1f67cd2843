/*
 * Purpose: large objects (large.h): spans straight from the pages, grown in place, moved by the page tables.
 * Place: the one part of malloc that skips caches, slots, barns and slabs: a large object is a span.
 * Concurrency: the object's owner alone resizes it; a free races with nothing but another, faulty, free (I1).
 * Failure: no memory leaves everything as it was.
 */
#include <string.h>
#include "group/group.h"
#include "life/life.h"
#include "malloc/large.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "slot/slot_node.h"
#include "stat/stats_page_tick.h"

/*
 * A growing object gets an eighth more than asked for: it will grow again, and what is not touched costs no
 * memory. The same share that classes waste at most. From 1 MiB on the pages themselves keep room behind what they
 * move (pages/own_mapping.c), and exact sizes do.
 */
#define GROWTH_SHARE 8
#define GROWTH_PADDED_MAX ((size_t)1 << 20)
/* Shrinking by less than a share, and by less than this, is not worth splitting a span. Arbitrary. */
#define SHRINK_BYTES ((size_t)1 << 20)

static void large_set_kind(struct stook_span *span, enum stook_span_kind kind)
{
        /* Release, for lookups of a pointer that its owner passed on: they read the kind (acquire) first. */
        __atomic_store_n(&span->kind, (uint8_t)kind, __ATOMIC_RELEASE);
}

/* The group a live span is charged to, at span->bytes; 0: none. */
static uint16_t *large_group(struct stook_span *span)
{
        return (uint16_t *)span->user;
}

static bool large_charge(struct stook_span *span, uint16_t group)
{
        if (STOOK_UNLIKELY(group != 0) && !stook_group_charge(group, span->bytes, 0))
                return false;
        *large_group(span) = group;
        return true;
}

static void large_uncharge(struct stook_span *span, size_t bytes)
{
        if (STOOK_UNLIKELY(*large_group(span) != 0))
                stook_group_uncharge(*large_group(span), bytes);
}

void *stook_large_alloc(size_t align, size_t size, bool zeroed)
{
        if (STOOK_UNLIKELY(size > PTRDIFF_MAX || align > PTRDIFF_MAX) || !stook_start())
                return NULL;
        stook_fork_check();

        struct stook_span *span = stook_span_take(stook_os_node_home(stook_slot_node()), size, align);

        if (STOOK_UNLIKELY(!span))
                return NULL;
        if (STOOK_UNLIKELY(!large_charge(span, stook_group_current()))) {
                stook_span_give(span);
                return NULL;
        }

        void *object = (void *)span->start;

        if (zeroed && !stook_span_is_zero(span))
                memset(object, 0, size);
        large_set_kind(span, STOOK_SPAN_LARGE);
        stook_stats_page_tick();
        return object;
}

bool stook_large_free(struct stook_span *span)
{
        uint8_t live = STOOK_SPAN_LARGE;

        if (!__atomic_compare_exchange_n(&span->kind, &live, (uint8_t)STOOK_SPAN_TAKEN, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
                return false;
        stook_fork_check();
        large_uncharge(span, span->bytes);
        stook_span_give(span);
        stook_pages_step();
        stook_stats_page_tick();
        return true;
}

static size_t large_padded(size_t size)
{
        return size < GROWTH_PADDED_MAX ? size + size / GROWTH_SHARE : size;
}

/* NULL: no memory. The span may be another one then. */
static void *large_grow(struct stook_span *span, size_t size)
{
        uint16_t group = *large_group(span);
        size_t padded = large_padded(size);
        struct stook_span *moved;

        if (stook_span_resize(span, padded) || (padded != size && stook_span_resize(span, size)))
                return (void *)span->start;
        moved = stook_span_move(span, padded);
        if (!moved && padded != size)
                moved = stook_span_move(span, size);
        if (STOOK_UNLIKELY(!moved))
                return NULL;
        *large_group(moved) = group;
        large_set_kind(moved, STOOK_SPAN_LARGE);
        return (void *)moved->start;
}

void *stook_large_resize(struct stook_span *span, size_t size)
{
        void  *object = (void *)span->start;
        size_t bytes = span->bytes;

        if (STOOK_UNLIKELY(size > PTRDIFF_MAX))
                return NULL;
        stook_fork_check();

        if (size <= bytes) {
                if (bytes - size >= bytes / GROWTH_SHARE || bytes - size >= SHRINK_BYTES)
                        stook_span_resize(span, size);  /* refused: it stays as large as it is */
                large_uncharge(span, bytes - span->bytes);
                return object;
        }

        uint16_t group = *large_group(span);

        /* What it grows by at most, up front; what it did not grow by is given back. */
        if (STOOK_LIKELY(!group))
                return large_grow(span, size);

        size_t most = large_padded(size) + stook_os_page_bytes() - bytes;

        if (!stook_group_charge(group, most, 0))
                return NULL;
        object = large_grow(span, size);
        if (object)
                most -= stook_span_large_at((uintptr_t)object)->bytes - bytes;
        stook_group_uncharge(group, most);
        return object;
}
