/*
 * Purpose: allocate one object: from the slot's sheaf in one critical section, else by the slot's miss, which
 * never comes back without an object while there is memory.
 * Place: API; calls slot. The fast path is the section that callers inline, too; everything else is out of line,
 *  the same section with another slot index included.
 * Failure: NULL with errno ENOMEM (EINVAL for arguments), nothing changed.
 */
#include <errno.h>
#include <string.h>

#include "cache/cache_account.h"
#include "life/life.h"
#include "os/os.h"
#include "slot/slot_fast.h"

static STOOK_NOINLINE void *alloc_miss(struct stook_cache *cache)
{
        void *object = STOOK_UNLIKELY(!stook_sections.area) ? stook_front_pop(&cache->front) : NULL;

        if (object)
                return object;
        if (stook_cache_is_accounted(cache)) {
                object = stook_account_alloc(cache, stook_group_current(), 0);
        } else {
                stook_fork_check();
                object = stook_slot_alloc_miss(&cache->front);
        }
        if (!object)
                errno = ENOMEM;
        return object;
}

STOOK_API void *stook_cache_alloc(struct stook_cache *cache)
{
        void *object = stook_section_pop_v1(cache->front.line);

        if (STOOK_LIKELY(object))
                return object;
        return alloc_miss(cache);
}

STOOK_API void *stook_cache_zalloc(struct stook_cache *cache)
{
        void *object;

        if (STOOK_UNLIKELY(cache->slabs.ctor)) {
                errno = EINVAL;
                return NULL;
        }
        object = stook_cache_alloc(cache);
        if (STOOK_LIKELY(object))
                memset(object, 0, stook_cache_object_size(cache));
        return object;
}

STOOK_API void *stook_cache_alloc_node(struct stook_cache *cache, unsigned flags, int node)
{
        /* One node in this release: whatever comes from the sheaves comes from it. */
        if ((flags & ~(STOOK_ZERO | STOOK_THISNODE | STOOK_NOWAIT)) || node < -1 ||
            node >= (int)stook_os_node_count() || ((flags & STOOK_ZERO) && cache->slabs.ctor)) {
                errno = EINVAL;
                return NULL;
        }
        return flags & STOOK_ZERO ? stook_cache_zalloc(cache) : stook_cache_alloc(cache);
}
