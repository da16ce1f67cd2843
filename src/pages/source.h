/*
 * Purpose: first stage of the page layer: address space of ours, and memory behind it, as new
 * spans. (Second stage: pages/span.h. Third: pages/purge.h.)
 *
 *   stook_range_bump            fresh address space of a node, from a frontier that only moves up
 *    -> stook_pages_reserve     a span of it, or one of reserved address space that became free
 *     -> stook_pages_grow       the same with pages behind it, some ahead of use: for the bins
 *     -> stook_own_take         the same with headroom, for one large object: past the bins
 *
 * Place: span.c calls it; range.c, place.c, span_grow.c and own_mapping.c are behind it. They call
 *  os. No lock is held over a system call.
 * Failure: NULL: no address space or no memory; nothing changed.
 */
#ifndef STOOK_SOURCE_H
#define STOOK_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include "pages/range.h"

struct stook_pages_node;
struct stook_span;

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

/* A TAKEN span with a mapping of its own; @headroom bytes of address space behind it. */
struct stook_span *stook_own_take(struct stook_pages_node *node, size_t bytes, size_t align,
                                  size_t headroom);
void stook_own_give(struct stook_pages_node *node, struct stook_span *span);
/* In place. False: no room or no memory; nothing changed. */
bool stook_own_resize(struct stook_pages_node *node, struct stook_span *span, size_t bytes);

#endif
