/*
 * <stook/inline.h> - allocations and frees that are compiled into the caller
 *
 * For where every nanosecond counts. Their common case runs in the caller: about twenty
 * instructions for an object of a cache or its free, ten for one of a sheaf, none of them atomic.
 * Everything else calls the library. On machines and with compilers without restartable sequences
 * they are the ordinary calls.
 *
 * Arguments, returns, errors and safety are those of <stook/cache.h> and <stook/sheaf.h>, with one
 * difference. An inlined free looks for a double free only on top of the sheaf. Other misuse (a
 * pointer that is no object, or of another cache) is reported when the sheaf goes back to the
 * slabs.
 *
 * Code that is never unloaded may define STOOK_NEVER_UNLOADED before it includes this header: that
 * saves one store in each call. A program is such code, and a library that is not closed by
 * dlclose.
 */
#ifndef STOOK_INLINE_H
#define STOOK_INLINE_H

#include <stook/cache.h>
#include <stook/section.h>
#include <stook/sheaf.h>

/* The casts below are right: programs that have warnings for casts get none from here. */
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-align"
#ifdef __cplusplus
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* stook_sheaf_alloc_inline() - stook_sheaf_alloc() in the caller */
static inline __attribute__((always_inline, unused)) void *
stook_sheaf_alloc_inline(struct stook_cache *cache, struct stook_sheaf *sheaf)
{
#if defined(__GNUC__) && defined(__LP64__)
        char    *at = (char *)sheaf;
        uint64_t word = *(uint64_t *)at;

        if (__builtin_expect((int32_t)((uint32_t)word & STOOK_SHEAF_POPPABLE) > 0 &&
                             !(at[STOOK_SHEAF_LENT] & 1), 1)) {
                void *object = ((void **)(at + STOOK_SHEAF_OBJECTS))[(word & 0xffff) - 1];

                *(uint64_t *)at = word + STOOK_SHEAF_POP;
                return object;
        }
#endif
        return stook_sheaf_alloc(cache, sheaf);
}

/* stook_cache_alloc_inline() - stook_cache_alloc() in the caller */
static inline __attribute__((always_inline, unused)) void *
stook_cache_alloc_inline(struct stook_cache *cache)
{
#ifdef STOOK_SECTION_V1
        /* The first field of a cache is the address of its line in slot 0: layout version 1. */
        void *object = stook_section_pop_v1(*(const uintptr_t *)cache);

        if (__builtin_expect(object != NULL, 1))
                return object;
#endif
        return stook_cache_alloc(cache);
}

/* stook_cache_free_inline() - stook_cache_free() in the caller */
static inline __attribute__((always_inline, unused)) void
stook_cache_free_inline(struct stook_cache *cache, void *object)
{
#ifdef STOOK_SECTION_V1
        if (__builtin_expect(object && stook_section_push_v1(*(const uintptr_t *)cache, object) ==
                                       STOOK_PUSH_DONE, 1))
                return;
#endif
        stook_cache_free(cache, object);
}

#ifdef __cplusplus
}
#endif

#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
#endif
