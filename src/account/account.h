/*
 * Purpose: the edge (cache/cache_slow.h) of caches made with STOOK_CACHE_ACCOUNT. A word behind an
 * object says which group it is charged to. Objects are charged when a user gets them and uncharged
 * when the user frees them.
 * Place: called by the slow calls of cache through stook_account_edge, by prefilled sheaves, frees
 *  by RCU and watch; calls the plain calls of cache, and group.
 *
 * What it costs other caches: one instruction and a branch that is not taken, in stook_cache_alloc
 * and stook_cache_free. Inlined calls look at front.line, and the drop-in's free at the line of the
 * cache's index. Both are empty for ever, {zero-capacity sheaf, none}, so these calls miss and make
 * the slow call. front.line is line 0, the slot's head: by that the two calls know an accounted
 * cache, and look for nothing there. The sheaves of the cache are at the line of a second index,
 * which it takes for nothing else. front.offset names that line; everything but the hot paths goes
 * by front.offset.
 *
 * The word is object address << 16 | id. Its upper bits say that it is that word. It is valid while
 * the object is with a user; id 0 says that no group is charged.
 * Concurrency: any thread, any instruction. The word belongs to the holder of the object.
 */
#ifndef STOOK_ACCOUNT_H
#define STOOK_ACCOUNT_H

#include "cache/cache_slow.h"
#include "group/group.h"

STOOK_INLINE uint64_t *stook_account_word(const struct stook_cache *cache, const void *object)
{
        return (uint64_t *)(uintptr_t)object + cache->account_word;
}

/* The word of an object that no group is charged for. */
STOOK_INLINE uint64_t stook_account_tag(const void *object)
{
        return (uint64_t)(uintptr_t)object << 16;
}

STOOK_INLINE void stook_account_mark(const struct stook_cache *cache, const void *object,
                                     uint16_t id)
{
        *stook_account_word(cache, object) = stook_account_tag(object) | id;
}

/*
 * The group the object is charged to, 0 if none; from now on none. An overwritten word is reported,
 * and its charge is lost.
 */
uint16_t stook_account_unmark(const struct stook_cache *cache, const void *object);

/*
 * Charges objects that the caller got by another way, all or none. @id 0: no group. @how:
 * STOOK_CHARGE_*. False: over a limit; the objects are still the caller's, uncharged.
 */
bool stook_account_charge(struct stook_cache *cache, size_t n, void *const *objects, uint16_t id,
                          unsigned how);
/* Uncharges objects that are about to go into sheaves or slabs. */
void stook_account_uncharge(struct stook_cache *cache, size_t n, void *const *objects);

/* As stook_alloc_slow and stook_free_slow; also of a watched cache, for src/watch. */
void *stook_account_alloc(struct stook_cache *cache, uint64_t how);
void stook_account_free(struct stook_cache *cache, void *object, uint64_t how);
/* stook_account_duties: of a cache with a closed front. */
void *stook_account_alloc_closed(struct stook_cache *cache);
void stook_account_free_closed(struct stook_cache *cache, void *object);

#endif
