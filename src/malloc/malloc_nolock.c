/*
 * Purpose: malloc and free that wait for no other thread: cache_nolock.c by size.
 * Place: API. Before the library has started there is no memory: its start belongs to one thread, and others would
 * wait for that.
 * Failure: NULL with errno ENOMEM; free never. Misuse is reported as stook_free reports it.
 */
#include <errno.h>
#include <stook/malloc.h>

#include "base/lock.h"
#include "cache/cache.h"
#include "life/life.h"
#include "malloc/malloc.h"
#include "malloc/malloc_hot.h"

static STOOK_NOINLINE void *malloc_miss(size_t size)
{
        void *object = NULL;

        stook_lock_forbid_waits();
        if (__atomic_load_n(&stook_started, __ATOMIC_ACQUIRE) == 2)
                object = stook_malloc_object(size);
        stook_lock_allow_waits();
        if (!object)
                errno = ENOMEM;
        return object;
}

STOOK_API void *stook_malloc_nolock(size_t size)
{
        void *object = stook_malloc_hot(size);

        return STOOK_LIKELY(object != NULL) ? object : malloc_miss(size);
}

static STOOK_NOINLINE void free_miss(void *object)
{
        bool ours;

        stook_lock_forbid_waits();
        ours = stook_malloc_release(object);
        stook_lock_allow_waits();
        if (!ours)
                stook_cache_free_misuse(NULL, object);
}

STOOK_API void stook_free_nolock(void *object)
{
        if (STOOK_UNLIKELY(!stook_free_hot(object)))
                free_miss(object);
}
