/*
 * bench/micro/contender.h - one way to get and give back an object of 64 bytes
 *
 * Purpose: object_pair.cc is compiled once for each contender; which one is chosen by a macro:
 *   CONTENDER_ARRAY      a plain private array of pointers: no allocator can be faster
 *   CONTENDER_CACHE      an object cache, called out of line through the dynamic linker
 *   CONTENDER_INLINE     an object cache through <stook/inline.h>
 *   CONTENDER_MALLOC     malloc and free of whatever is preloaded
 *   CONTENDER_DPDK       DPDK's mempool, inlined, with its cache of a thread
 *   CONTENDER_BOOST      Boost's singleton_pool, which locks for each call
 *   CONTENDER_BOOST_PRIVATE  Boost's pool, for one thread alone
 *   CONTENDER_MIMALLOC, CONTENDER_JEMALLOC, CONTENDER_SNMALLOC, CONTENDER_TCMALLOC,
 *   CONTENDER_RPMALLOC   a peer's fastest calls, linked statically (built by bench/peers/build.py)
 * Each defines take(), give() and cached_bytes(). Peers are declared by hand from their documented
 * interfaces: no header of theirs is needed.
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include "../harness/slices.h"

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
#define cache_alloc stook_cache_alloc_inline
#define cache_free  stook_cache_free_inline
#else
#define cache_alloc stook_cache_alloc
#define cache_free  stook_cache_free
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
        return cache_alloc(cache);
}

static inline void give(void *object)
{
        cache_free(cache, object);
}

static double cached_bytes()
{
        struct stook_cache_stats stats = {};
        stats.stats_size = sizeof(stats);
        return stook_cache_get_stats(cache, &stats) ? -1
                                                    : (double)(stats.objects_cached * stats.stride);
}

#elif defined(CONTENDER_DPDK)

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mempool.h>

static struct rte_mempool *mempool;

/* Without huge pages, devices, or files of its own: any user can run it. */
static void start_dpdk()
{
        static char argument[][16] = {"bench", "--no-huge",      "--no-shconf", "--no-pci", "-m",
                                      "64",    "--no-telemetry", "--log-level", "error",    "-l",
                                      ""};
        constexpr int count = (int)(sizeof(argument) / sizeof(*argument));
        char *arguments[count + 1] = {};
        snprintf(argument[count - 1], sizeof(argument[0]), "%d", sched_getcpu());
        for (int i = 0; i < count; i++)
                arguments[i] = argument[i];
        if (rte_eal_init(count, arguments) < 0) {
                fprintf(stderr, "DPDK does not start: %s\n", rte_strerror(rte_errno));
                exit(2);
        }
}

static void prepare()
{
        start_dpdk();
        mempool = rte_mempool_create("bench-64", 65535, object_bytes, RTE_MEMPOOL_CACHE_MAX_SIZE, 0,
                                     nullptr, nullptr, nullptr, nullptr, SOCKET_ID_ANY, 0);
        if (!mempool) {
                fprintf(stderr, "rte_mempool_create: %s\n", rte_strerror(rte_errno));
                exit(2);
        }
}

static inline void *take()
{
        void *object;
        return __builtin_expect(rte_mempool_get(mempool, &object) == 0, 1) ? object : nullptr;
}

static inline void give(void *object)
{
        rte_mempool_put(mempool, object);
}

static double cached_bytes()
{
        return -1;
}

#elif defined(CONTENDER_BOOST) || defined(CONTENDER_BOOST_PRIVATE)

#include <boost/pool/pool.hpp>
#include <boost/pool/singleton_pool.hpp>

#if defined(CONTENDER_BOOST)
struct pool_tag {};
typedef boost::singleton_pool<pool_tag, object_bytes> objects;
#else
struct objects {
        static boost::pool<> &pool()
        {
                static boost::pool<> only(object_bytes);
                return only;
        }
        static void *malloc() { return pool().malloc(); }
        static void free(void *object) { pool().free(object); }
};
#endif

static void prepare() {}

static inline void *take()
{
        return objects::malloc();
}

static inline void give(void *object)
{
        objects::free(object);
}

static double cached_bytes()
{
        return -1;
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
#elif defined(CONTENDER_RPMALLOC)
extern "C" void *rpmalloc(size_t size);
extern "C" void rpfree(void *object);
#define TAKE() rpmalloc(object_bytes)
#define GIVE(object) rpfree(object)
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
