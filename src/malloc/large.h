/*
 * Purpose: objects above the largest class: each is a span of its own, at its start.
 * Place: called by the rest of malloc; calls pages.
 * Invariants:
 *  I1 a live large object is a span of kind LARGE; who ends its life changes the kind by one compare-and-swap,
 *     so of two frees at once only one succeeds.
 */
#ifndef STOOK_LARGE_H
#define STOOK_LARGE_H

#include <stdbool.h>
#include <stddef.h>
#include "pages/span.h"

/* @align: a power of two. NULL: no memory, or too large. */
void *stook_large_alloc(size_t align, size_t size, bool zeroed);

/* Ends the life of the object; false: somebody else did (I1). */
bool stook_large_free(struct stook_span *span);

/* @size above STOOK_CLASS_MAX. NULL: no memory, nothing changed. */
void *stook_large_resize(struct stook_span *span, size_t size);

#endif
