/*
 * Purpose: debug modes of large objects, which STOOK_DEBUG knows by the name "malloc-large": what
 * debug/debug_modes.h says of an object of a cache, on a span.
 * Place: called by large.c, realloc, usable sizes, the search for leaks and checks of all objects;
 *  calls debug.
 *
 *      what was asked for | red zone | tail                    to the end of the span
 *
 * There is no red zone before the object, which begins with a page. A free large object has no
 * state, for its span is given back. In the quarantine it is a span of kind LARGE still.
 * Concurrency: as debug_modes.h. The flags are const after the start.
 */
#ifndef STOOK_LARGE_DEBUG_H
#define STOOK_LARGE_DEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include "debug/debug_modes.h"
#include "pages/span.h"

extern uint64_t stook_large_debug STOOK_HIDDEN;         /* STOOK_DEBUG_*; 0: none of this holds */

/* At start. */
void stook_large_debug_start(void);

/* Bytes of a span behind those that are asked for. */
STOOK_INLINE size_t stook_large_debug_room(void)
{
        return STOOK_UNLIKELY(stook_large_debug) ? stook_debug_large_room(stook_large_debug) : 0;
}

/* A span, all of which is open (process/checker.h), becomes an object of @requested bytes. */
void stook_large_debug_alloc(struct stook_span *span, size_t requested);
/* What becomes of the object that a user frees. */
enum stook_debug_freed stook_large_debug_free(struct stook_span *span,
                                              struct stook_debug_free how);
/* Out of the quarantine. False: it was at fault, and is isolated. */
bool stook_large_debug_leave(struct stook_span *span);
/* Another size, in place. False: it was at fault, or is no live object. */
bool stook_large_debug_resize(struct stook_span *span, size_t requested);

/*
 * Checks all large objects, also in the quarantine; quiescent. Returns faults found, each of which
 * is reported.
 */
int stook_large_debug_validate(void);

/*
 * Of any large object: the bytes that its user may use. STOOK_NO_OBJECT: it is none, with debug
 * modes.
 */
size_t stook_large_usable(const struct stook_span *span);
/* The number of the call stack that allocated it (stack/stack.h); 0: not known. */
uint32_t stook_large_stack(const struct stook_span *span);

#endif
