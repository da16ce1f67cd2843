/*
 * Purpose: see cache_observe.h.
 */
#include "cache/cache_observe.h"

#include "profile/profile.h"
#include "record/record.h"

static struct stook_record_cache described(const struct stook_cache *cache)
{
        return (struct stook_record_cache){
                .index = cache->index, .object_bytes = (uint32_t)stook_slow_bytes(cache),
                .stride = (uint32_t)cache->slabs.stride, .born = cache->born,
                .name = stook_cache_name(cache),
        };
}

void stook_observe_alloc(const struct stook_cache *cache, const void *object, size_t bytes)
{
        struct stook_record_cache said;

        if (cache->watch & STOOK_WATCH_PROFILE)
                stook_profile_alloc(object, bytes);
        if (cache->watch & STOOK_WATCH_RECORD) {
                said = described(cache);
                stook_record_alloc(&said, object, bytes);
        }
}

void stook_observe_free(const struct stook_cache *cache, const void *object)
{
        if (cache->watch & STOOK_WATCH_PROFILE)
                stook_profile_free(object);
        if (cache->watch & STOOK_WATCH_RECORD)
                stook_record_free(object, false);
}

void stook_observe_free_rcu(const struct stook_cache *cache, const void *object)
{
        if (stook_barns_capacity(&cache->barns) <= 1 && !cache->rcu.own)
                return;
        if (cache->watch & STOOK_WATCH_PROFILE)
                stook_profile_free(object);
        if (cache->watch & STOOK_WATCH_RECORD)
                stook_record_free(object, true);
}

void stook_observe_large_alloc(const void *object, size_t bytes)
{
        static const struct stook_record_cache large = { .name = "large" };

        if (stook_cache_options.watch & STOOK_WATCH_PROFILE)
                stook_profile_alloc(object, bytes);
        if (stook_cache_options.watch & STOOK_WATCH_RECORD)
                stook_record_alloc(&large, object, bytes);
}

void stook_observe_large_free(const void *object)
{
        if (stook_cache_options.watch & STOOK_WATCH_PROFILE)
                stook_profile_free(object);
        if (stook_cache_options.watch & STOOK_WATCH_RECORD)
                stook_record_free(object, false);
}

/* To a profile it is a free, and an allocation by the call that resizes. */
struct stook_record_buffer *stook_observe_resize_begin(const void *object)
{
        if (stook_cache_options.watch & STOOK_WATCH_PROFILE)
                stook_profile_free(object);
        return stook_cache_options.watch & STOOK_WATCH_RECORD ? stook_record_resize_begin() : NULL;
}

void stook_observe_resize_end(struct stook_record_buffer *or_null, const void *from,
                              const void *to, size_t bytes)
{
        stook_record_resize_end(or_null, from, to, bytes);
        if (to && (stook_cache_options.watch & STOOK_WATCH_PROFILE))
                stook_profile_alloc(to, bytes);
}
