/*
 * Purpose: what the page layer keeps for each node, shared by the files of this folder only.
 * Place: span.c takes and gives, bins.c joins neighbours, advice.c asks for huge pages again,
 * span_grow.c gets memory, own_mapping.c serves what is large, purge.c gives memory back. All end
 * in stook_pages_insert, the one place where a span enters the bins and is coalesced. A thread that
 * cannot have the lock puts the span on the pending stack. The next holder inserts it.
 * Invariant: a thread that has a span in its hands, out of the bins and not TAKEN, holds the lock
 *  or has forbidden waits (base/lock.h). A child of fork puts such spans back into the bins. So it
 *  takes none from under the thread that forked in a handler. Functions that are called with such a
 *  span, or return one, say "in hands".
 */
#ifndef STOOK_PAGES_NODE_H
#define STOOK_PAGES_NODE_H

#include "base/lock.h"
#include "base/pending_stack.h"
#include "pages/advice.h"
#include "pages/purge.h"
#include "pages/source.h"
#include "pages/span.h"
#include "policy/dirty.h"

/* ---- bins.c: free spans by size ---- */

#define STOOK_BINS_EXACT 64
#define STOOK_BINS (STOOK_BINS_EXACT + 8 * 24)

struct stook_bins {
        uint64_t bitmap[STOOK_BINS / 64];
        struct stook_span *root[STOOK_BINS];
        /* Stored atomically under the lock; read racily without it. */
        size_t bytes, spans;
};

/* HUGE: as CLEAN, in huge pages that the node grew by for slabs (advice.h). */
enum stook_pages_set {
        STOOK_SET_DIRTY,
        STOOK_SET_HUGE,
        STOOK_SET_CLEAN,
        STOOK_SET_RESERVED,
        STOOK_SETS
};

struct stook_pages_node {
        struct stook_lock lock;                 /* guards bins and aged */
        /*
         * Lock; dirty free spans, in the order in which they were last inserted. A span that is
         * coalesced, or whose purge was refused, goes to the end. So the first is the oldest as a
         * rule, and ages by dirty_since_ms.
         */
        struct stook_list aged;
        struct stook_pending_stack pending;     /* free spans of threads without the lock */
        struct stook_ledger ledger;
        /* Atomic, relaxed: when stook_pages_step looks again. */
        uint32_t next_step_ms;
        /* Atomic: the large object that was freed last (span_recent.c), or 0. */
        uint64_t recent;
        size_t asked_bytes;             /* atomic, relaxed: the last request of 128 KiB or more */
        /* Lock. The last: a start does not touch them, and they are larger than all else. */
        struct stook_bins bins[STOOK_SETS];
} STOOK_ALIGNED(STOOK_CACHELINE);

extern struct stook_pages_node stook_pages_nodes[];

_Static_assert(STOOK_NODES_MAX <= STOOK_SPAN_FREE, "a node's number fits beside the kind");

/* @kind: FREE, or LOOSE. Under the lock of @node: true stays true, whatever led to @span. */
STOOK_INLINE bool stook_pages_is(const struct stook_span *span, enum stook_span_kind kind,
                                 const struct stook_pages_node *node)
{
        return __atomic_load_n(&span->kind, __ATOMIC_RELAXED) ==
               (unsigned)kind + (unsigned)(node - stook_pages_nodes);
}

STOOK_INLINE enum stook_pages_set stook_pages_set_of(const struct stook_span *span)
{
        return span->state == STOOK_SPAN_DIRTY      ? STOOK_SET_DIRTY
               : span->state == STOOK_SPAN_RESERVED ? STOOK_SET_RESERVED
               : stook_huge_is_for_slabs(span->start) ? STOOK_SET_HUGE
                                                      : STOOK_SET_CLEAN;
}

/* @span, which is free, has memory without content. */
STOOK_INLINE bool stook_pages_is_clean(const struct stook_span *span)
{
        return span->state == STOOK_SPAN_ZERO || span->state == STOOK_SPAN_PURGED;
}

/* ---- bins.c: by size, and coalesced ---- */

/*
 * A span of @bytes or more; NULL: none. If the lowest span of the bin of @bytes fits, it is that
 * one. Else it is the lowest span of the next bin that has any: there, each span fits.
 */
