/*
 * Purpose: the calls that allocate one object. The fast path is the section that callers inline,
 * too, with a guess of the top object. Whatever misses, or asks for more, is one slow call
 * (cache_slow.h), which never fails while there is memory.
 * Place: API; calls slot.
 * Failure: NULL with errno ENOMEM (EINVAL for arguments), nothing changed.
 */
#include "cache/cache_slow.h"
#include "os/os.h"
#include "slot/slot_hot.h"

/* Aligned, as is free: how the function lies in lines of code decides a tenth of a pair. */
STOOK_API_HOT void *stook_cache_alloc(struct stook_cache *cache)
{
        void *object;

        if (STOOK_UNLIKELY(stook_front_is_closed(&cache->front)))
                return stook_account_duties.alloc_closed(cache);
        object = stook_section_pop_guessed_v1(cache->front.line);
        if (STOOK_LIKELY(object))
                return object;
        return stook_alloc_slow(cache, STOOK_HOW_ERRNO);
}

STOOK_API void *stook_cache_zalloc(struct stook_cache *cache)
{
        void *object;

        if (STOOK_UNLIKELY(!cache || cache->ctor)) {
                errno = EINVAL;
                return NULL;
        }
        object = stook_section_pop_guessed_v1(cache->front.line);
        if (STOOK_LIKELY(object))
                return memset(object, 0, stook_slow_bytes(cache));
        return stook_alloc_slow(cache, STOOK_HOW_ERRNO | STOOK_HOW_ZERO);
}

STOOK_API void *stook_cache_alloc_nolock(struct stook_cache *cache)
{
        void *object = stook_front_pop(&cache->front);

        if (STOOK_LIKELY(object))
                return object;
        return stook_alloc_slow(cache, STOOK_HOW_ERRNO | STOOK_HOW_NOLOCK);
}

static void *refuse(void)
{
        errno = EINVAL;
        return NULL;
}

/* @node -1: the one in use, if @flags ask for it; else any. */
static uint64_t how_of(unsigned flags, int node)
{
        uint64_t how = STOOK_HOW_ERRNO | flags;

        return node >= 0 || (flags & STOOK_THISNODE) ? stook_how_with_node(how, node) : how;
}

STOOK_API void *stook_cache_alloc_flags(struct stook_cache *cache, unsigned flags)
{
        return stook_flags_good(cache, flags) ? stook_alloc_slow(cache, how_of(flags, -1))
                                              : refuse();
}

STOOK_API void *stook_cache_alloc_node(struct stook_cache *cache, unsigned flags, int node)
{
        if (!stook_flags_good(cache, flags) ||
            node < -1 || (node >= 0 && !stook_os_node_exists((unsigned)node)))
                return refuse();
        return stook_alloc_slow(cache, how_of(flags, node));
}
