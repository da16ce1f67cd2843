/*
 * <stook/inline.h> - stook_cache_alloc, stook_cache_free and stook_sheaf_alloc, inlined
 *
 * Include it instead of <stook/cache.h> where every nanosecond counts: the common case of the first two then
 * runs in the caller, about twenty instructions, none of them atomic, and that of stook_sheaf_alloc in ten.
 * Everything else goes to the library as before. Machines and compilers without sections simply get
 * <stook/cache.h> for the first two. The meaning is the same, with one
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
#include <stook/sheaf.h>

#if defined(__GNUC__) && defined(__LP64__)

#ifdef __cplusplus
extern "C" {
#endif

static inline __attribute__((always_inline, unused)) void *stook_sheaf_alloc_inline(struct stook_cache *cache,
                                                                                    struct stook_sheaf *sheaf)
{
        char    *at = (char *)sheaf;
        uint64_t word = *(uint64_t *)at;
        void    *object;

        if (__builtin_expect(!(word & 0xffff) || (at[STOOK_SHEAF_LENT] & 1), 0))
                return stook_sheaf_alloc(cache, sheaf);
        object = ((void **)(at + STOOK_SHEAF_OBJECTS))[(word & 0xffff) - 1];
        *(uint64_t *)at = word + STOOK_SHEAF_POP;
        return object;
}

#ifdef __cplusplus
}
#endif

#define stook_sheaf_alloc(cache, sheaf) stook_sheaf_alloc_inline((cache), (sheaf))

#endif

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
