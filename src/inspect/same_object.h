/*
 * Purpose: objects that are in an array more than once; for validate.c.
 * Concurrency: the caller's array.
 */
#ifndef STOOK_SAME_OBJECT_H
#define STOOK_SAME_OBJECT_H

#include <stddef.h>

/* Sorts the array; calls @each once for each object that is there more than once. */
void stook_same_objects(const void **object, size_t count,
                        void (*each)(const void *object, void *data), void *data);

#endif
