/*
 * What this proves: object caches do what <stook/cache.h> says: arguments and their errors, default
 * and asked-for capacities, alignment, constructors, bulk calls, names, merging, destroy and
 * shrink, exact counts.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "os/os.h"
#include "unit/cache/stats_sums.h"

#define ARGS(...) \
        (&(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args), __VA_ARGS__ })

static void refused(const char *name, size_t size, const struct stook_cache_args *args, int error)
{
        errno = 0;
        assert_null(stook_cache_create(name, size, args));
        assert_int_equal(errno, error);
}

static void bad_arguments_are_refused(void **state)
{
        char name63[64], name64[65];

        (void)state;
        memset(name63, 'n', 63), name63[63] = 0;
        memset(name64, 'n', 64), name64[64] = 0;
        refused(NULL, 64, NULL, EINVAL);
        refused("", 64, NULL, EINVAL);
        refused(name64, 64, NULL, EINVAL);
        refused("x", 0, NULL, EINVAL);
        refused("x", STOOK_OBJECT_MAX + 1, NULL, ERANGE);
        refused("x", PTRDIFF_MAX, NULL, ERANGE);
        refused("x", SIZE_MAX, NULL, ERANGE);
        refused("x", 64, ARGS(.align = 24), EINVAL);
        refused("x", 64, ARGS(.align = 1 << 20), EINVAL);
        refused("x", 64, ARGS(.sheaf_capacity = 65535), EINVAL);
        refused("x", 64, &(struct stook_cache_args){ .args_size = 0 }, EINVAL);
        refused("x", 64,
                &(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args) + 8 },
                EINVAL);
        for (unsigned bit = 0; bit < 64; bit++) {
                uint64_t flag = UINT64_C(1) << bit;

                if (!(flag &
                      (STOOK_CACHE_HWCACHE_ALIGN | STOOK_CACHE_MERGE | STOOK_CACHE_NO_SHEAVES |
                       STOOK_CACHE_RANDOM_ORDER | STOOK_CACHE_RCU | STOOK_CACHE_TYPESAFE_BY_RCU |
                       STOOK_CACHE_ACCOUNT | STOOK_CACHE_HUGE_PAGES | STOOK_CACHE_CHECK |
                       STOOK_CACHE_RED_ZONE | STOOK_CACHE_POISON | STOOK_CACHE_STORE_USER |
                       STOOK_CACHE_TRACE | STOOK_CACHE_MAY_FAIL | STOOK_CACHE_QUARANTINE)))
                        refused("x", 64, ARGS(.flags = flag), EINVAL);
        }
        refused("x", 64, ARGS(.rcu = &(struct stook_rcu){ .ops_size = 8 }), EINVAL);

        struct stook_cache *cache = stook_cache_create(name63, 64, NULL);

        assert_non_null(cache);
        assert_ptr_equal(stook_cache_find(name63), cache);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_null(stook_cache_find(name63));
        assert_null(stook_cache_find(NULL));
        assert_int_equal(stook_cache_destroy(NULL), 0);
}

static unsigned capacity(size_t size, const struct stook_cache_args *args)
{
        struct stook_cache *cache = stook_cache_create("capacity", size, args);
        unsigned answer;

        assert_non_null(cache);
        answer = (unsigned)stats_of(cache).sheaf_capacity;
        assert_int_equal(stook_cache_destroy(cache), 0);
        return answer;
}

static void capacities_follow_the_size(void **state)
{
        (void)state;
        assert_int_equal(capacity(8, NULL), 64);
        assert_int_equal(capacity(64, NULL), 64);
        assert_int_equal(capacity(255, NULL), 32);      /* takes 256 bytes */
        assert_int_equal(capacity(256, NULL), 32);
        assert_int_equal(capacity(512, NULL), 32);
        assert_int_equal(capacity(1024, NULL), 12);
        assert_int_equal(capacity(2048, NULL), 12);
        assert_int_equal(capacity(4096, NULL), 4);
        assert_int_equal(capacity(8192, NULL), 4);
        assert_int_equal(capacity(131072, NULL), 1);
        /* A wish only raises, and is rounded up to fill its memory. */
        assert_int_equal(capacity(64, ARGS(.sheaf_capacity = 4)), 64);
        assert_int_equal(capacity(256, ARGS(.sheaf_capacity = 33)), 64);
        assert_int_equal(capacity(64, ARGS(.sheaf_capacity = 65)), 128);
        assert_int_equal(capacity(64, ARGS(.sheaf_capacity = 65534)), 65534);
        for (unsigned asked = 1; asked < 65535; asked = asked * 3 / 2 + 1) {
                unsigned rounded = 64;

                while (rounded < asked)
                        rounded *= 2;
                if (rounded > 65534)
                        rounded = 65534;
                assert_int_equal(capacity(64, ARGS(.sheaf_capacity = asked)), rounded);
        }
        assert_int_equal(capacity(64, ARGS(.flags = STOOK_CACHE_NO_SHEAVES)), 0);
        assert_int_equal(capacity(64, ARGS(.flags = STOOK_CACHE_NO_SHEAVES, .sheaf_capacity = 100)),
                         0);
}

