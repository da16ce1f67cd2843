/*
 * Purpose: malloc where classes are watched: by debug modes, recording or profiles.
 * Place: called by malloc_object.c, and by life at start; calls cache (cache_slow.h).
 *
 * The cache of a watched class is not at the index of its class, but at any other. No cache is ever
 * made at that index, so the hot paths find its line empty, and every malloc comes here. The page
 * of an object names its cache, so frees find it. To malloc's hot paths such an object is none of
 * a class: realloc and usable sizes go the long way, which knows watched caches.
 * The bytes asked for go along with the call: the watch wants those, not the bytes of the class.
 * Before the start it is not known which classes are watched. All count as watched, so the first
 * malloc comes here, and here the library starts.
 * Concurrency: the table is const after the start.
 */
#include "cache/cache_account.h"
#include "cache/cache_watch.h"
#include "malloc/large.h"
#include "malloc/large_debug.h"
#include "malloc/malloc.h"
#include "pages/pagemap.h"

bool stook_malloc_is_watched = true;
/* NULL: not watched. */
static struct stook_cache *watched_class[STOOK_CLASSES] STOOK_MOSTLY_UNUSED;

void stook_malloc_watch(void)
{
        stook_malloc_is_watched = stook_watch_is_asked();
        stook_large_debug_start();
        for (unsigned class = 0; stook_malloc_is_watched && class < STOOK_CLASSES; class++)
                watched_class[class] = stook_class_create(class, STOOK_CLASS_WATCHED);
}

static void *of_group(size_t size, uint16_t group, uint64_t how)
{
        if (size > STOOK_CLASS_MAX - STOOK_ACCOUNT_BYTES ||
            !stook_charged_class_for(size)->watch)
                how = stook_how_without_size(how);
        return stook_malloc_charged(size, group, how);
}

void *stook_malloc_watched(size_t size, uint16_t group, uint64_t how)
{
        struct stook_cache *cache;

        if (STOOK_UNLIKELY(!stook_slow_is_up(how)))
                return stook_slow_answer(how, NULL, 0);
        cache = watched_class[stook_class_for(size)];
        if (!stook_how_has_size(how))
                how = stook_how_with_size(how, size);
        if (group)
                return of_group(size, group, how);
        if (cache)
                return stook_alloc_slow(cache, how);
        return stook_malloc_class_object(stook_class_for(size), stook_how_without_size(how));
}

/* How to free @object, of which its user says that it asked for @size. */
static uint64_t how_freed(const void *object, size_t size)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)object));

        if (!index || !stook_cache_at(index)->watch || size > STOOK_CLASS_MAX)
                return 0;
        return stook_how_with_size(0, size);
}

bool stook_malloc_free_sized(void *object, size_t size)
{
        return stook_large_free_sized(object, size) ||
               stook_malloc_free_object(object, how_freed(object, size));
}
