/*
 * Purpose: address space of ours. One huge range where it can be had (1 TiB, halved until it fits); where a
 * limit binds (RLIMIT_AS, RLIMIT_MEMLOCK), or new mappings are locked, pieces on demand, 64 MiB doubling. (Strict
 * overcommit counts what may be written, not address space: pages are committed in small steps anyway.) Each range
 * has its part of the pagemap beside it, and a frontier that only moves up. On several nodes the huge range is cut
 * into a part for each node with memory, all of one size, and each part is a range here; a piece is of one node.
 * Invariants:
 *  I1 nothing inside a range is ever unmapped or given back; address space below the frontier that has no
 *     memory behind it is PROT_NONE.
 *  I2 the map is readable and writable up to `bytes`, which covers the frontier of whatever was handed out.
 * Concurrency: lock-free: address space is taken by compare-and-swap on the frontier (any instruction).
 *  M1: a range's fields are written before `state` becomes READY (release), and read after it (acquire).
 */
#ifndef STOOK_RANGE_H
#define STOOK_RANGE_H

#include <stdbool.h>
#include "pages/pagemap.h"

#define STOOK_RANGES_MAX 64

struct stook_range_table {
        uintptr_t base, size;                   /* M1 */
        uintptr_t bytes;                        /* atomic: I2. For range 0, stook_range.bytes is its copy */
        uintptr_t frontier;                     /* atomic: first byte never handed out, from base */
        uint64_t *entries;                      /* M1 */
        uint32_t  state;                        /* M1: 0 free, 1 being made, 2 READY */
        uint32_t  node;                         /* M1: all of it is of this node */
        uintptr_t placed;                       /* atomic: the node's policy was set up to here, from base */
};

/* Reserves the first range. False: no address space. */
bool stook_ranges_start(void);

/*
 * Takes @bytes of fresh address space of @node, aligned to @align, the map ready for it, no memory behind it. What lies
 * between the frontier and an aligned start is told in *@gap, *@gap_bytes (0: none): it is the caller's, too.
 * 0: no address space.
 */
uintptr_t stook_range_bump(unsigned node, size_t bytes, size_t align, uintptr_t *gap, size_t *gap_bytes);

/* True: limits bind; address space is not to be spent ahead of use. */
bool stook_ranges_limited(void);

/* True: fresh address space would come right at @addr. A hint. */
bool stook_range_frontier_is(uintptr_t addr);

struct stook_range_table *stook_range_of(uintptr_t addr);       /* NULL: not ours */
unsigned stook_ranges_count(void);
size_t stook_ranges_reserved(void);

#endif
