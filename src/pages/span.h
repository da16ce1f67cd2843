/*
 * Purpose: runs of pages, taken and given back: the unit of the slab layer and of large
 * allocations. Memory flows pages/source.h -> here -> pages/purge.h. Calls enter here.
 * Place: called by slab (slab_birth), special (runs), malloc (large objects), cache and rcu (large
 * objects in bulk frees and frees by RCU), harden (guards), barn (bytes in use) and life (start,
 * fork). Calls source.h when the bins have nothing.
 * Inside: a node's free spans are in bins by size, lowest address first (bins.c). They are
 * coalesced through the pagemap. Their states are zero, dirty, purged. A span above 32 MiB has a
 * mapping of its own inside the range (own_mapping.c). No hole is ever left in a range.
 *
 * Invariants:
 *  I1 a span is in exactly one place: with a user, in a bin, on the pending stack, or in the hands
 *     of one thread.
 *  I2 free neighbours of the same node and the same set (dirty; clean: zero or purged; reserved)
 *     are coalesced, unless a thread has one of them in hands. Dirty and clean neighbours stay
 *     apart until the dirty one is purged, so that a clean span never has to be written to be zero.
 *     A take that finds neither joins them (bins.c).
 *  I3 nothing inside our ranges is ever unmapped, but for the target of a move that the system
 *     refused (own_mapping.c); the lock is never held over a system call.
 *  I4 descriptors live in metadata, never in the pages they describe; 128 bytes, aligned to 128.
 * Concurrency: one lock for each node (base/lock.h). A thread that cannot have it takes from the
 *  pending stack or bumps fresh address space, and gives to the pending stack, which the next
 *  holder empties.
 * Failure: NULL: no memory; nothing changed.
 */
#ifndef STOOK_SPAN_H
#define STOOK_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/list.h"
#include "base/pair.h"
#include "base/tagged_stack.h"

/*
 * The last two have the number of the span's node added, and are written under that node's lock
 * only. So one load says whether a descriptor is in the bins of a node, and under the node's lock
 * it stays so. The field `node` beside it would not do: an entry of the map may be stale and lead
 * to the descriptor of another node's span, which becomes another span between two loads.
 */
enum stook_span_kind {
        STOOK_SPAN_UNUSED = 0,          /* descriptor on its free stack */
        STOOK_SPAN_MOVING,              /* free, but pending or in a thread's hands */
        STOOK_SPAN_TAKEN,               /* taken, its user has not said what it is */
        STOOK_SPAN_SLAB,
        STOOK_SPAN_LARGE,               /* one object of malloc */
        STOOK_SPAN_FREE = 64,           /* in a bin */
        STOOK_SPAN_LOOSE = 128,         /* free, the bins are being made anew */
};

enum stook_span_state {
        STOOK_SPAN_ZERO,                /* never touched since mapped: reads as zeros */
        STOOK_SPAN_DIRTY,
        STOOK_SPAN_PURGED,              /* content dropped: reads as zeros, costs a fault */
        STOOK_SPAN_RESERVED,            /* page layer only: address space without memory */
};

struct stook_rcu;
struct stook_heap;
struct stook_sample;

#define STOOK_SPAN_USE_BYTES  32
#define STOOK_SPAN_SLAB_BYTES 48
#define STOOK_SPAN_PAIRS      2

/* What is known of a span that is no slab, by what it is. Zeros when it is taken. */
union stook_span_use {
        /* FREE: its place in a bin (bins.c). */
        struct stook_span_links {
                struct stook_span *child, *next;
        } links;
        /* UNUSED: atomic, a hint: a descriptor that was freed before this one (meta.c). */
        struct stook_span *ahead;
        /* LARGE, the owner's */
        struct {
                uint16_t group;         /* that is charged its bytes; 0: none */
                uint8_t  guarded;       /* enum stook_guarded_by (harden/harden.h); 0: no guards */
                /* 1: no content of it is left when it was given (own_mapping.c) */
                uint8_t  wiped;
                /* Bytes behind what was asked for (watch_large.c, sample/), and before it. */
                uint16_t slack, lead;
                uint8_t  made_by;       /* enum stook_entry_point */
                /* Atomic: the heap of the object; NULL: none. */
                struct stook_heap *heap;
                struct stook_sample *sample;    /* what is known of it as a sample; NULL: none */
        };
        /*
         * It was a slab of a type-stable cache and waits for readers (rcu/rcu_submit.c): by which
         * implementation; NULL: the process's
         */
        const struct stook_rcu *rcu;
        char bytes[STOOK_SPAN_USE_BYTES];
};

