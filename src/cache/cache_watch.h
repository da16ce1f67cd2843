/*
 * Purpose: caches whose every allocation and free is looked at: by the debug modes, by recording,
 * by profiles, by hardening. `watch` of a cache says by which; 0: none, which costs a slow call one
 * branch.
 * Place: called by the funnel (cache_slow.c), which calls nothing else of this; and by prefilled
 * sheaves. Calls the funnel again, for the call itself.
 *
 * A watched cache has no hot path. The line of its index stays empty for ever, as that of an
 * accounted cache (cache_account.h): inlined calls and malloc's hot paths miss, and the slow call
 * comes here. A cache that is debugged has no sheaves. Another watched cache has its sheaves at the
 * line of a second index.
 * Concurrency: any thread, any instruction. `watch` is const after creation.
 */
#ifndef STOOK_CACHE_WATCH_H
#define STOOK_CACHE_WATCH_H

#include "cache/cache_slow.h"

enum stook_watch {
        STOOK_WATCH_DEBUG   = 1,        /* the modes of src/debug: no sheaves, never merged */
        STOOK_WATCH_RECORD  = 2,
        STOOK_WATCH_PROFILE = 4,
        STOOK_WATCH_FAIL    = 8,        /* allocations are made to fail (debug/fail.h) */
        STOOK_WATCH_HARDEN  = 32,       /* cache_harden.h; never together with DEBUG */
        STOOK_WATCH_LIMIT   = 64,       /* objects of callers are counted: cache_limit.h */
};

/*
 * What a cache of that name is to be watched by, when it is made: enum stook_watch. *@debug: the
 * debug modes that STOOK_DEBUG asks for it, besides those of its maker, @own.
 */
uint32_t stook_watch_wanted(const char *name, uint64_t own, uint64_t *debug);
/* May a cache be watched, though its maker did not say so? */
bool stook_watch_is_asked(void);

/* Are the sheaves of a cache at the line of a second index? */
STOOK_INLINE bool stook_watch_wants_line(uint32_t watch)
{
        return watch && !(watch & STOOK_WATCH_DEBUG);
}

/* Is an allocation of @bytes from the cache to fail, though there is memory? */
bool stook_watch_fails(const struct stook_cache *cache, size_t bytes);

/* As stook_alloc_slow, stook_free_slow and their bulk forms, of a watched cache. */
void *stook_watch_alloc(struct stook_cache *cache, uint64_t how);
void stook_watch_free(struct stook_cache *cache, void *object, uint64_t how);
bool stook_watch_alloc_bulk(struct stook_cache *cache, size_t n, void **objects, uint64_t how);
void stook_watch_free_bulk(struct stook_cache *cache, size_t n, void **objects, uint64_t how);

/* As stook_rcu_free. What readers have left comes to stook_watch_free, with STOOK_HOW_READERS. */
int stook_watch_free_rcu(struct stook_cache *cache, void *object, bool nolock);

/*
 * Another size for a live object, at most the cache's: what it may use changes. False: it was at
 * fault, which was reported.
 */
bool stook_watch_resize(struct stook_cache *cache, void *object, size_t size);
/* What the user of an object may use of it; or STOOK_NO_OBJECT. */
size_t stook_watch_usable(const struct stook_cache *cache, const void *object);

/*
 * Before a cache is destroyed: its objects leave the quarantine, and those that were isolated go to
 * their slabs. Registry mutex held.
 */
void stook_watch_end(struct stook_cache *cache);
/* For a report about @pointer, which lies in a slab of @cache. */
void stook_watch_describe(const struct stook_cache *cache, const void *pointer,
                          struct stook_report_about *about);

/* @object of a cache, or a large one, waits as @bytes in the quarantine. @how: of its free. */
void stook_watch_quarantine(void *object, size_t bytes, uint64_t how);

/*
 * @object of a prefilled sheaf goes to its user. The call cannot fail. Return: @object, or another
 * one instead of it.
 */
void *stook_watch_lent(struct stook_cache *cache, void *object);

#endif
