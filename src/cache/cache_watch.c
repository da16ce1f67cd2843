/*
 * Purpose: see cache_watch.h. Each function makes the call through the funnel, and shows the object
 * to everything that watches the cache: after it was allocated, before it is freed.
 * Failure: as the call itself.
 */
#include "cache/cache_watch.h"

#include "cache/cache_observe.h"
#include "os/os.h"
#include "slot/slot_node.h"

uint32_t stook_watch_wanted(const char *name)
{
        (void)name;
        return stook_cache_options.watch;
}

/* For the funnel: the objects are zeroed here, and the size is nothing to it. */
static uint64_t inner(uint64_t how)
{
        how = stook_how_without_size(how) & ~(uint64_t)(STOOK_HOW_ZERO | STOOK_HOW_MISSED);
        return how | STOOK_HOW_WATCHED;
}

/* The bytes that the caller asked for. */
static size_t bytes_of(const struct stook_cache *cache, uint64_t how)
{
        return stook_how_has_size(how) ? stook_how_size(how) : stook_slow_bytes(cache);
}

void *stook_watch_alloc(struct stook_cache *cache, uint64_t how)
{
        void *object = stook_alloc_slow(cache, inner(how));

        if (STOOK_UNLIKELY(!object))
                return NULL;
        if (how & STOOK_HOW_ZERO)
                memset(object, 0, bytes_of(cache, how));
        stook_observe_alloc(cache, object, bytes_of(cache, how));
        return object;
}

void stook_watch_free(struct stook_cache *cache, void *object, uint64_t how)
{
        stook_observe_free(cache, object);
        stook_free_slow(cache, object, inner(how));
}

bool stook_watch_alloc_bulk(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        uint64_t each = how;
        size_t got = 0;

        if (how & STOOK_HOW_THISNODE)           /* all of one node: the one in use now */
                each = stook_how_with_node(how, (int)stook_os_node_home(stook_slot_node()));
        while (got < n && (objects[got] = stook_watch_alloc(cache, each)))
                got++;
        if (got < n)
                stook_watch_free_bulk(cache, got, objects, how & STOOK_HOW_NOLOCK);
        return got == n;
}

void stook_watch_free_bulk(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        for (size_t i = 0; i < n; i++)
                stook_watch_free(cache, objects[i], how);
}

void *stook_watch_lent(struct stook_cache *cache, void *object)
{
        stook_observe_alloc(cache, object, stook_slow_bytes(cache));
        return object;
}
