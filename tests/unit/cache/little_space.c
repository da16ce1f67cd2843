/*
 * Proves that the table of caches takes little of an address space that is limited: most of the
 * limit is left for objects. There are fewer indices then. Where memory has ended, a malloc gets
 * what a cache spares.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"

#define LIMIT ((rlim_t)192 << 20)

static struct stook_cache *caches[STOOK_CACHES_MAX];

/* Until none is to be had. The number of them. */
static unsigned make_caches(void)
{
        unsigned n = 0;

        while (n < STOOK_CACHES_MAX && (caches[n] = stook_cache_create("many", 64, NULL)))
                n++;
        return n;
}

static void fewer_caches(void **state)
{
        unsigned n;
        char *object;

        (void)state;
        errno = 0;
        n = make_caches();
        assert_int_equal(errno, EAGAIN);
        printf("%u caches where address space is limited\n", n);
        assert_in_range(n, 300, STOOK_CACHES_MAX / 2);
        object = stook_cache_alloc(caches[n - 1]);
        assert_non_null(object);
        memset(object, 1, 64);
        assert_ptr_equal(stook_object_cache(object), caches[n - 1]);
        stook_cache_free(caches[n - 1], object);
        for (unsigned i = 0; i < n; i++)
                assert_int_equal(stook_cache_destroy(caches[i]), 0);
}

static void most_of_the_limit_is_for_objects(void **state)
{
        struct stook_cache *cache = stook_cache_create("large", 64 << 10, NULL);
        static void *objects[LIMIT >> 16];
        size_t n = 0;

        (void)state;
        assert_non_null(cache);
        while (n < LIMIT >> 16 && (objects[n] = stook_cache_alloc(cache)))
                n++;
        printf("%zu objects of 64 KiB below %llu MiB\n", n, (unsigned long long)LIMIT >> 20);
        assert_in_range(n, (LIMIT >> 16) / 2, (LIMIT >> 16) - 1);
        while (n)
                stook_cache_free(cache, objects[--n]);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void *objects[LIMIT >> 16];
static size_t taken, spared;
static bool may_spare;

static size_t spare(struct stook_cache *cache, size_t wanted, void *data)
{
        size_t n = may_spare ? taken / 2 : 0;

        (void)wanted;
        (void)data;
        for (size_t i = 0; i < n; i++)
                stook_cache_free(cache, objects[--taken]);
        spared += n;
        return n;
}

static void a_malloc_gets_what_a_cache_spares(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .reclaim = spare };
        struct stook_cache *cache = stook_cache_create("spare", 64 << 10, &args);
        void *object;

        (void)state;
        assert_non_null(cache);
        while (taken < LIMIT >> 16 && (objects[taken] = stook_cache_alloc(cache)))
                taken++;
        assert_in_range(taken, 1, (LIMIT >> 16) - 1);
        assert_null(stook_malloc((size_t)1 << 20));
        may_spare = true;
        object = stook_malloc((size_t)1 << 20);
        assert_non_null(object);
        assert_true(spared > 0);
        memset(object, 1, (size_t)1 << 20);
        stook_free(object);
        may_spare = false;
        while (taken)
                stook_cache_free(cache, objects[--taken]);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(int argc, char **argv)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(fewer_caches),
                cmocka_unit_test(most_of_the_limit_is_for_objects),
                cmocka_unit_test(a_malloc_gets_what_a_cache_spares),
        };
        struct rlimit limit = { LIMIT, LIMIT };

        /* The library reads the limit when it starts, which is before main. */
        if (argc == 1) {
                char *again[] = { argv[0], "limited", NULL };

                if (!setrlimit(RLIMIT_AS, &limit))
                        execv(argv[0], again);
                puts("skipped: address space cannot be limited");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
