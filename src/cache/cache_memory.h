/*
 * Purpose: allocations of caches whose memory the program prepares itself (memory_in of
 * <stook/cache.h>). The slabs get such memory only for a caller that says so (STOOK_FILL_MAY_ASK).
 * Refills of sheaves do not. So the program's function runs in the slow calls of this layer, with
 * no lock held, and not where the call forbids callbacks.
 * Place: called by cache_slow.c and prefill.c, when all else found too few objects.
 * Concurrency: any thread; nothing is shared but what slabs are.
 * Failure: fewer objects than wanted.
 */
#ifndef STOOK_CACHE_MEMORY_H
#define STOOK_CACHE_MEMORY_H

#include "cache/cache_slow.h"

/*
 * @n objects, or none, with new memory if need be and @how allows that. Return: how many. They are
 * counted as an allocation's.
 */
STOOK_COLD size_t stook_alloc_with_memory(struct stook_cache *cache, size_t n, void **objects,
                                          uint64_t how);
/* The same for a sheaf that is to have @n objects, of @node if @how says THISNODE. */
STOOK_COLD void stook_fill_with_memory(struct stook_cache *cache, struct stook_sheaf *sheaf,
                                       size_t n, unsigned node, uint64_t how);

#endif
