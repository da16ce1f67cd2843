/*
 * Purpose: allocation and free that wait for no other thread.
 * Place: API; the same steps as cache_alloc.c and cache_free.c, walked as a handler on top of a lock's holder walks
 * them: every lock is only tried (base/lock.h I1), and what is not the caller's work (purging, lending between barns,
 * publishing figures) is left to the next ordinary call.
 * Invariants:
 *  I1 no step needs another thread to go on. What repeats without a fixed bound is a compare-and-swap on a word of a
 *     slab, a barn or a pending stack, and it repeats only because another thread's succeeded.
 * Failure: allocation NULL with errno ENOMEM; free never.
 */
#include <errno.h>

#include "base/lock.h"
#include "cache/cache_account.h"
#include "pages/pagemap.h"
#include "slot/slot_fast.h"

static STOOK_NOINLINE void *alloc_miss(struct stook_cache *cache)
{
        void *object;

        stook_lock_forbid_waits();
        if (stook_cache_is_accounted(cache))
                object = stook_account_alloc(cache, stook_group_current(), STOOK_CHARGE_QUIET);
        else
                object = stook_slot_alloc_miss(&cache->front);
        stook_lock_allow_waits();
        if (!object)
                errno = ENOMEM;
        return object;
}

STOOK_API void *stook_cache_alloc_nolock(struct stook_cache *cache)
{
        void *object = stook_front_pop(&cache->front);

        return STOOK_LIKELY(object) ? object : alloc_miss(cache);
}

static STOOK_NOINLINE void free_miss(struct stook_cache *cache, void *object)
{
        stook_lock_forbid_waits();
        if (stook_cache_is_accounted(cache))
                stook_account_free(cache, object);
        else
                stook_slot_free_miss(&cache->front, object, stook_cache_free_double);
        stook_lock_allow_waits();
}

STOOK_API void stook_cache_free_nolock(struct stook_cache *cache, void *object)
{
        if (!object)
                return;
        if (STOOK_UNLIKELY(!stook_cache_owns(cache, object)))
                stook_cache_free_misuse(cache, object);
        else if (STOOK_UNLIKELY(!stook_front_push(&cache->front, object)))
                free_miss(cache, object);
}
