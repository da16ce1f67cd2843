/*
 * Purpose: where memory comes from: address space of ours, and memory behind it, as new spans.
 * Memory flows from here to pages/span.h, and from there to pages/purge.h. Calls enter at span.h,
 * which calls this when the bins have nothing.
 *
 *   stook_range_bump            fresh address space of a node, from a frontier that only moves up
 *    -> stook_pages_reserve     a span of it, or one of reserved address space that became free
 *     -> stook_pages_grow       the same with pages behind it, some ahead of use: for the bins
 *     -> stook_span_take_own    the same with headroom, for one large object: past the bins
 *
 * Place: span.c calls it; range.c, span_grow.c and own_mapping.c are behind it. They call
 *  os. No lock is held over a system call.
 * Failure: NULL: no address space or no memory; nothing changed.
 */
#ifndef STOOK_SOURCE_H
#define STOOK_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "pages/pagemap.h"

struct stook_pages_node;
struct stook_span;

/* ---- range.c: address space of ours ---- */

#define STOOK_RANGES_MAX 64

struct stook_range_record {
        uintptr_t base;                         /* range.c M1 */
        uintptr_t size;                         /* atomic: range.c M1, space_limit.c M1 */
        /* Atomic: range.c I2. For range 0, stook_range.bytes is its copy. */
        uintptr_t bytes;
        uintptr_t frontier;                     /* atomic: first byte never handed out, from base */
        uint64_t *entries;                      /* range.c M1 */
        uint32_t  state;                        /* range.c M1: 0 free, 1 being made, 2 READY */
        uint32_t  node;                         /* range.c M1: all of it is of this node */
        /* Atomic: the node's policy was set up to here, from base. */
        uintptr_t placed;
};

/* Reserves the first range. False: no address space. */
bool stook_ranges_start(void);

/*
 * Address space for metadata, reserved together with the first range in one call. 0: none, because
 * limits bind.
 */
#define STOOK_RANGES_BESIDE ((size_t)32 << 30)
uintptr_t stook_ranges_beside(void);
/*
 * To be called before the map, or the metadata there, can be touched up to @reach bytes from its
 * start: no huge pages then.
 */
void stook_ranges_grown(size_t reach);

/*
 * Takes @bytes of fresh address space of @node, aligned to @align. Its map is ready; there is no
 * memory behind it. *@gap and *@gap_bytes (0: none) are what lies between the frontier and the
 * aligned start: that is the caller's, too. Return: its start; 0: no address space.
 */
uintptr_t stook_range_bump(unsigned node, size_t bytes, size_t align, uintptr_t *gap,
                           size_t *gap_bytes);

/* True: limits bind, so address space is not taken ahead of use. */
bool stook_ranges_limited(void);
/*
 * From here on a piece has at most @share bytes (or what one request needs); 0: no limit binds.
 * @aside: what the first ranges have left is not used, because the system has counted it already.
 */
void stook_ranges_limit(size_t share, bool aside);
/* Bytes of the map of a range of @range_bytes. */
STOOK_INLINE size_t stook_map_bytes(size_t range_bytes)
{
        return range_bytes >> STOOK_MAP_SHIFT << 3;
}

/* Atomic: threads that make pages of the map or of metadata writable (space_limit.c M1). */
extern uint32_t stook_space_reaching STOOK_HIDDEN;
STOOK_INLINE void stook_space_begin(void)
{
        __atomic_fetch_add(&stook_space_reaching, 1, __ATOMIC_SEQ_CST);
}

STOOK_INLINE void stook_space_end(void)
{
        __atomic_fetch_sub(&stook_space_reaching, 1, __ATOMIC_RELEASE);
}

/* True: fresh address space would come right at @addr. A hint. */
bool stook_range_frontier_is(uintptr_t addr);

/* Where fresh address space of @node comes next, if it fits there; 0: nowhere yet. A hint. */
uintptr_t stook_range_frontier(unsigned node);

struct stook_range_record *stook_range_of(uintptr_t addr);       /* NULL: not ours */
unsigned stook_ranges_count(void);
size_t stook_ranges_reserved(void);

/* ---- space_limit.c ---- */
/* In the child of a fork that does not have the other threads. */
void stook_space_forked(void);

/* ---- range.c: memory behind it ---- */

/* After the topology is known: finds out whether pages can be placed. */
void stook_range_prefer_start(void);

/*
 * Asks the system to take the pages of this part, of which none was touched yet, from @node. On a
 * machine with one node it does nothing.
 */
void stook_range_prefer_node(uintptr_t start, size_t bytes, unsigned node);

/* Pages that read as zeros. False: no memory. */
bool stook_range_commit(uintptr_t start, size_t bytes);
/* PROT_NONE again, and no memory. False: it is committed still, with any content. */
bool stook_range_decommit(uintptr_t start, size_t bytes, unsigned node);
/*
 * Fresh pages for what mremap emptied: its old mapping never merges with its neighbours. False: no
 * memory, and it may have no access.
 */
bool stook_range_renew(uintptr_t start, size_t bytes, unsigned node);

/* ---- span_grow.c: both in hands (pages_node.h) ---- */

/*
 * @bytes or more of fresh clean memory, aligned to @align (a power of two, a page or more), kind
 * MOVING, the caller's. They are for a request of @request bytes; free memory in front of them
 * has the rest.
 */
struct stook_span *stook_pages_grow(struct stook_pages_node *node, size_t bytes, size_t request,
                                    size_t align);
/*
 * @rest is what growth for a request of @request bytes got beyond it. A large object makes it
 * resident if a huge page has a part of both. Then it is dirty from the start: so it joins with the
 * object when that is freed, and is purged with it.
 */
void stook_pages_grown_beyond(struct stook_span *rest, size_t request);
/* @bytes of address space without memory, kind MOVING, the caller's. */
struct stook_span *stook_pages_reserve(struct stook_pages_node *node, size_t bytes, size_t align);

/* ---- own_mapping.c ---- */

void stook_own_give(struct stook_pages_node *node, struct stook_span *span);
/* In place. False: no room or no memory; nothing changed. */
bool stook_own_resize(struct stook_pages_node *node, struct stook_span *span, size_t bytes);

#endif
