/*
 * Purpose: objects above the largest class: each is a span of its own, at its start.
 * Place: called by the rest of malloc, and by bulk frees through a table; calls pages.
 * Invariants:
 *  I1 a live large object is a span of kind LARGE. What ends its life changes the kind by one
 *     compare-and-swap, so of two frees at once only one succeeds.
 */
#ifndef STOOK_LARGE_H
#define STOOK_LARGE_H

#include <stdbool.h>
#include <stddef.h>
#include "cache/cache_slow.h"
#include "pages/span.h"

/*
 * @align: a power of two. @how: ZERO, NOLOCK, ERRNO. NULL: no memory, over a limit, or too large.
 */
void *stook_large_alloc(size_t align, size_t size, uint64_t how);

/*
 * Ends the life of the object that begins at @object. False: none does, or another call ended it
 * (I1).
 */
bool stook_large_free(void *object, uint64_t how);

/*
 * The same where large objects have debug modes, for a user that names the bytes that it asked for.
 * False: they have none, or no object begins there.
 */
bool stook_large_free_sized(void *object, size_t size);

/*
 * @size: above half of the span's bytes, or above STOOK_CLASS_MAX. NULL: no memory, nothing
 * changed.
 */
void *stook_large_resize(struct stook_span *span, size_t size);
/*
 * A shrink that finds no memory for a smaller object: the object stays where it is, and counts as
 * one of @size bytes from here on. NULL: a debug mode found the object at fault.
 */
void *stook_large_stays(struct stook_span *span, size_t size);

#endif
