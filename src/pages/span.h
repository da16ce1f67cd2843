/*
 * Purpose: runs of pages, taken and given back. The unit that the slab layer and large allocations get.
 * Place: called by slab (slab_birth), malloc's large objects, life (trim, fork); calls os (mappings).
 * Inside (docs/ARCHITECTURE.md has the way there): one huge range or pieces, no holes ever, free spans
 * in size bins with a bitmap, lowest address first, coalesced through the pagemap; states zero, dirty,
 * purged; purge by age, stepped by slow paths; mappings of their own inside the range above 32 MiB.
 *
 * Invariants:
 *  I1 a span is in exactly one place: with a user, in a bin, on the pending stack, or in the hands of one thread.
 *  I2 free neighbours of the same node and the same set (dirty; clean: zero or purged; reserved) are coalesced,
 *     but while one of them is in somebody's hands. Dirty and clean neighbours stay apart until the dirty one
 *     is purged, so that a clean span never has to be written to be zero.
 *  I3 nothing inside our ranges is ever unmapped; the lock is never held over a system call.
 *  I4 descriptors live in metadata, never in the pages they describe; 128 bytes, aligned to 128.
 * Concurrency: one lock for each node (base/lock.h). Who cannot have it takes from the pending stack or bumps
 *  fresh address space, and gives to the pending stack, which the next holder empties.
 * Failure: NULL: no memory; nothing changed.
 */
#ifndef STOOK_SPAN_H
#define STOOK_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/list.h"
#include "base/tagged_stack.h"

enum stook_span_kind {
        STOOK_SPAN_UNUSED = 0,          /* descriptor on its free stack */
        STOOK_SPAN_FREE,                /* in a bin */
        STOOK_SPAN_MOVING,              /* free, but pending or in somebody's hands */
        STOOK_SPAN_TAKEN,               /* taken, its user has not said what it is */
        STOOK_SPAN_SLAB,
        STOOK_SPAN_LARGE,               /* one object of malloc */
};

enum stook_span_state {
        STOOK_SPAN_ZERO,                /* never touched since mapped: reads as zeros */
        STOOK_SPAN_DIRTY,
        STOOK_SPAN_PURGED,              /* content dropped: reads as zeros, costs a fault */
        STOOK_SPAN_RESERVED,            /* page layer only: address space without memory */
};

#define STOOK_SPAN_USER_BYTES 64

struct stook_span {
        uintptr_t start;                /* const while taken */
        size_t    bytes;                /* const while taken, but for stook_span_resize */
        uint8_t   kind;                 /* enum stook_span_kind; atomic: written by the owner, read by lookups */
        uint8_t   state;                /* enum stook_span_state; the owner's. In a taken span: as it was when taken */
        uint8_t   node;                 /* const while taken */
        uint8_t   own_mapping;          /* a mapping of its own (large), const while taken */
        uint32_t  age_ms;               /* page layer, while free: when it became dirty and free */
        struct stook_link link;         /* page layer: pending and free descriptors; the user's while taken */
        struct stook_list list;         /* page layer while free; the user's while taken */
        uintptr_t reserved;             /* own mapping: bytes of address space, from start */
        uintptr_t committed;            /* own mapping: bytes of it that have memory behind them */
        char      user[STOOK_SPAN_USER_BYTES] STOOK_ALIGNED(64); /* the taker's: the slab descriptor's fields */
} STOOK_ALIGNED(128);

_Static_assert(sizeof(struct stook_span) == 128, "a descriptor is two cache lines");

/* Largest span taken from the bins; above this a mapping of its own. */
#define STOOK_SPAN_OWN_MAPPING ((size_t)32 << 20)

/*
 * stook_span_take() - @bytes of pages on @node
 * @bytes: at least 1, rounded up to system pages; @align: power of two, at most 1 GiB (0: a page)
 * The span's kind is TAKEN; its state says whether it reads as zeros (ZERO, PURGED).
 */
struct stook_span *stook_span_take(unsigned node, size_t bytes, size_t align);
void stook_span_give(struct stook_span *span);

/*
 * stook_span_resize() - grow or shrink in place
 * True: span->bytes is now @bytes rounded up to pages. Growing needs free pages behind it.
 */
bool stook_span_resize(struct stook_span *span, size_t bytes);

/*
 * stook_span_move() - a span of @bytes with the first min(old, new) bytes of @span's content
 * By mremap where the span is large enough for that to pay, else by copy. On success @span is given back.
 * NULL: no memory, @span is as it was.
 */
struct stook_span *stook_span_move(struct stook_span *span, size_t bytes);

/* Writable memory that reads as zeros needs no memset. */
static inline bool stook_span_is_zero(const struct stook_span *span)
{
        return span->state != STOOK_SPAN_DIRTY;
}

/* The live large span that starts at @addr, or NULL. For lookups whose entry has no cache index. */
struct stook_span *stook_span_large_at(uintptr_t addr);

/* Makes the first reservation. False: no memory at all. Called once by life/start. */
bool stook_pages_start(void);

/*
 * The clocks of all ageing, for the layers above: how long what nobody uses stays, in milliseconds; and how often
 * memory without content had to be handed out for a small part of what is in use, because nothing dirty fitted: that
 * is when idle memory is missed.
 */
uint32_t stook_pages_decay_ms(void);
uint32_t stook_pages_growths(void);
/* Bytes of a node that are with users, slabs that lie empty among them. */
size_t stook_pages_taken(unsigned node);
/* Purges what has been free longer than STOOK_DECAY_MS, a bounded step; called by slow paths with no lock held. */
void stook_pages_step(void);
/* Purges the largest free span if far more is free than is worth keeping; for who gave spans while waits were forbidden. */
void stook_pages_relieve(void);
/* All such steps that are due, for who has time. Return: spans that were tried. */
unsigned stook_pages_age(void);
/* Purges free spans until at most @keep_bytes of free memory may be resident. Returns bytes purged. */
size_t stook_pages_purge(size_t keep_bytes);
void stook_pages_set_decay_ms(uint32_t ms);
enum stook_thp { STOOK_THP_SYSTEM, STOOK_THP_ALWAYS, STOOK_THP_NEVER };
void stook_pages_set_thp(enum stook_thp policy);

struct stook_pages_stats {
        size_t reserved_bytes, committed_bytes, taken_bytes, free_dirty_bytes, free_clean_bytes, metadata_bytes;
        size_t free_spans, ranges;
};
void stook_pages_stats(struct stook_pages_stats *stats);

/* Checks bins, bitmap, map and coalescing of all nodes, quiescent. Returns faults found, calling @fault for each. */
int stook_pages_validate(void (*fault)(const char *what, const struct stook_span *span));

/* fork: all locks of the layer in order (false: one could not be had; what was taken is dropped), and after it. */
bool stook_pages_fork_prepare(void);
void stook_pages_fork_parent(void);
/* @whole: prepare had everything. Otherwise lock words are reset and the bins rebuilt from the descriptors. */
void stook_pages_fork_child(bool whole);

/* Test hooks: the n-th take from now, and every later one until reset to 0, returns NULL. */
extern long stook_span_fail_from;

#endif
