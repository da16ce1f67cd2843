/*
 * Purpose: objects of caches made with STOOK_ACCOUNT: charged when a user gets them, uncharged when he frees them.
 * Place: cache's and malloc's slow paths; calls group and slot.
 *
 * How it costs other caches nothing: inlined calls and malloc's hot paths look at the line of a cache's index. An
 * accounted cache keeps that line empty for ever, {zero-capacity sheaf, none}, so they miss and come here. Its
 * sheaves are at another line, of an index that it takes for nothing else: front.offset, which everything but those
 * hot paths goes by.
 *
 * The word behind an object says which group it is charged to, and by its upper bits that it is that word:
 * object address << 16 | id. It is valid while the object is with a user, and id is 0 if it is charged to nobody.
 */
#ifndef STOOK_CACHE_ACCOUNT_H
#define STOOK_CACHE_ACCOUNT_H

#include "cache/cache.h"
#include "group/group.h"

/* Bytes of the word, and where it lies behind an object of @size bytes. */
#define STOOK_ACCOUNT_BYTES sizeof(uint64_t)

STOOK_INLINE size_t stook_account_offset(size_t size)
{
        return (size + STOOK_ACCOUNT_BYTES - 1) & ~(STOOK_ACCOUNT_BYTES - 1);
}

STOOK_INLINE bool stook_cache_is_accounted(const struct stook_cache *cache)
{
        return cache->flags & STOOK_ACCOUNT;
}

/* An object charged to @id (0: nobody). NULL: no memory or over a limit. errno untouched. @how: STOOK_CHARGE_*. */
void *stook_account_alloc(struct stook_cache *cache, uint16_t id, unsigned how);
/* @object is known to be one of @cache. */
void stook_account_free(struct stook_cache *cache, void *object);

/* Objects got by another way, charged all or none. False: over a limit; they are still the caller's, uncharged. */
bool stook_account_charge(struct stook_cache *cache, size_t n, void *const *objects, uint16_t id, unsigned how);
/* Objects that are about to go into sheaves or slabs: charged no more. */
void stook_account_uncharge(struct stook_cache *cache, size_t n, void *const *objects);

#endif
