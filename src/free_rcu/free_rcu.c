/*
 * Purpose: frees that wait for readers (<stook/rcu.h>): proves what the object is, as
 * stook_cache_free does, and gives it to src/rcu; and what that layer asks of caches
 * (stook_rcu_duties).
 * Place: API; calls rcu, and pages for the lookup.
 * Failure: misuse is reported. Where reports do not abort, -EINVAL.
 */
#include <errno.h>

#include "account/account.h"
#include "cache/cache_watch.h"
#include "cache/object_id.h"
#include "pages/pagemap.h"
#include "pages/span.h"

static STOOK_NOINLINE int misuse(struct stook_cache *or_null, void *object)
{
        if (!object)
                return 0;
        stook_cache_free_misuse(or_null, object);
        return -EINVAL;
}

STOOK_INLINE int free_owned(struct stook_cache *cache, void *object, bool nolock)
{
        if (STOOK_UNLIKELY(cache->watch))
                return stook_watch_duties.free_rcu(cache, object, nolock);
        return stook_rcu_free(&cache->rcu, object, nolock);
}

/* What the short cuts below do not answer: pointers outside of the one huge range, misuse. */
static STOOK_NOINLINE int free_odd(struct stook_cache *cache, void *object, bool nolock)
{
        return stook_cache_owns(cache, object) ? free_owned(cache, object, nolock)
                                               : misuse(cache, object);
}

/* As stook_cache_free. */
STOOK_INLINE int free_of_cache(struct stook_cache *cache, void *object, bool nolock)
{
        uintptr_t off = (uintptr_t)object - stook_range.base;
        uint64_t entry;

        if (STOOK_UNLIKELY(!cache))
                return -EINVAL;
        if (STOOK_UNLIKELY(off >= STOOK_RANGE_BYTES))
                return free_odd(cache, object, nolock);
        entry = __atomic_load_n(&stook_range.entries[off >> STOOK_MAP_SHIFT], __ATOMIC_RELAXED);
        if (STOOK_UNLIKELY(!stook_object_is_of(cache, entry, object)))
                return free_odd(cache, object, nolock);
        return free_owned(cache, object, nolock);
}

STOOK_API int stook_cache_free_rcu(struct stook_cache *cache, void *object)
{
        return free_of_cache(cache, object, false);
}

STOOK_API int stook_cache_free_rcu_nolock(struct stook_cache *cache, void *object)
{
        return free_of_cache(cache, object, true);
}

/* One by one; those that the library owns then are NULL. Return: 0, or the first error. */
static int free_each(struct stook_cache *cache, size_t n, void **objects)
{
        int error = 0, answer = 0;

        for (size_t i = 0; i < n && answer != -EAGAIN; i++) {
                if (!objects[i])
                        continue;
                answer = free_of_cache(cache, objects[i], false);
                if (!answer)
                        objects[i] = NULL;
                else if (!error)
                        error = answer;
        }
        return error;
}

STOOK_API int stook_cache_free_rcu_bulk(struct stook_cache *cache, size_t n, void **objects)
{
        size_t done = 0;
        int error;

        if (!cache || (!objects && n))
                return -EINVAL;
        if (!cache->watch && stook_cache_owns_all(cache, n, objects))
                done = stook_rcu_free_sheaves(&cache->rcu, n, objects);
        error = free_each(cache, n - done, objects + done);
        if (error && done)
                memset(objects, 0, done * sizeof(*objects));
        return error;
}

/* @entry: of the object; of no cache. */
static STOOK_NOINLINE int free_large(void *object, uint64_t entry, bool nolock)
{
        struct stook_span *span = entry ? stook_span_large_at((uintptr_t)object) : NULL;

        return span ? stook_rcu_free_large(object, span->bytes, nolock) : misuse(NULL, object);
}

static int free_of_any(void *object, bool nolock)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        unsigned index = stook_entry_cache(entry);

        if (STOOK_LIKELY(index != 0))
                return free_of_cache(stook_cache_at(index), object, nolock);
        return free_large(object, entry, nolock);
}

STOOK_API int stook_free_rcu(void *object)
{
        return free_of_any(object, false);
}

STOOK_API int stook_free_rcu_nolock(void *object)
{
        return free_of_any(object, true);
}

STOOK_API void stook_cache_rcu_barrier(struct stook_cache *cache)
{
        if (cache)
                stook_rcu_barrier_of(&cache->rcu);
}

/* ---- what src/rcu asks of caches ---- */

/* Frees those of watched caches, to which it matters that readers left. Returns the others. */
static size_t free_watched(size_t n, void **objects)
{
        size_t others = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t entry = stook_pagemap_get((uintptr_t)objects[i]);
                struct stook_cache *cache = stook_cache_at(stook_entry_cache(entry));

                if (stook_entry_cache(entry) && cache->watch)
                        stook_free_slow(cache, objects[i], STOOK_HOW_READERS);
                else
                        objects[others++] = objects[i];
        }
        return others;
}

static void free_mixed(size_t n, void **objects)
{
        stook_cache_free_bulk(NULL, free_watched(n, objects), objects);
}

static void uncharge(struct stook_rcu_cache *rcu, size_t n, void *const *objects)
{
        stook_account_uncharge(stook_container_of(rcu, struct stook_cache, rcu), n, objects);
}

static void left(struct stook_rcu_cache *rcu, size_t n, void *const *objects)
{
        stook_watch_duties.left(stook_container_of(rcu, struct stook_cache, rcu), n, objects);
}

const struct stook_rcu_duties stook_rcu_duties = { free_mixed, uncharge, left };
