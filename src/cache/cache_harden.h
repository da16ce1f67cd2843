/*
 * Purpose: what hardening (harden/harden.h) does to an object when it is allocated and freed, and
 * where an object lies that was freed before.
 * Place: called by cache_watch.c for hardened caches, and by reports of cache_free.c; reads slot,
 *  barn and slab.
 * Concurrency: any thread, any instruction. The search reads sheaves of other threads racily: their
 *  memory stays, so at worst it finds nothing.
 */
#ifndef STOOK_CACHE_HARDEN_H
#define STOOK_CACHE_HARDEN_H

#include "cache/cache.h"
#include "cache/cache_watch.h"
#include "harden/harden.h"

/* What makes a cache a watched one. */
#define STOOK_HARDEN_OBJECTS \
        (STOOK_HARDEN_DOUBLE | STOOK_HARDEN_ZERO_FREE | STOOK_HARDEN_ZERO_ALLOC)

STOOK_INLINE bool stook_cache_is_hardened(const struct stook_cache *cache)
{
        return cache->watch & STOOK_WATCH_HARDEN;
}

/* Content that outlives a free, or was made by a constructor, is never zeroed. */
STOOK_INLINE bool stook_cache_hardened_by(const struct stook_cache *cache, uint32_t zeroing)
{
        return stook_cache_is_hardened(cache) && stook_is_hardened(zeroing) && !cache->ctor &&
               !(cache->flags & STOOK_TYPESAFE_BY_RCU);
}

/* False: the object has a user already, which was reported. It must not be handed out. */
bool stook_cache_harden_alloc(struct stook_cache *cache, void *object);
/* False: a double free, which was reported. @how: cache_slow.h. */
bool stook_cache_harden_free(struct stook_cache *cache, void *object, uint64_t how);
/* A free by RCU that ends the user's time. False: as above. */
bool stook_cache_harden_wait(struct stook_cache *cache, void *object);

/* For a report, of an object that is free: where it lies. NULL: the cache is not hardened. */
STOOK_COLD const char *stook_cache_harden_where(struct stook_cache *cache, const void *object);

#endif
