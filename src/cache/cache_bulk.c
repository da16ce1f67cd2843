/*
 * Purpose: many objects at once: sheaves are emptied and filled by copies. What they do not have or
 * take goes straight to the slabs, which group it (cache_slow.c).
 * Place: API; calls the slow calls; and malloc, by a table, for large objects, if the caller names
 * no cache.
 * Failure: an allocation gets all or nothing. A free never fails; misuse is reported.
 */
#include <errno.h>
#include <stdint.h>

#include "cache/cache_slow.h"
#include "cache/object_id.h"

/*
 * Objects of mixed caches are sorted a window at a time, so that many caches cost no more than the
 * square of this.
 */
#define WINDOW 256

STOOK_API int stook_cache_alloc_bulk(struct stook_cache *cache, unsigned flags, size_t n,
                                     void **objects)
{
        if (!stook_flags_good(cache, flags) || (!objects && n))
                return -EINVAL;
        if (!n)
                return 0;
        if (n > PTRDIFF_MAX / sizeof(*objects))         /* no array has so many pointers */
                return -ENOMEM;
        return stook_alloc_bulk_slow(cache, n, objects, flags) ? 0 : -ENOMEM;
}

/* Moves what is no object of @cache behind the others and reports it. Returns how many are. */
static STOOK_COLD size_t sort_out(struct stook_cache *cache, size_t n, void **objects)
{
        size_t good = 0;

        for (size_t i = 0; i < n; i++)
                if (stook_cache_owns(cache, objects[i]))
                        objects[good++] = objects[i];
                else
                        stook_cache_free_misuse(cache, objects[i]);
        return good;
}

/* Not inlined: its values need not be saved while objects go down. */
static STOOK_NOINLINE bool owns_all(const struct stook_cache *cache, size_t n, void *const *objects)
{
        return stook_cache_owns_all(cache, n, objects);
}

static void free_one_cache(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        if (STOOK_UNLIKELY(!owns_all(cache, n, objects)))
                n = sort_out(cache, n, objects);
        stook_free_bulk_slow(cache, n, objects, how);
}

/* An object of no cache: a large one of malloc's, whose size alone does not tell it. */
static void free_large(void *object, uint64_t how)
{
        if (!stook_large_duties.free(object, how))
                stook_cache_free_misuse(NULL, object);
}

/* The first object's cache takes all of its kind in the window. Returns how many have gone. */
static size_t free_first_kind(size_t n, void **objects, uint64_t how)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)objects[0]));
        size_t same = 1;

        if (!index) {
                free_large(objects[0], how);
                return 1;
        }
        for (size_t i = 1; i < n; i++)
                if (stook_entry_cache(stook_pagemap_get((uintptr_t)objects[i])) == index) {
                        void *object = objects[i];

                        objects[i] = objects[same];
                        objects[same++] = object;
                }
        free_one_cache(stook_cache_at(index), same, objects, how);
        return same;
}

static STOOK_NOINLINE void free_all_kinds(size_t n, void **objects, uint64_t how)
{
        while (n) {
                size_t gone = free_first_kind(n < WINDOW ? n : WINDOW, objects, how);

                objects += gone;
                n -= gone;
        }
}

STOOK_INLINE void free_bulk(struct stook_cache *or_null, size_t n, void **objects, uint64_t how)
{
        if (or_null)
                free_one_cache(or_null, n, objects, how);
        else
                free_all_kinds(n, objects, how);
}

STOOK_API void stook_cache_free_bulk(struct stook_cache *or_null, size_t n, void **objects)
{
        free_bulk(or_null, n, objects, 0);
}

STOOK_API void stook_cache_free_bulk_nolock(struct stook_cache *or_null, size_t n, void **objects)
{
        stook_lock_raise(0);                    /* uncharges look for locks, too */
        free_bulk(or_null, n, objects, STOOK_HOW_NOLOCK);
        stook_lock_lower();
}
