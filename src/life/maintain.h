/*
 * Purpose: rounds of maintenance, and the thread that runs them for programs that ask for it.
 */
#ifndef STOOK_MAINTAIN_H
#define STOOK_MAINTAIN_H

#include <stddef.h>

/* One round; the library is up. Return: 0: there was nothing to do. */
unsigned stook_maintain_round(void);
/*
 * Starts the thread if it is wanted and this is a forked child, which has none. Not for handlers,
 * nor inside malloc.
 */
void stook_maintenance_revive(void);
/* stook_trim, after the start of the library. */
size_t stook_trim_now(size_t keep_bytes);

#endif
