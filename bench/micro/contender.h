/*
 * bench/micro/contender.h - one way to get and give back an object of 64 bytes
 *
 * Purpose: object_pair.cc is compiled once for each contender; which one is chosen by a macro:
 *   CONTENDER_ARRAY      a plain private array of pointers: no allocator can be faster
 *   CONTENDER_CACHE      an object cache, called out of line through the dynamic linker
 *   CONTENDER_INLINE     an object cache through <stook/inline.h>
 *   CONTENDER_MALLOC     malloc and free of whatever is preloaded
 *   CONTENDER_MIMALLOC, CONTENDER_JEMALLOC, CONTENDER_SNMALLOC, CONTENDER_TCMALLOC
 *                        a peer's fastest calls, linked statically (built by bench/peers/build.py)
 * Each defines take(), give() and cached_bytes(). Peers are declared by hand from their documented
 * interfaces: no header of theirs is needed.
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include "../harness.h"

static constexpr size_t object_bytes = 64;

#if defined(CONTENDER_ARRAY)

static constexpr size_t array_capacity = 4096;
static struct {
        size_t count;
        size_t capacity;
        void *object[array_capacity];
} array;
static char memory[array_capacity][object_bytes];

static void prepare()
{
        for (size_t i = 0; i < 60; i++)
                array.object[array.count++] = memory[i];
        array.capacity = array_capacity;
        for (size_t i = 60; i < 2048; i++)
                array.object[array.count++] = memory[i];
}

static inline void *take()
{
        return __builtin_expect(array.count != 0, 1) ? array.object[--array.count] : nullptr;
}

static inline void give(void *object)
{
        if (__builtin_expect(array.count < array.capacity, 1))
                array.object[array.count++] = object;
}

static double cached_bytes()
{
        return (double)(array.count * object_bytes);
}

#elif defined(CONTENDER_CACHE) || defined(CONTENDER_INLINE)

#include <stook/cache.h>
#include <stook/stats.h>
#if defined(CONTENDER_INLINE)
#include <stook/inline.h>
#endif

static struct stook_cache *cache;

static void prepare()
{
        cache = stook_cache_create("bench-64", object_bytes, nullptr);
        if (!cache) {
                perror("stook_cache_create");
                exit(2);
        }
}

static inline void *take()
{
        return stook_cache_alloc(cache);
}

static inline void give(void *object)
{
        stook_cache_free(cache, object);
}

static double cached_bytes()
{
        struct stook_cache_stats stats = {};
        stats.stats_size = sizeof(stats);
        return stook_cache_get_stats(cache, &stats) ? -1
                                                    : (double)(stats.objects_cached * stats.stride);
}

#else

#if defined(CONTENDER_MIMALLOC)
extern "C" void *mi_malloc_small(size_t size);
extern "C" void mi_free(void *object);
#define TAKE() mi_malloc_small(object_bytes)
#define GIVE(object) mi_free(object)
#elif defined(CONTENDER_JEMALLOC)
extern "C" void sdallocx(void *object, size_t size, int flags);
#define TAKE() malloc(object_bytes)
#define GIVE(object) sdallocx(object, object_bytes, 0)
#elif defined(CONTENDER_SNMALLOC)
extern "C" void *sn_malloc(size_t size);
extern "C" void sn_free(void *object);
#define TAKE() sn_malloc(object_bytes)
#define GIVE(object) sn_free(object)
#elif defined(CONTENDER_TCMALLOC)
extern "C" void *TCMallocInternalMalloc(size_t size);
extern "C" void TCMallocInternalFreeSized(void *object, size_t size);
#define TAKE() TCMallocInternalMalloc(object_bytes)
#define GIVE(object) TCMallocInternalFreeSized(object, object_bytes)
#elif defined(CONTENDER_MALLOC)
#define TAKE() malloc(object_bytes)
#define GIVE(object) free(object)
#else
#error "choose a contender"
#endif

static void prepare() {}

static inline void *take()
{
        return TAKE();
}

static inline void give(void *object)
{
        GIVE(object);
}

/*
 * What a malloc holds back cannot be asked of all of them: see held_KiB of the malloc benchmarks.
 */
static double cached_bytes()
{
        return -1;
}

#endif

#endif
