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
#include "slot/slot_node.h"

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

/* Aligned, as is free: how it lies in lines of code decides a tenth of a pair. */
STOOK_API STOOK_ALIGNED(STOOK_CACHELINE) void *stook_cache_alloc(struct stook_cache *cache)
{
        void *object = stook_section_pop_v1(cache->front.line);

        if (STOOK_LIKELY(object))
                return object;
        return alloc_miss(cache);
}

STOOK_API void *stook_cache_zalloc(struct stook_cache *cache)
{
        void *object;

        if (STOOK_UNLIKELY(!cache || cache->slabs.ctor)) {
                errno = EINVAL;
                return NULL;
        }
        object = stook_cache_alloc(cache);
        if (STOOK_LIKELY(object))
                memset(object, 0, stook_cache_object_size(cache));
        return object;
}

/* On several nodes. @node -1: this one. */
static void *alloc_on_node(struct stook_cache *cache, unsigned flags, int node)
{
        void *object;

        stook_fork_check();
        if (node < 0)
                node = (int)stook_os_node_home(stook_slot_node());
        object = stook_slot_alloc_node(&cache->front, (unsigned)node, flags & STOOK_THISNODE);
        if (object && stook_cache_is_accounted(cache) &&
            !stook_account_charge(cache, 1, &object, stook_group_current(), flags)) {
                stook_slot_free_miss(&cache->front, object, stook_cache_free_double);
                object = NULL;
        }
        if (STOOK_UNLIKELY(!object))
                errno = ENOMEM;
        return object;
}

STOOK_API void *stook_cache_alloc_node(struct stook_cache *cache, unsigned flags, int node)
{
        void *object;

        if (!cache || (flags & ~(STOOK_ZERO | STOOK_THISNODE | STOOK_NOWAIT)) || node < -1 ||
            (node >= 0 && !stook_os_node_exists((unsigned)node)) || ((flags & STOOK_ZERO) && cache->slabs.ctor)) {
                errno = EINVAL;
                return NULL;
        }
        if (!stook_slots_by_node || (node < 0 && !(flags & STOOK_THISNODE)))
                object = stook_cache_alloc(cache);
        else
                object = alloc_on_node(cache, flags, node);
        if (object && (flags & STOOK_ZERO))
                memset(object, 0, stook_cache_object_size(cache));
        return object;
}
