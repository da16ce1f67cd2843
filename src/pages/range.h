/*
 * Purpose: address space of ours.
 * One huge range where it can be had (1 TiB, or a quarter of a smaller address space, halved until
 * it fits). Where a limit binds (RLIMIT_AS, RLIMIT_MEMLOCK), or new mappings are locked, pieces on
 * demand, from 64 MiB, doubling. (Strict overcommit counts what may be written, not address space:
 * pages are committed in small steps anyway.) Each range has its share of the pagemap beside it,
 * and a frontier that only moves up. On several nodes the huge range is cut into ranges of one
 * size, one for each node with memory (stook_node_ranges). A piece is of one node.
 * Invariants:
 *  I1 nothing inside a range is ever unmapped or given back, with the exception in span.h I3;
 *     address space below the frontier that has no memory behind it is PROT_NONE.
 *  I2 the map is readable and writable up to `bytes`, which covers all address space that was
 *     handed out.
 * Concurrency: lock-free: address space is taken by compare-and-swap on the frontier (any
 *  instruction).
 *  M1: a range's fields are written before `state` becomes READY (release), and read after it
 *  (acquire).
 */
#ifndef STOOK_RANGE_H
#define STOOK_RANGE_H

#include <stdbool.h>
#include "pages/pagemap.h"

#define STOOK_RANGES_MAX 64

struct stook_range_record {
        uintptr_t base, size;                   /* M1 */
        /* Atomic: I2. For range 0, stook_range.bytes is its copy. */
        uintptr_t bytes;
        uintptr_t frontier;                     /* atomic: first byte never handed out, from base */
        uint64_t *entries;                      /* M1 */
        uint32_t  state;                        /* M1: 0 free, 1 being made, 2 READY */
        uint32_t  node;                         /* M1: all of it is of this node */
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

/* True: fresh address space would come right at @addr. A hint. */
bool stook_range_frontier_is(uintptr_t addr);

/* Where fresh address space of @node comes next, if it fits there; 0: nowhere yet. A hint. */
uintptr_t stook_range_frontier(unsigned node);

struct stook_range_record *stook_range_of(uintptr_t addr);       /* NULL: not ours */
unsigned stook_ranges_count(void);
size_t stook_ranges_reserved(void);

#endif
