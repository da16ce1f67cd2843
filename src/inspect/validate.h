/*
 * Purpose: checks of single layers, for stook_validate_all and tests. Each returns the faults that
 * it found, and calls @fault for each.
 */
#ifndef STOOK_VALIDATE_H
#define STOOK_VALIDATE_H

struct stook_span;

/* Bins, bitmap, map and coalescing of all nodes, quiescent. @fault: NULL or not. */
int stook_pages_validate(void (*fault)(const char *what, const struct stook_span *span));

#endif
