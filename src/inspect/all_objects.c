/*
 * Purpose: all objects of a heap, or of malloc, that callers own, large ones too.
 * Place: API; calls walk for each cache of the heap or of malloc, and reads the spans.
 * Concurrency: as walk.c for each cache. Spans are read without a lock: the program sees to it that
 *  no other thread uses the heap. What the callback frees is seen no more: its span is of another
 *  kind then.
 */
#include <errno.h>
#include <stook/malloc.h>

#include "cache/cache_watch.h"
#include "gate/gate.h"
#include "heap/heaps.h"
#include "pages/meta.h"
#include "walk/walk.h"
#include "watch/watch.h"

struct objects {
        struct stook_heap *heap;        /* NULL: malloc's */
        int  (*each)(void *object, size_t bytes, void *data);
        void  *data;
        int    answer;
};

static int show(void *object, void *data)
{
        struct objects *objects = data;

        objects->answer = objects->each(object, stook_usable_size(object), objects->data);
        return objects->answer;
}

static void show_large(struct stook_span *span, void *data)
{
        struct objects *objects = data;

        if (!objects->answer && span->kind == STOOK_SPAN_LARGE &&
            span->use.heap == objects->heap && stook_watch_large_usable(span) != STOOK_NO_OBJECT)
                show((void *)(span->start + span->use.lead), objects);
}

STOOK_API int stook_heap_for_each_object(struct stook_heap *heap,
                                         int (*each)(void *object, size_t bytes, void *data),
                                         void *data)
{
        const char *refusal = STOOK_REFUSED("stook_heap_for_each_object");
        struct objects objects = { .heap = heap, .each = each, .data = data };
        int error = 0;

        if (!each)
                return -EINVAL;
        if (!stook_gate_start())
                return -ENOMEM;
        if (heap)
                error = stook_heap_lock(heap, refusal);
        if (heap && !error)
                stook_registry_unlock();
        for (unsigned i = 1; !error && !objects.answer && i < stook_caches_bound(); i++) {
                struct stook_cache *cache = stook_cache_at(i);

                if (__atomic_load_n(&cache->state, __ATOMIC_ACQUIRE) == STOOK_CACHE_LIVE &&
                    stook_registry_is_class(cache) && stook_cache_heaps[i] == heap)
                        error = stook_walk_objects(cache, show, &objects, refusal);
                if (objects.answer)
                        return objects.answer;
        }
        if (!error)
                stook_meta_span_for_each(show_large, &objects);
        return error ? error : objects.answer;
}
