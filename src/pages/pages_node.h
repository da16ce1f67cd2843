/*
 * Purpose: what the page layer keeps for each node, shared by the files of this folder only.
 * Place: span.c takes and gives, span_grow.c gets memory, own_mapping.c serves what is large, purge.c gives
 * memory back; all end in stook_pages_insert, the one place where a span becomes free and is coalesced.
 * Invariant: a thread that has a span in its hands, out of the bins and not TAKEN, holds the lock or has forbidden waits
 *  (base/lock.h). So a child of fork, where such spans are put back into the bins, repairs nothing away from under the
 *  thread that forked in a handler. What is called here with or for such a span says "in hands".
 */
#ifndef STOOK_PAGES_NODE_H
#define STOOK_PAGES_NODE_H

#include "base/lock.h"
#include "base/pending_stack.h"
#include "pages/bins.h"

enum stook_pages_set { STOOK_SET_DIRTY, STOOK_SET_CLEAN, STOOK_SET_RESERVED, STOOK_SETS };

struct stook_pages_node {
        struct stook_lock lock;                 /* guards bins, aged */
        struct stook_bins bins[STOOK_SETS];     /* lock */
        struct stook_list aged;                 /* lock; dirty free spans, the longest free one first */
        struct stook_pending_stack pending;     /* free spans from who could not have the lock */
        size_t taken_bytes;                     /* atomic, relaxed: with users */
        size_t committed_bytes;                 /* atomic, relaxed: with memory behind them, own mappings too */
        size_t retaken_bytes;                   /* atomic, relaxed: purged memory taken again lately; raises the allowance */
        size_t owed_bytes;                      /* atomic, relaxed: purge.c: to be dropped whatever its age */
        size_t fresh_bytes;                     /* atomic, relaxed: handed out clean since the last growth was counted */
        uint32_t next_step_ms;                  /* atomic, relaxed: when stook_pages_step looks again */
} STOOK_ALIGNED(STOOK_CACHELINE);

extern struct stook_pages_node stook_pages_nodes[];

/* ---- span.c ---- */
/* Empties the pending stack; the caller holds the lock. */
void stook_pages_unpend(struct stook_pages_node *node);
/* Releases, looks at pending after the release, and takes the lock again if there is something. */
void stook_pages_unlock(struct stook_pages_node *node);
bool stook_pages_lock(struct stook_pages_node *node);
/* Under the lock: @span, in nobody's bins, becomes free; returns it, or what it was coalesced into. */
struct stook_span *stook_pages_insert(struct stook_pages_node *node, struct stook_span *span);
/* Under the lock: out of its bin, for the caller. */
void stook_pages_remove(struct stook_pages_node *node, struct stook_span *span);
/* Without the lock: to the bins if the lock can be had, else pending. The span is TAKEN, but not its user's any more, or in hands. */
void stook_pages_release(struct stook_pages_node *node, struct stook_span *span);
enum stook_pages_set stook_pages_set_of(const struct stook_span *span);
/*
 * Cuts @span down to [span->start, +bytes); the rest becomes *@spare (which is taken from the caller: set to
 * NULL) and is returned, kind MOVING. The order of the stores never lets two descriptors cover the same pages.
 */
struct stook_span *stook_pages_split(struct stook_span *span, size_t bytes, struct stook_span **spare);

/* ---- span_grow.c ---- */
/* In hands. @bytes at least of fresh clean memory, kind MOVING, the caller's. NULL: no memory. @least: not more than needed. */
struct stook_span *stook_pages_grow(struct stook_pages_node *node, size_t bytes, size_t align, bool least);
/* In hands. @bytes of address space without memory, kind MOVING. NULL: none. */
struct stook_span *stook_pages_reserve(struct stook_pages_node *node, size_t bytes, size_t align);

/* ---- own_mapping.c ---- */
struct stook_span *stook_own_take(struct stook_pages_node *node, size_t bytes, size_t align, size_t headroom);
void stook_own_give(struct stook_pages_node *node, struct stook_span *span);
bool stook_own_resize(struct stook_pages_node *node, struct stook_span *span, size_t bytes);

/* ---- purge.c ---- */
/* Called after a give, without the lock: drops the content of @big, a free span just coalesced, beyond the allowance. */
void stook_pages_purge_big(struct stook_pages_node *node);
/* @bytes without content were handed out: where more than the allowance lies free, as much will be dropped. */
void stook_pages_owe(struct stook_pages_node *node, size_t bytes);
extern enum stook_thp stook_pages_thp;

#endif
