/*
 * What misuses of hardened caches share. Each object of such a cache has a slab of its own, so a
 * report's offset is 0 whichever object it is about.
 */
#ifndef TESTS_DEATH_HARDEN_H
#define TESTS_DEATH_HARDEN_H

#include <stdlib.h>
#include <string.h>
#include <stook/stook.h>

#include "watch/watch.h"

#define OBJECTS 64

static inline struct stook_cache *victim(void)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .sheaf_capacity = 4 };

        return stook_cache_create("victim", 40000, &args);
}

/*
 * Frees many objects, then one again that lies there. As many stay allocated: where slabs have lost
 * half of their memory, barns are emptied.
 */
static inline void free_again_from(const char *where)
{
        struct stook_cache *cache = victim();
        void *objects[OBJECTS];

        for (int i = 0; i < OBJECTS; i++)
                if ((objects[i] = stook_cache_alloc(cache)))
                        stook_cache_alloc(cache);
        for (int i = 0; i < OBJECTS; i++)
                stook_cache_free(cache, objects[i]);
        for (int i = 0; i < OBJECTS; i++)
                if (!strcmp(stook_watch_where(cache, objects[i]), where))
                        stook_cache_free(cache, objects[i]);
}

#endif
