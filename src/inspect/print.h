/*
 * Purpose: a cache's figures, groups and settings as text, from inside the process.
 * Place: print.c makes the text; print_when.c prints it at exit and on a signal (STOOK_PRINT).
 */
#ifndef STOOK_PRINT_H
#define STOOK_PRINT_H

#include <stddef.h>

/*
 * Gives the text to @put in pieces of whole lines. Any instruction, no lock held, nothing
 * allocated; figures of other threads' calls that are under way may be off.
 */
void stook_print_stats(void (*put)(const char *text, size_t bytes, void *data), void *data);

#endif
