/*
 * Purpose: shows allocations and frees to a recording (src/record) and to a heap profile
 * (src/profile). Neither changes what a call does.
 * Place: called by cache_watch.c for watched caches, by frees by RCU, and by malloc for large
 * objects.
 * Concurrency: any thread, any instruction.
 */
#ifndef STOOK_CACHE_OBSERVE_H
#define STOOK_CACHE_OBSERVE_H

#include "cache/cache_watch.h"

#define STOOK_WATCH_OBSERVE ((uint32_t)(STOOK_WATCH_RECORD | STOOK_WATCH_PROFILE))

/* Of large objects, too: does anything observe? */
STOOK_INLINE bool stook_observes(void)
{
        return STOOK_UNLIKELY(stook_cache_options.watch & STOOK_WATCH_OBSERVE);
}

/* After an allocation. @bytes: as wanted. */
void stook_observe_alloc(const struct stook_cache *cache, const void *object, size_t bytes);
/* Before a free. */
void stook_observe_free(const struct stook_cache *cache, const void *object);
/*
 * Before a free by RCU. An object that will wait in a sheaf of mixed caches is freed by a bulk call
 * later, and is seen there.
 */
void stook_observe_free_rcu(const struct stook_cache *cache, const void *object);

/* The same for a large object of malloc; only if stook_observes(). */
void stook_observe_large_alloc(const void *object, size_t bytes);
void stook_observe_large_free(const void *object);
/* Around a resize, which may move it. @to NULL: it failed. */
struct stook_record_buffer *stook_observe_resize_begin(const void *object);
void stook_observe_resize_end(struct stook_record_buffer *or_null, const void *from,
                              const void *to, size_t bytes);

#endif
