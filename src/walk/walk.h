/*
 * Purpose: the walk over the objects of one cache that callers own, for walks over many; walk.c.
 */
#ifndef STOOK_WALK_H
#define STOOK_WALK_H

#include "cache/cache.h"

/* stook_cache_for_each_object(), of malloc's caches and heaps', too. @refusal: for reports. */
int stook_walk_objects(struct stook_cache *cache, int (*each)(void *object, void *data),
                       void *data, const char *refusal);

#endif