struct stook_span *stook_bins_find(const struct stook_bins *bins, size_t bytes);
/* The lowest span of the bin of the largest sizes; NULL: empty. */
struct stook_span *stook_bins_largest(const struct stook_bins *bins);

/* Releases, looks at pending after the release, and takes the lock again if there is something. */
void stook_pages_unlock(struct stook_pages_node *node);
/* False: the lock was refused. Else all pending spans are in the bins. */
bool stook_pages_lock(struct stook_pages_node *node);
/*
 * Under the lock: @span, which is in no bin, becomes free. Returns it, or what it was coalesced
 * into.
 */
struct stook_span *stook_pages_insert(struct stook_pages_node *node, struct stook_span *span);
/* Under the lock: the free span in the bins that a page's entry belongs to, if there is one. */
struct stook_span *stook_pages_free_at(struct stook_pages_node *node, uintptr_t addr);
/* The same: the one that begins at @addr, or ends there. */
STOOK_INLINE struct stook_span *stook_pages_behind(struct stook_pages_node *node, uintptr_t addr)
{
        struct stook_span *span = stook_pages_free_at(node, addr);

        return span && span->start == addr ? span : NULL;
}
STOOK_INLINE struct stook_span *stook_pages_before(struct stook_pages_node *node, uintptr_t addr)
{
        struct stook_span *span = stook_pages_free_at(node, addr - 1);

        return span && span->start + span->bytes == addr ? span : NULL;
}
/* Under the lock: out of its bin, for the caller. */
void stook_pages_remove(struct stook_pages_node *node, struct stook_span *span);
/* @span goes to the pending stack, because the lock was refused. */
void stook_pages_pend(struct stook_pages_node *node, struct stook_span *span);
/*
 * Without the lock: to the bins if the lock can be had, else pending. The span is TAKEN, but not
 * its user's any more, or in hands.
 */
void stook_pages_insert_or_pend(struct stook_pages_node *node, struct stook_span *span);
/* The aligned part of a free span, at least @bytes of it, or 0. */
uintptr_t stook_pages_fit(const struct stook_span *span, size_t bytes, size_t align);
/*
 * Cuts @span, which the caller owns, to @bytes aligned to @align. What was in front of them and
 * behind them goes to @left[0..1], NULL if none. Uses up to two of @spares.
 */
struct stook_span *stook_pages_cut(struct stook_span *span, size_t bytes, size_t align,
                                   struct stook_span *spares[2], struct stook_span *left[2]);
/* Under the lock: the same of @span, which is in the bins. What is left goes there. */
struct stook_span *stook_pages_take_out(struct stook_pages_node *node, struct stook_span *span,
                                        size_t bytes, size_t align, struct stook_span *spares[2]);
/*
 * Cuts @span down to [span->start, +bytes); the rest becomes *@spare (which is taken from the
 * caller: set to NULL) and is returned, kind MOVING. The order of the stores never lets two
 * descriptors cover the same pages.
 */
struct stook_span *stook_pages_split(struct stook_span *span, size_t bytes,
                                     struct stook_span **spare);

/* @span and @other become one, which is as old as the younger part. Clean ones have no age. */
STOOK_INLINE void stook_pages_keep_age(struct stook_span *span, const struct stook_span *other)
{
        if ((int32_t)(other->dirty_since_ms - span->dirty_since_ms) > 0)
                stook_span_set_age(span, other->dirty_since_ms);
}

/* The entries of the first and last page of a span that is no slab lead to its descriptor. */
STOOK_INLINE void stook_pages_tag(struct stook_span *span)
{
        stook_pagemap_set(span->start, (uint64_t)(uintptr_t)span);
        stook_pagemap_set(span->start + span->bytes - STOOK_MAP_PAGE, (uint64_t)(uintptr_t)span);
}

/* ---- span_recent.c: the large object that was freed last ---- */

#define STOOK_RECENT_LEAST ((size_t)128 << 10)  /* about where malloc begins to take spans */
/* The word: the descriptor's address, and above it the span's size in pages of 4 KiB. */
#define STOOK_RECENT_SIZE_SHIFT 48
#define STOOK_RECENT_PAGE_SHIFT 12

/* True: @span, a dirty one in hands, was put. The one before it goes to the bins. */
bool stook_recent_put(struct stook_pages_node *node, struct stook_span *span);
/*
 * STOOK_RECENT_LEAST @bytes or more are asked for. Return: the span, in hands, if it has so many;
 * else NULL, and it goes to the bins.
 */
