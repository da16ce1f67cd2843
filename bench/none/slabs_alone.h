/*
 * bench/none/slabs_alone.h - a cache of a library that has no code for sheaves: a rival
 *
 * Purpose: what a cache without sheaves (STOOK_CACHE_NO_SHEAVES) would cost if sheaves did not
 * exist. The kernel's table says that the unused code costs such a cache at most 2.4 %. Both sides
 * use the same slabs of the same cache. This side has what a library without sheaves cannot do
 * without either: it tests that the object is the cache's, makes the gate's check, and counts. It
 * has no sections, no slot, no barn, and no flags of a slow call.
 */
#ifndef SLABS_ALONE_H
#define SLABS_ALONE_H

#ifdef __cplusplus
extern "C" {
#endif

struct stook_cache;

/* Of a cache made with STOOK_CACHE_NO_SHEAVES. NULL: no memory. */
void *slabs_alone_alloc(struct stook_cache *cache);
void  slabs_alone_free(struct stook_cache *cache, void *object);

#ifdef __cplusplus
}
#endif
#endif
