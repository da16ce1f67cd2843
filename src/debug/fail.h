/*
 * Purpose: allocations that fail on purpose, so that a program's handling of ENOMEM can be tested.
 * STOOK_FAIL, or stook_set_fail() of <stook/debug.h>, says which.
 * Place: called by watch, for
 *  allocations that may fail; calls os. It knows no cache but by name.
 * Concurrency: any thread, any instruction. Each number is atomic and relaxed. Two calls at once
 *  may come in either order, and each is counted once.
 */
#ifndef STOOK_FAIL_H
#define STOOK_FAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At start: reads STOOK_FAIL. */
void stook_fail_read_options(void);

/* Was STOOK_FAIL given? Then caches whose names it names, or all, are watched. */
bool stook_fail_is_asked(void);

/* May allocations from a cache of that name fail? */
bool stook_fail_wants(const char *name);
#define STOOK_FAIL_LARGE "large"        /* the name of large objects */

/* At exit: one line for each name in STOOK_FAIL that no cache had. */
void stook_fail_tell_unused(void);

/*
 * Is this allocation of @bytes, from a cache or of malloc, to fail? The caller then does what it
 * does when there is no memory.
 */
bool stook_fail_strikes(const char *name, size_t bytes);
/* The same for a large object of malloc, which no cache marks. */
bool stook_fail_strikes_large(size_t bytes);

#endif