struct stook_span *stook_recent_take(struct stook_pages_node *node, size_t bytes);
/* To the bins. */
void stook_recent_flush(struct stook_pages_node *node);
/* The same under the lock, with waits forbidden. False: there was none. */
bool stook_recent_insert(struct stook_pages_node *node);
/* Its size; 0: there is none. Racy. */
STOOK_INLINE size_t stook_recent_bytes(const struct stook_pages_node *node)
{
        return (__atomic_load_n(&node->recent, __ATOMIC_RELAXED) >> STOOK_RECENT_SIZE_SHIFT)
               << STOOK_RECENT_PAGE_SHIFT;
}

/* Dirty bytes in the bins. Racy. */
STOOK_INLINE size_t stook_pages_dirty(const struct stook_pages_node *node)
{
        return __atomic_load_n(&node->bins[STOOK_SET_DIRTY].bytes, __ATOMIC_RELAXED);
}

/* @bytes more are with users, and debt of the node may follow. @clean: they have no content. */
STOOK_INLINE void stook_pages_owe(struct stook_pages_node *node, size_t bytes, bool clean)
{
        stook_debt_take(&node->ledger, stook_pages_dirty(node), bytes, clean);
}

/* @bytes of @span are about to be used. If they were purged, that was in vain. */
STOOK_INLINE void stook_pages_count_refault(struct stook_pages_node *node,
                                            const struct stook_span *span, size_t bytes)
{
        if (span->state == STOOK_SPAN_PURGED)
                stook_ledger_refault(&node->ledger, bytes);
}

/*
 * Under the lock: the first @more bytes of @after, a free span in the bins, become the end of
 * @span, which lies before it and is in hands or taken. *@spare: used where @after is larger.
 */
void stook_pages_absorb(struct stook_pages_node *node, struct stook_span *span,
                        struct stook_span *after, size_t more, struct stook_span **spare);
/*
 * Under the lock: a dirty free span and so much of its clean neighbours that they are @bytes
 * together, in hands. NULL: none. *@spare: a descriptor, used where a neighbour is larger.
 */
struct stook_span *stook_pages_take_joined(struct stook_pages_node *node, size_t bytes,
                                           struct stook_span **spare);

/* ---- span_grow.c ---- */
/*
 * Without the lock, with waits forbidden. Where free memory lies at the end of the heap, the heap
 * grows by what that lacks for @bytes, which are a huge page or more. A take may succeed then.
 * Return: what it grew by beyond that, in hands; or NULL. It goes to the bins after the take, which
 * else might join it, and leave a part of what lies before.
 */
struct stook_span *stook_pages_grow_end(struct stook_pages_node *node, size_t bytes);

/* ---- advice.c: what is taken again ---- */

/* Whole huge pages, purged, that a take begins. An end of 0: none. */
struct stook_pages_again {
        uintptr_t start, end;
};
/*
 * Under the lock. True: the first @bytes of @span, which is in the bins, begin huge pages that are
 * to be asked for again: *@again. Else that is none.
 */
bool stook_pages_begins_huge(const struct stook_pages_node *node, const struct stook_span *span,
                             size_t bytes, struct stook_pages_again *again);
/* Under the lock: takes @span in hands, up to the end of *@again. *@spare: used for the rest. */
void stook_pages_begin_huge(struct stook_pages_node *node, struct stook_span *span, size_t bytes,
                            const struct stook_pages_again *again, struct stook_span **spare);
/*
 * Then, without the lock: asks for *@again, and leaves @bytes of @span in hands. NULL: no
 * descriptor, and @span is back in the bins.
 */
struct stook_span *stook_pages_ask_again(struct stook_pages_node *node, struct stook_span *span,
                                         size_t bytes, const struct stook_pages_again *again,
                                         struct stook_span **spare);

/* ---- pages_fork.c ---- */
/* Under the lock, after stook_lock_inherit: makes the bins anew, from the descriptors. */
void stook_pages_rebuild(struct stook_pages_node *node);

/* ---- purge.c; stook_pages_thp: advice.c ---- */
/*
 * Called after a give, without the lock: purges the largest free spans, or their ends, while more
 * dirty memory lies free than may (policy/dirty.h).
 */
void stook_pages_purge_excess_of(struct stook_pages_node *node);
extern enum stook_thp stook_pages_thp;

#endif
