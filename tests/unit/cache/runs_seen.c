#include "unit/cache/runs_seen.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

void *objects[2 * RUN / 1000];

struct seen seen = { .mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

void forget(void)
{
        memset(seen.runs, 0, sizeof(seen.runs));
        seen.in = seen.out = seen.refused = 0;
        seen.refuse = false;
        seen.fd = -1;
}

int find(uintptr_t run)
{
        int i = 0;

        while (i < RUNS && seen.runs[i] != run)
                i++;
        return i < RUNS ? i : -1;
}

static int take_in(void *start, size_t bytes, void *data)
{
        int at, refused = 0;

        assert_ptr_equal(data, &seen);
        assert_int_equal(bytes, RUN);
        assert_int_equal((uintptr_t)start % RUN, 0);
        pthread_mutex_lock(&seen.mutex);
        assert_int_equal(find((uintptr_t)start), -1);
        at = find(0);
        assert_true(at >= 0);
        if (seen.fd >= 0)
                assert_ptr_equal(mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                      seen.fd, (off_t)(seen.in * RUN)), start);
        if (seen.refuse) {
                seen.refused++;
                refused = -1;
        } else {
                seen.runs[at] = (uintptr_t)start;
                seen.in++;
        }
        pthread_mutex_unlock(&seen.mutex);
        stook_free(stook_malloc(100));                  /* the heap may be used */
        errno = EPERM;
        return refused;
}

static void take_out(void *start, size_t bytes, void *data)
{
        int at;

        assert_ptr_equal(data, &seen);
        assert_int_equal(bytes, RUN);
        pthread_mutex_lock(&seen.mutex);
        at = find((uintptr_t)start);
        assert_true(at >= 0);
        seen.runs[at] = 0;
        seen.out++;
        pthread_mutex_unlock(&seen.mutex);
        stook_free(stook_malloc(100));
        errno = EPERM;
}

struct stook_cache_args asking(uint64_t flags)
{
        return (struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args),
                                          .flags = flags, .memory_in = take_in,
                                          .memory_out = take_out, .memory_data = &seen };
}

struct stook_cache *create(size_t size, const struct stook_cache_args *args)
{
        struct stook_cache *cache = stook_cache_create("runs", size, args);

        assert_non_null(cache);
        return cache;
}

void destroy(struct stook_cache *cache)
{
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(seen.in, seen.out);
}

struct stook_cache_stats stats_of(const struct stook_cache *cache)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        return stats;
}

size_t bytes_kept(const struct stook_cache *cache)
{
        struct stook_cache_stats stats = stats_of(cache);

        return stats.slabs * stats.slab_bytes;
}

size_t take(struct stook_cache *cache, size_t from, size_t bytes)
{
        size_t n = from, end = from + bytes / stats_of(cache).stride;

        for (; n < end; n++) {
                assert_non_null(objects[n] = stook_cache_alloc(cache));
                *(size_t *)objects[n] = n;
        }
        return n;
}

void give(struct stook_cache *cache, size_t from, size_t to)
{
        for (size_t i = from; i < to; i++) {
                assert_int_equal(*(size_t *)objects[i], i);
                stook_cache_free(cache, objects[i]);
        }
}