struct stook_span {
        uintptr_t start;                /* const while taken */
        size_t    bytes;                /* const while taken, but for stook_span_resize */
        /* enum stook_span_kind, and a node; atomic: written by the owner, read by lookups. */
        uint8_t   kind;
        /* enum stook_span_state; the owner's. In a taken span: as it was when taken. */
        uint8_t   state;
        uint8_t   node;                 /* const while taken */
        uint8_t   own_mapping;          /* a mapping of its own (large), const while taken */
        union {
                uint32_t dirty_since_ms; /* page layer, while free: when it became so */
                uint32_t heap_entry;    /* atomic: while it is of a heap: its place there */
        };
        union {
                /* Page layer: pending and free descriptors; the user's while taken. */
                struct stook_link link;
                /* In a bin, and not a root: the word that leads here (bins.c). */
                struct stook_span **holder;
        };
        struct stook_list list;         /* page layer while free; the user's while taken */
        union {
                struct {
                        union stook_span_use use;
                        /* Own mapping: bytes of address space, from start. */
                        uintptr_t reserved;
                        /* Own mapping: bytes of it that have memory behind them. */
                        uintptr_t committed;
                };
                /* Of a slab, which never has an own mapping: its descriptor. */
                char slab[STOOK_SPAN_SLAB_BYTES];
        };
        /*
         * The slab layer's alone. These words keep their values while the descriptor is free or
         * serves another span: they hold generations, which must never repeat (slab/slab_state.h).
         */
        struct stook_pair pair[STOOK_SPAN_PAIRS];
} STOOK_ALIGNED(128);

_Static_assert(sizeof(struct stook_span) == 128, "a descriptor is two cache lines");

/* The kind without the node. */
static inline enum stook_span_kind stook_span_kind_of(const struct stook_span *span)
{
        uint8_t kind = __atomic_load_n(&span->kind, __ATOMIC_RELAXED);

        return kind < STOOK_SPAN_FREE ? kind : kind & (STOOK_SPAN_FREE | STOOK_SPAN_LOOSE);
}

/* Descriptors made at once: with the word on them 4 KiB. */
#define STOOK_SPAN_BLOCK 31

/*
 * What a walk over descriptors reads late, and then makes nothing of: it looks whether a descriptor
 * is a slab of its list or cache, while the descriptor may come to serve another span
 * (slab_fork.c, slab_objects.c). So these fields are written atomically wherever they are written.
 */
static inline void stook_span_set_node(struct stook_span *span, uint8_t node)
{
        __atomic_store_n(&span->node, node, __ATOMIC_RELAXED);
}

static inline void stook_span_set_age(struct stook_span *span, uint32_t since_ms)
{
        __atomic_store_n(&span->dirty_since_ms, since_ms, __ATOMIC_RELAXED);
}

/* @at: the words `use` or `slab`; @bytes: a multiple of 8. */
static inline void stook_span_clear(void *at, size_t bytes)
{
        for (uint64_t *word = at; bytes; word++, bytes -= sizeof(*word))
                __atomic_store_n(word, 0, __ATOMIC_RELAXED);
}

struct stook_span_block {
        struct stook_link link;         /* const once listed: the block made before it */
        struct stook_span span[STOOK_SPAN_BLOCK];
};
_Static_assert(sizeof(struct stook_span_block) == 4096,
               "a block is a page where pages are small, and wastes none where they are not");

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
 * All spans of a chain, linked by `link`: of one node, none with a mapping of its own. It purges
 * nothing: slabs are given where no call may wait. What frees many objects purges when it is done
 * (stook_pages_purge_excess).
 */
void stook_span_give_chain(struct stook_link *first);
/*
 * stook_span_take_some() - up to @n spans of @bytes each in one hold of the lock
 * They come from the bins only. A free span is found as by stook_span_take, and is cut into as many
 * as are wanted or as it holds; then the next one is found. @n: at most STOOK_SPAN_SOME.
 * Return: spans in @spans. Fewer than @n: too little lies free, or the lock is not to be had; then
 * it may be none, and stook_span_take gets one.
 */
#define STOOK_SPAN_SOME 8
unsigned stook_span_take_some(unsigned node, size_t bytes, unsigned n, struct stook_span **spans);

