/*
 * <stook/inline.h> - stook_cache_alloc and stook_cache_free, inlined
 *
 * Include it instead of <stook/cache.h> where every nanosecond counts: the common case of the two calls then
 * runs in the caller, about twenty instructions, none of them atomic. Everything else goes to the library as
 * before. Other machines and compilers simply get <stook/cache.h>. The meaning is the same, with one
 * difference: an inlined free looks for a double free only on top of the sheaf. Other misuse (a pointer that
 * is no object, or of another cache) is reported when the sheaf goes back to the slabs.
 *
 * Code that is never unloaded (a program, or a library that is not dlclosed) may define STOOK_NEVER_UNLOADED
 * before it includes this: one store less for each call.
 */
#ifndef STOOK_INLINE_H
#define STOOK_INLINE_H

#include <stook/cache.h>
#include <stook/section.h>

#ifdef STOOK_SECTION_V1

#ifdef __cplusplus
extern "C" {
#endif

STOOK_SECTION_FUNCTION void *stook_cache_alloc_inline(struct stook_cache *cache)
{
        /* The first field of a cache is the address of its line in slot 0: layout version 1. */
        void *object = stook_section_pop_v1(*(const uintptr_t *)cache);

        if (__builtin_expect(object != NULL, 1))
                return object;
        return stook_cache_alloc(cache);
}

STOOK_SECTION_FUNCTION void stook_cache_free_inline(struct stook_cache *cache, void *object)
{
        if (__builtin_expect(object && stook_section_push_v1(*(const uintptr_t *)cache, object) == STOOK_PUSH_DONE,
                             1))
                return;
        stook_cache_free(cache, object);
}

#ifdef __cplusplus
}
#endif

#define stook_cache_alloc(cache)        stook_cache_alloc_inline(cache)
#define stook_cache_free(cache, object) stook_cache_free_inline((cache), (object))

#endif
#endif
