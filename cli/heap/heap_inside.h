/*
 * Purpose: the steps of one look at a heap, for heap.c; see heap.h.
 * Each returns 0 or -errno; what it made so far belongs to the heap.
 */
#ifndef STOOK_CLI_HEAP_INSIDE_H
#define STOOK_CLI_HEAP_INSIDE_H

#include "cli/heap/heap.h"

/* heap_sheaves.c: all sheaves; with HEAP_OBJECTS their objects. */
int heap_read_sheaves(struct heap *heap);
/* heap_places.c: where each sheaf is: in which slot, or in which barn. */
int heap_read_places(struct heap *heap);
/* heap_slabs.c: all spans: slabs, large objects, free pages. */
int heap_read_slabs(struct heap *heap);
/* heap_groups.c */
int heap_read_groups(struct heap *heap);
/* heap_heaps.c: after the caches, with their figures. */
int heap_read_heaps(struct heap *heap);
/* heap_debug.c: for heap_check.c. False: no memory. */
bool heap_check_debug(struct heap *heap);

/* Notes what no sound heap shows. False: no memory. */
bool heap_note(struct heap *heap, const char *what, uint64_t address, unsigned cache);

/*
 * Room for one more of an array of @count; it doubles. False: no memory.
 * More than HEAP_ITEMS_MAX are garbage: false, too.
 */
#define HEAP_ITEMS_MAX ((size_t)1 << 28)
bool heap_more(void **items, size_t count, size_t item_bytes);

/*
 * Has a walk through a list been led round in a circle? Called with each element in turn. (R. P.
 * Brent, "An improved Monte Carlo factorization algorithm", 1980.)
 */
struct heap_circle {
        uint64_t seen, steps, power;
};
bool heap_in_circle(struct heap_circle *circle, uint64_t at);

static inline int heap_copy(struct heap *heap, const void *at, void *out, size_t bytes)
{
        return memory_read(heap->memory, (uint64_t)(uintptr_t)at, out, bytes);
}

#endif
