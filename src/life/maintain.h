/*
 * Purpose: rounds of maintenance, and the thread that runs them for programs that ask for it.
 */
#ifndef STOOK_MAINTAIN_H
#define STOOK_MAINTAIN_H

#include <stddef.h>

/* One round; the library is up. Return: 0: there was nothing to do. */
unsigned stook_maintain_round(void);
/* The thread is wanted, but this is the child of a fork, which has none: starts it. Not for handlers, nor inside malloc. */
void stook_maintenance_revive(void);
/* stook_trim for who has started the library. */
size_t stook_trim_now(size_t keep_bytes);

#endif
