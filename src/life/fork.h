/*
 * Purpose: fork: what start.c needs of fork.c.
 */
#ifndef STOOK_FORK_H
#define STOOK_FORK_H

#include <stdbool.h>

/* Maps the page that says "forked". False: no memory. */
bool stook_fork_start(void);
/* The duties that life hands to the gate: after a jump out of a handler; in a forked child. */
void stook_fork_recover(void);
void stook_fork_repair(void);
/* pthread_atfork, or what the drop-in has for it. */
typedef int stook_fork_registrar(void (*prepare)(void), void (*parent)(void), void (*child)(void));
/* Asks libc to call us around fork; may allocate. */
void stook_fork_register(stook_fork_registrar *registrar);
/* Defined in the drop-in alone, which registers later than the constructor (dropin/fork.c). */
extern const bool stook_fork_registers_late __attribute__((weak, visibility("hidden")));

#endif