static void aligned(size_t size, const struct stook_cache_args *args, size_t align)
{
        struct stook_cache *cache = stook_cache_create("align", size, args);
        void *objects[50];

        assert_non_null(cache);
        for (int i = 0; i < 50; i++) {
                objects[i] = stook_cache_alloc(cache);
                assert_non_null(objects[i]);
                assert_int_equal((uintptr_t)objects[i] % align, 0);
                memset(objects[i], i, size);
        }
        for (int i = 0; i < 50; i++) {
                assert_int_equal(*(unsigned char *)objects[i], i);
                stook_cache_free(cache, objects[i]);
        }
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void objects_are_aligned(void **state)
{
        (void)state;
        aligned(1, NULL, 8);
        aligned(24, NULL, 8);
        aligned(48, NULL, 16);
        aligned(100, ARGS(.align = 64), 64);
        aligned(20, ARGS(.align = 4096), 4096);
        aligned(5000, ARGS(.align = 1024), 1024);
        aligned(100, ARGS(.flags = STOOK_CACHE_HWCACHE_ALIGN), 64);
        aligned(20, ARGS(.flags = STOOK_CACHE_HWCACHE_ALIGN), 32);
}

static unsigned constructed;

static void construct(void *object, void *data)
{
        constructed++;
        memset(object, *(char *)data, 40);
}

static void constructors_run_once_for_each_object(void **state)
{
        char mark = 'c';
        struct stook_cache *cache = stook_cache_create("ctor", 40,
                                                       ARGS(.ctor = construct, .ctor_data = &mark));
        char *objects[300];
        unsigned after;

        (void)state;
        assert_non_null(cache);
        for (int i = 0; i < 300; i++) {
                objects[i] = stook_cache_alloc(cache);
                for (int k = 0; k < 40; k++)
                        assert_int_equal(objects[i][k], 'c');
        }
        assert_true(constructed >= 300);
        for (int i = 0; i < 300; i++)
                stook_cache_free(cache, objects[i]);
        after = constructed;
        for (int i = 0; i < 300; i++) {
                objects[i] = stook_cache_alloc(cache);
                for (int k = 0; k < 40; k++)
                        assert_int_equal(objects[i][k], 'c');
        }
        assert_int_equal(constructed, after);
        errno = 0;
        assert_null(stook_cache_zalloc(cache));
        assert_int_equal(errno, EINVAL);
        errno = 0;
        assert_null(stook_cache_alloc_node(cache, STOOK_ALLOC_ZERO, -1));
        assert_int_equal(errno, EINVAL);
        assert_int_equal(stook_cache_alloc_bulk(cache, STOOK_ALLOC_ZERO, 1, (void **)objects),
                         -EINVAL);
        stook_cache_free_bulk(cache, 300, (void **)objects);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void nodes_are_checked(void **state)
{
        struct stook_cache *cache = stook_cache_create("node", 64, NULL);
        void *object;

        (void)state;
        object = stook_cache_alloc_node(cache, STOOK_ALLOC_ZERO | STOOK_ALLOC_THISNODE |
                                        STOOK_ALLOC_NOWAIT, 0);
        assert_non_null(object);
        assert_int_equal(stook_object_node(object), 0);
        assert_int_equal(stook_object_node((char *)object + 1), -EINVAL);
        assert_int_equal(stook_object_node(&object), -EINVAL);
        assert_ptr_equal(stook_object_cache(object), cache);
        assert_null(stook_object_cache((char *)object + 8));
        assert_null(stook_object_cache(&object));
        assert_null(stook_object_cache(NULL));
        stook_cache_free(cache, object);
        for (int node = -3; node < 3; node++) {
                errno = 0;
                object = stook_cache_alloc_node(cache, 0, node);
                assert_int_equal(!object, node != 0 && node != -1);
                assert_int_equal(errno, object ? 0 : EINVAL);
                stook_cache_free(cache, object);
        }
        errno = 0;
        assert_null(stook_cache_alloc_node(cache, 16, -1));
        assert_int_equal(errno, EINVAL);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static bool is_zero(const void *object, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if (((const char *)object)[i])
                        return false;
        return true;
}

/* Every call that takes flags takes the same ones, and refuses the same ones. */
static void flags_are_the_same_everywhere(void **state)
{
        struct stook_cache *cache = stook_cache_create("flags", 64,
                                                       ARGS(.flags = STOOK_CACHE_ACCOUNT));
        void *object[5];

        (void)state;
        for (unsigned flags = 0; flags < 64; flags++) {
                bool good = flags < 16;

                errno = 0;
                object[0] = stook_cache_alloc_flags(cache, flags);
                assert_int_equal(errno, good ? 0 : EINVAL);
                object[1] = stook_cache_alloc_node(cache, flags, 0);
                assert_int_equal(errno, good ? 0 : EINVAL);
                object[2] = stook_cache_alloc_group(cache, flags, NULL);
                assert_int_equal(errno, good ? 0 : EINVAL);
                assert_int_equal(stook_cache_alloc_bulk(cache, flags, 2, object + 3),
                                 good ? 0 : -EINVAL);
                for (int i = 0; i < (good ? 5 : 3); i++) {
                        assert_int_equal(object[i] != NULL, good);
                        if (!good)
                                continue;
                        if (flags & STOOK_ALLOC_ZERO)
                                assert_true(is_zero(object[i], 64));
                        memset(object[i], 0x5a, 64);
                        stook_cache_free(cache, object[i]);
                }
        }
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void bulk_gets_all(void **state)
{
        struct stook_cache *a = stook_cache_create("bulk-a", 64, NULL);
        struct stook_cache *b = stook_cache_create("bulk-b", 300,
                                                   ARGS(.flags = STOOK_CACHE_NO_SHEAVES));
        static unsigned char *objects[5000], *mixed[10000];

        (void)state;
        assert_int_equal(stook_cache_alloc_bulk(a, 0, 0, (void **)objects), 0);
        assert_int_equal(stook_cache_alloc_bulk(a, STOOK_ALLOC_ZERO, 0, NULL), 0);
        assert_int_equal(stook_cache_alloc_bulk(a, 16, 0, NULL), -EINVAL);
        assert_int_equal(stook_cache_alloc_bulk(a, 16, 1, (void **)objects), -EINVAL);
        assert_int_equal(stook_cache_alloc_bulk(a, 0, 1, NULL), -EINVAL);
        assert_int_equal(stook_cache_alloc_bulk(a, 0, SIZE_MAX, (void **)objects), -ENOMEM);
        assert_int_equal(
                stook_cache_alloc_bulk(a, 0, PTRDIFF_MAX / sizeof(void *) + 1, (void **)objects),
                -ENOMEM);
        assert_null(objects[0]);                        /* nor was anything written */
        for (size_t n = 1; n <= 5000; n = n * 3 / 2 + 1) {
                assert_int_equal(stook_cache_alloc_bulk(a, STOOK_ALLOC_ZERO, n, (void **)objects),
                                 0);
                for (size_t i = 0; i < n; i++) {
                        assert_int_equal(objects[i][0] | objects[i][63], 0);
                        memset(objects[i], 0xff, 64);
                        mixed[2 * i] = objects[i];
                }
                assert_int_equal(stook_cache_alloc_bulk(b, 0, n, (void **)objects), 0);
                for (size_t i = 0; i < n; i++)
                        mixed[2 * i + 1] = objects[i];
                assert_int_equal(stats_of(a).objects_live, n);
                assert_int_equal(stats_of(b).objects_live, n);
                if (n & 1) {
                        stook_cache_free_bulk(NULL, 2 * n, (void **)mixed);
                } else {
                        for (size_t i = 0; i < n; i++)
                                objects[i] = mixed[2 * i];
                        stook_cache_free_bulk(a, n, (void **)objects);
                        for (size_t i = 0; i < n; i++)
                                objects[i] = mixed[2 * i + 1];
                        stook_cache_free_bulk(b, n, (void **)objects);
                }
                assert_int_equal(stats_of(a).objects_live, 0);
                assert_int_equal(stats_of(b).objects_live, 0);
                assert_int_equal(stook_cache_validate(a), 0);
                assert_int_equal(stook_cache_validate(b), 0);
        }
        stook_cache_free_bulk(a, 0, NULL);
        stook_cache_free_bulk(NULL, 0, NULL);
        assert_int_equal(stook_cache_destroy(a), 0);
        assert_int_equal(stook_cache_destroy(b), 0);
}

/*
 * An object of malloc's is a span above 128 KiB, and below it where zeros or an alignment were
 * asked for.
 */
static void bulk_frees_without_a_cache(void **state)
{
        struct stook_cache *cache = stook_cache_create("bulk-any", 64, NULL);
        void *objects[600], *again[600];
        size_t live[2] = { 0, 0 };

        (void)state;
        for (int i = 0; i < 600; i++) {
                objects[i] = i % 4 == 0   ? stook_cache_alloc(cache)
                             : i % 4 == 1 ? stook_calloc(1, 40000 + (size_t)i * 1000)
                             : i % 4 == 2 ? stook_aligned_alloc(2 * stook_os_page_bytes(), 100)
                                          : stook_malloc((size_t)i * 10);
                assert_non_null(objects[i]);
                live[0] += stook_usable_size(objects[i]) > 0;
        }
        assert_int_equal(live[0], 600);
        memcpy(again, objects, sizeof(objects));
        errno = 4711;
        stook_cache_free_bulk(NULL, 600, objects);
        assert_int_equal(errno, 4711);
        assert_int_equal(stats_of(cache).objects_live, 0);
        for (int i = 0; i < 600; i++)
                if (i % 4 == 1 || i % 4 == 2)
                        live[1] += stook_owns(again[i]);
        assert_int_equal(live[1], 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static unsigned left_reports;
static char     left_text[300];         /* of the first one */

static void on_left(const struct stook_report *report, void *data)
{
        (void)data;
        assert_int_equal(report->fault, STOOK_FAULT_OBJECTS_LEFT);
        assert_string_equal(report->cache_name, "left");
        if (!left_reports++)
                snprintf(left_text, sizeof(left_text), "%s", report->text);
}

static void destroy_reports_what_is_left(void **state)
{
        struct stook_cache *cache = stook_cache_create("left", 64, NULL), *other;
        void *objects[40];

        (void)state;
        for (int i = 0; i < 40; i++)
                objects[i] = stook_cache_alloc(cache);
        for (int i = 3; i < 40; i++)
                stook_cache_free(cache, objects[i]);
        stook_on_report(on_left, NULL);
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        assert_int_equal(left_reports, 4);              /* the sum and three objects */
        assert_non_null(strstr(left_text, "3 still allocated"));
        /* The cache is kept, and whole. */
        assert_ptr_equal(stook_cache_find("left"), cache);
        assert_int_equal(stook_cache_validate(cache), 0);
        for (int i = 3; i < 40; i++)
                objects[i] = stook_cache_alloc(cache);
        assert_true(stats_of(cache).sheaf_refill > 0);
        left_reports = 0;
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        assert_int_equal(left_reports, 17);             /* sixteen of forty named */
        assert_non_null(strstr(left_text, "40 still allocated"));
        for (int i = 0; i < 40; i++)
                stook_cache_free(cache, objects[i]);
        left_reports = 0;
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(left_reports, 0);
        stook_on_report(NULL, NULL);
        /* The index serves the next cache, from nought. */
        other = stook_cache_create("next", 128, NULL);
        assert_ptr_equal(other, cache);
        assert_int_equal(stats_of(other).alloc_slab, 0);
        objects[0] = stook_cache_alloc(other);
        assert_int_equal(stats_of(other).objects_live, 1);
        stook_cache_free(other, objects[0]);
        assert_int_equal(stook_cache_destroy(other), 0);
}

static void size_classes_stay(void **state)
{
        void *object = stook_malloc(1000);
        struct stook_cache *class = stook_object_cache(object);

        (void)state;
        assert_int_equal(stook_cache_destroy(class), -EINVAL);
        stook_free(object);
        assert_int_equal(stook_cache_destroy(class), -EINVAL);
        assert_ptr_equal(stook_cache_find("malloc-1024"), class);
        object = stook_malloc(1000);
        assert_ptr_equal(stook_object_cache(object), class);
        stook_free(object);
        assert_true(stats_of(class).objects_cached > 0);
}

static void shrink_gives_slabs_back(void **state)
{
        struct stook_cache *cache = stook_cache_create("shrink", 512, NULL);
        static void *objects[4000];

        (void)state;
        for (int i = 0; i < 4000; i++)
                objects[i] = stook_cache_alloc(cache);
        assert_true(stats_of(cache).slabs * stats_of(cache).objects_per_slab >= 4000);
        for (int i = 1; i < 4000; i++)
                stook_cache_free(cache, objects[i]);
        assert_true(stats_of(cache).objects_cached > 0);
        assert_int_equal(stook_cache_shrink(cache), 1);
        assert_int_equal(stats_of(cache).objects_cached, 0);
        assert_int_equal(stats_of(cache).objects_live, 1);
        assert_int_equal(stats_of(cache).slabs, 1);
        stook_cache_free(cache, objects[0]);
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(stats_of(cache).slabs, 0);
        assert_int_equal(stats_of(cache).sheaves, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void merging_is_on_request(void **state)
{
        struct stook_cache *a = stook_cache_create("merge-a", 120,
                                                   ARGS(.flags = STOOK_CACHE_MERGE));
        struct stook_cache *b = stook_cache_create("merge-b", 116,
                                                   ARGS(.flags = STOOK_CACHE_MERGE));
        struct stook_cache *c = stook_cache_create("merge-c", 120, NULL);
        struct stook_cache *d = stook_cache_create(
                "merge-d", 120, ARGS(.flags = STOOK_CACHE_MERGE, .sheaf_capacity = 100));
        struct stook_cache *e = stook_cache_create("merge-e", 120,
                                                   ARGS(.flags = STOOK_CACHE_MERGE, .align = 64));
        void *object;

        (void)state;
        assert_ptr_equal(a, b);
        assert_int_equal(stook_cache_object_size(a), 120);
        assert_ptr_equal(stook_cache_find("merge-b"), a);
        assert_ptr_not_equal(a, c);
        assert_ptr_not_equal(a, d);
        assert_ptr_not_equal(a, e);
        object = stook_cache_alloc(b);
        assert_int_equal(stook_cache_destroy(b), 0); /* one user less: nothing is left over yet */
        assert_ptr_equal(stook_cache_find("merge-a"), a);
        stook_cache_free(a, object);
        assert_int_equal(stook_cache_destroy(a), 0);
        assert_null(stook_cache_find("merge-b"));
        assert_int_equal(stook_cache_destroy(c), 0);
        assert_int_equal(stook_cache_destroy(d), 0);
        assert_int_equal(stook_cache_destroy(e), 0);
}

static int count(struct stook_cache *cache, void *data)
{
        (void)cache;
        ++*(int *)data;
        return 0;
}

static int stop_at(struct stook_cache *cache, void *data)
{
        return cache == data ? 7 : 0;
}

static void find_returns_the_oldest(void **state)
{
        struct stook_cache *a = stook_cache_create("same", 64, NULL);
        struct stook_cache *b = stook_cache_create("same", 64, NULL), *c;
        int before = 0, after = 0;

        (void)state;
        assert_ptr_equal(stook_cache_find("same"), a);
        stook_cache_for_each(count, &before);
        assert_int_equal(stook_cache_destroy(a), 0);
        assert_ptr_equal(stook_cache_find("same"), b);
        c = stook_cache_create("same", 64, NULL);
        assert_ptr_equal(c, a);                         /* the index again, but younger than b */
        assert_ptr_equal(stook_cache_find("same"), b);
        stook_cache_for_each(count, &after);
        assert_int_equal(before, after);
        assert_int_equal(stook_cache_for_each(stop_at, b), 7);
        assert_int_equal(stook_cache_destroy(b), 0);
        assert_int_equal(stook_cache_destroy(c), 0);
}

static void stats_check_their_arguments(void **state)
{
        struct stook_cache *cache = stook_cache_create("stats", 64, NULL);
        struct stook_cache_stats s = { .stats_size = sizeof(s) - 1 };

        (void)state;
        assert_int_equal(stook_cache_get_stats(cache, &s), -EINVAL);
        assert_int_equal(stook_cache_get_stats(cache, NULL), -EINVAL);
        s.stats_size = sizeof(s);
        assert_int_equal(stook_cache_get_stats(NULL, &s), -EINVAL);
        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        assert_string_equal(s.name, "stats");
        assert_int_equal(s.object_size, 64);
        assert_int_equal(s.stride, 64);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Each pair counts, and where from: the sheaf's word keeps them until its memory goes elsewhere. */
static void counts_are_exact(void **state)
{
        struct stook_cache *cache = stook_cache_create("counts", 64, NULL);
        static void *objects[3000];
        struct stook_cache_stats s;
        uint64_t allocs = 0;

        (void)state;
        for (int round = 0; round < 20; round++) {
                int n = 1 + round * 150;

                for (int i = 0; i < n; i++)
                        objects[i] = stook_cache_alloc(cache);
                allocs += (uint64_t)n;
                s = stats_of(cache);
                assert_int_equal(s.objects_live, n);
                assert_int_equal(s.alloc_fastpath + s.alloc_slowpath, allocs);
                for (int i = 0; i < n; i++)
                        stook_cache_free(cache, objects[i]);
                s = stats_of(cache);
                assert_int_equal(s.free_fastpath + s.free_slowpath, allocs);
                if (round % 5 == 4)
                        stook_cache_shrink(cache);
        }
        assert_true(s.alloc_fastpath > s.alloc_slowpath);
        assert_true(s.barn_put > 0);
        assert_true(s.barn_get > 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test(bad_arguments_are_refused),
                cmocka_unit_test(capacities_follow_the_size),
                cmocka_unit_test(objects_are_aligned),
                cmocka_unit_test(constructors_run_once_for_each_object),
                cmocka_unit_test(nodes_are_checked),
                cmocka_unit_test(flags_are_the_same_everywhere),
                cmocka_unit_test(bulk_gets_all),
                cmocka_unit_test(bulk_frees_without_a_cache),
                cmocka_unit_test(destroy_reports_what_is_left),
                cmocka_unit_test(size_classes_stay),
                cmocka_unit_test(shrink_gives_slabs_back),
                cmocka_unit_test(merging_is_on_request),
                cmocka_unit_test(find_returns_the_oldest),
                cmocka_unit_test(stats_check_their_arguments),
                cmocka_unit_test(counts_are_exact),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