/*
 * stook_span_resize() - grow or shrink in place
 * True: span->bytes is now @bytes rounded up to pages. Growing needs free pages behind it.
 */
bool stook_span_resize(struct stook_span *span, size_t bytes);

/*
 * stook_span_move() - a span of @bytes with the first min(old, new) bytes of @span's content
 * It moves pages by mremap where the span is large enough for that to pay, else it copies. On
 * success @span is given back. NULL: no memory, @span is as it was. In own_mapping.c.
 */
struct stook_span *stook_span_move(struct stook_span *span, size_t bytes);

/*
 * A TAKEN span with a mapping of its own; behind it @headroom bytes of address space that no access
 * may reach, for its growth. In own_mapping.c.
 */
struct stook_span *stook_span_take_own(unsigned node, size_t bytes, size_t align, size_t headroom);

/*
 * Cuts a taken span, with waits forbidden: its first @bytes stay. Return: the rest, which is TAKEN,
 * too. @spare: a descriptor for it.
 */
struct stook_span *stook_span_cut(struct stook_span *span, size_t bytes, struct stook_span *spare);

/*
 * Neighbours of @piece bytes each, linked by `link`, the lowest first. Together they are @bytes,
 * and are aligned to that. @bytes: a power of two, at most 32 MiB; @piece divides it, and is a
 * multiple of the page. @huge: the system is asked for huge pages, unless STOOK_THP says never.
 * NULL: no memory. stook_span_give_chain takes all of them, or each by itself.
 */
struct stook_link *stook_span_take_run(unsigned node, size_t bytes, size_t piece, bool huge);
/*
 * Memory of a whole run that is to be given, after a user mapped something else there: fresh pages.
 * The spans may be chained in any order; @bytes is a power of two, and the run's alignment.
 * False: the system refuses, and the run must never be given.
 */
bool stook_span_renew_run(struct stook_link *first, size_t bytes);

/* Writable memory that reads as zeros needs no memset. */
static inline bool stook_span_is_zero(const struct stook_span *span)
{
        return span->state != STOOK_SPAN_DIRTY;
}

#define STOOK_SPAN_TOLD_WRITTEN ((size_t)2 << 20)
void stook_span_fresh_will_be_written(const struct stook_span *span);     /* advice.c */
/*
 * @span, which is its caller's, was not asked for as zeros: all of it will be written. It may come
 * in huge pages, also where nothing tells yet whether large objects are written.
 */
static inline void stook_span_will_be_written(const struct stook_span *span)
{
        if (span->bytes >= STOOK_SPAN_TOLD_WRITTEN && span->state == STOOK_SPAN_ZERO)
                stook_span_fresh_will_be_written(span);
}

/*
 * The span of the live large object that starts at @addr, or NULL. For lookups whose entry has no
 * cache index.
 */
struct stook_span *stook_span_large_at(uintptr_t addr);

/* Makes the first reservation. False: no memory at all. Called once by life/start. */
bool stook_pages_start(void);
/*
 * Before the start: pages come from the nodes that callers name, although the task has a memory
 * policy. For callers that follow it themselves (STOOK_STRICT_NUMA). In range.c.
 */
void stook_pages_place_over_policy(bool over);

/*
 * The program has set a limit of address space, or lifted it: space_limit.c. Any thread of the
 * process that the limit is of.
 */
void stook_space_limit_changed(void);

/* Bytes of a node that are with users (slabs, empty ones too, and large objects). In span.c. */
size_t stook_pages_taken(unsigned node);
struct stook_pages_stats {
        size_t reserved_bytes, committed_bytes, taken_bytes, free_dirty_bytes, free_clean_bytes,
                metadata_bytes;
        /* The last four are sums: policy/ledger.h. */
        size_t free_spans, ranges, taken_peak_bytes, purged_bytes, purges, refaulted_bytes;
};
void stook_pages_stats(struct stook_pages_stats *stats);

/*
 * For fork: takes all locks of the layer in order (false: one could not be had; those that were
 * taken are dropped), and drops them in the parent.
 */
bool stook_pages_fork_prepare(void);
void stook_pages_fork_parent(void);
/*
 * @whole: prepare had everything. Otherwise lock words are reset and the bins rebuilt from the
 * descriptors.
 */
void stook_pages_fork_child(bool whole);

#endif
