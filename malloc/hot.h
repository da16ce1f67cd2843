/*
 * Purpose: what stands between the drop-in's malloc and free (hot_x86_64.S, hot_aarch64.c) and the rest.
 */
#ifndef STOOK_DROP_IN_HOT_H
#define STOOK_DROP_IN_HOT_H

#include <stddef.h>

void *malloc(size_t size);
void  free(void *object);

/* entry.c: a free that is not the common case: NULL, large, foreign, misuse, or a slot that has no room. */
void stook_drop_in_free_miss(void *object);

#endif
