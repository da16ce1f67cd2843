/*
 * Purpose: malloc where classes are watched, and large objects that are. STOOK_DEBUG knows large
 * objects by the name "malloc-large". Their debug modes are what debug/debug_modes.h says of an
 * object of a cache, on a span:
 *
 *      what was asked for | red zone | tail                    to the end of the span
 *
 * There is no red zone before the object, which begins with a page. A free large object has no
 * state, for its span is given back. In the quarantine it is a span of kind LARGE still.
 * Place: called through stook_watch_duties, by life at start, and by inspect; calls malloc and
 *  debug.
 * Concurrency: as debug_modes.h. The flags are const after the start.
 */
#ifndef STOOK_WATCH_MALLOC_H
#define STOOK_WATCH_MALLOC_H

#include "malloc/malloc.h"
#include "watch/watch.h"

extern uint64_t stook_large_debug STOOK_HIDDEN; /* STOOK_DEBUG_*: of large objects; 0: none */

/* At start: what options ask for; makes the caches of watched classes. */
void stook_watch_start(void);

/* ---- stook_watch_duties ---- */
void *stook_watch_malloc(size_t size, uint16_t group, uint64_t how);
void *stook_watch_resize(struct stook_cache *cache, void *object, size_t size, size_t usable,
                         int *error);
void *stook_watch_large_alloc(size_t align, size_t size, uint64_t how);
bool stook_watch_large_free(struct stook_span *span, uint64_t how);
bool stook_watch_large_free_sized(struct stook_span *span, size_t size);
void *stook_watch_large_resize(struct stook_span *span, size_t size, size_t usable);
size_t stook_watch_large_usable(const struct stook_span *span);

/* A large object leaves the quarantine. Returns its bytes. */
size_t stook_watch_large_leave(void *object, uint64_t how);

/*
 * Checks all large objects, also in the quarantine; quiescent. Returns faults found, each of which
 * is reported.
 */
int stook_large_debug_validate(void);
/* The number of the call stack that allocated it (stack/stack.h); 0: not known. */
uint32_t stook_large_stack(const struct stook_span *span);

#endif
