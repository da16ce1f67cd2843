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

/* Const after the start: what is watched about large objects (cache/cache_watch.h). */
extern struct stook_large_options {
        bool watched;           /* each call is shown to the watch */
        bool exact;             /* sizes are not rounded: what lies behind an object is checked */
        bool guarded;           /* spans have guards */
} stook_large_options STOOK_HIDDEN;

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
 * @size: above half of the span's bytes, or above STOOK_CLASS_MAX. NULL: no memory, nothing
 * changed.
 */
void *stook_large_resize(struct stook_span *span, size_t size);
/* Is it worth while to split a span of @bytes for an object of @size? */
bool stook_large_is_worth_shrinking(size_t bytes, size_t size);

/* The steps of an allocation and a free, for the watch. */
/* A span, charged to the group of this thread, that is no object yet. NULL: no memory. */
struct stook_span *stook_large_take(size_t align, size_t size, uint64_t how);
/* It is an object of @size from here on. */
void stook_large_begin(struct stook_span *span, size_t size);
/* False: another call ended its life (I1). */
bool stook_large_end(struct stook_span *span);
/* After the end: uncharges what was an object, and gives its span to the pages. */
void stook_large_give(struct stook_span *span, uint64_t how);

#endif
