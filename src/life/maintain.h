/*
 * Purpose: rounds of maintenance, and the thread that runs them for programs that ask for it.
 */
#ifndef STOOK_MAINTAIN_H
#define STOOK_MAINTAIN_H

#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"

/* One round; the library is up. Return: 0: there was nothing to do. */
unsigned stook_maintain_round(void);
/*
 * Starts the thread if it is wanted and this is a forked child, which has none. Not for handlers,
 * nor inside malloc.
 */
void stook_maintenance_revive(void);
/* Atomic: id of the process that has the thread; 0: none. A forked child has its parent's id. */
extern uint32_t stook_maintenance_process STOOK_HIDDEN;
/* stook_trim, after the start of the library. */
size_t stook_trim_now(size_t keep_bytes);

#endif
