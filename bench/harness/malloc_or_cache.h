/*
 * bench/harness/malloc_or_cache.h - objects of malloc, or of an object cache
 *
 * Purpose: a program that is built twice calls prepare(), take() and give(). With CONTENDER_CACHE
 * they are those of one object cache of Stook's, out of line; else of whatever malloc is preloaded.
 * Place: bench/micro and bench/macro.
 */
#ifndef BENCH_MALLOC_OR_CACHE_H
#define BENCH_MALLOC_OR_CACHE_H

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(CONTENDER_CACHE)
#include <stook/cache.h>
#endif

namespace bench {

#if defined(CONTENDER_CACHE)
static struct stook_cache *cache;

/* Objects are of @size. `huge`: in runs that ask for huge pages. False: errno. */
static bool prepare(size_t size, bool huge = false)
{
        struct stook_cache_args args = {};

        args.args_size = sizeof(args);
        args.flags = huge ? STOOK_CACHE_HUGE_PAGES : 0;
        cache = stook_cache_create("bench", size, huge ? &args : nullptr);
        return cache != nullptr;
}
static inline void *take(size_t) { return stook_cache_alloc(cache); }
static inline void give(void *object) { stook_cache_free(cache, object); }
#else
static bool prepare(size_t, bool huge = false)
{
        errno = huge ? EINVAL : 0;
        return !huge;
}
static inline void *take(size_t size) { return malloc(size); }
static inline void give(void *object) { free(object); }
#endif

} // namespace bench

#endif
