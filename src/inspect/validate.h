/*
 * Purpose: checks of single layers, for stook_validate_all, stook_cache_validate and tests. Each
 * returns the faults that it found.
 */
#ifndef STOOK_VALIDATE_H
#define STOOK_VALIDATE_H

struct stook_slabs;
struct stook_span;

/* Bins, bitmap, map and coalescing of all nodes, quiescent. @fault: NULL, or called for each. */
int stook_pages_validate(void (*fault)(const char *what, const struct stook_span *span));

/* Every slab's parts and list membership, quiescent; reports itself. */
int stook_slabs_validate(struct stook_slabs *slabs);

#endif
