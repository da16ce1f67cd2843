/*
 * Purpose: what cannot be so in a sound heap, found in one look at it (heap.h, HEAP_OBJECTS).
 * In a process that runs, a look may catch a change half way. So one look proves nothing: see
 * cmd_check.c.
 */
#ifndef STOOK_CLI_HEAP_CHECK_H
#define STOOK_CLI_HEAP_CHECK_H

#include "cli/heap/heap.h"

/*
 * Adds to heap->oddities. The checks, named as in src/inspect/validate.c and validate_slabs.c:
 *  C1 bits without an object are set        C2 a part with free objects is listed or claimed, a
 *  part without is not listed               C5 slabs do not overlap
 *  V1 a sheaf is not over its capacity, is in one place, and slots have sheaves of their cache
 *  V2 an object in a sheaf is an object of its cache, is out of its slab, and in no other sheaf
 *  V4 sheaves in barns are full or empty    V7 the count of slabs is that of the descriptors
 * and, of caches with debug modes, red zones, poison and states of all objects.
 * Return: 0; -ENOMEM.
 */
int heap_check(struct heap *heap);

#endif
