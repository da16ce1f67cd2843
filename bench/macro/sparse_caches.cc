/*
 * bench/macro/sparse_caches.cc - many object caches of which little is used
 *
 * Purpose: what a cache costs that holds one object. A program with a cache for each of its types
 * has many of those. After some idle time with calls to another cache, what was taken in advance
 * should be back.
 * Answer: cache_KiB, resident for each cache at once; idle_KiB, the same after wait= ms.
 * Options: caches=N, size=BYTES, wait=MS.
 */
#include <stook/cache.h>

#include "../harness/harness.h"

int main(int argc, char **argv)
{
        long caches = bench::option(argc, argv, "caches", 1000);
        size_t size = (size_t)bench::option(argc, argv, "size", 600);
        long wait = bench::option(argc, argv, "wait", 2500);
        bench::answer answer;
        struct stook_cache *other = stook_cache_create("bench-other", 64, nullptr);
        if (!other)
                return 1;
        stook_cache_free(other, stook_cache_alloc(other));
        bench::resident_kib();          /* what reading touches of libc is not the caches' */
        long before = bench::resident_kib();

        for (long i = 0; i < caches; i++) {
                struct stook_cache *cache = stook_cache_create("bench-sparse", size, nullptr);
                char *object = cache ? (char *)stook_cache_alloc(cache) : nullptr;
                if (!object) {
                        perror("stook_cache_create");
                        return 1;
                }
                memset(object, 1, size);
        }
        answer.add("cache_KiB", (double)(bench::resident_kib() - before) / (double)caches);
        /* More objects than sheaves hold: calls miss, and the slow call reaps what idles. */
        for (long ms = 0; ms < wait; ms += 50) {
                void *objects[1000];
                usleep(50000);
                for (void *&o : objects)
                        o = stook_cache_alloc(other);
                for (void *o : objects)
                        stook_cache_free(other, o);
        }
        answer.add("idle_KiB", (double)(bench::resident_kib() - before) / (double)caches);
        return 0;
}
