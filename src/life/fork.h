/*
 * Purpose: fork: what start.c needs of fork.c.
 */
#ifndef STOOK_FORK_H
#define STOOK_FORK_H

#include <stdbool.h>

/* Maps the page that says "forked". False: no memory. */
bool stook_fork_start(void);
/* Asks libc to call us around fork; may allocate. */
void stook_fork_register(void);

#endif
