/*
 * What this proves: each call of <stook/heap.h> does what its comment says, and fails with every
 * error that the comment names. Objects are of their heap alone; frees and resizes of malloc know
 * them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "heap/heaps.h"
#include "off_by.h"
#include "os/os.h"
#include <stook/stook.h>

static unsigned reports;
static enum stook_fault last_fault;

static void on_report(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        last_fault = report->fault;
}

static struct stook_heap *make(uint64_t limit)
{
        struct stook_heap_args args = { .args_size = sizeof(args), .limit_bytes = limit };
        struct stook_heap *heap = stook_heap_create("unit", &args);

        assert_non_null(heap);
        return heap;
}

static struct stook_heap_stats stats_of(struct stook_heap *heap)
{
        struct stook_heap_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_heap_get_stats(heap, &stats), 0);
        return stats;
}

#define REFUSED(error, ...) \
        do { \
                errno = 0; \
                assert_null(__VA_ARGS__); \
                assert_int_equal(errno, error); \
        } while (0)

static int destroy_there(struct stook_cache *cache, void *data)
{
        (void)cache;
        return stook_heap_destroy(data) == -EDEADLK && stook_heap_reset(data) == -EDEADLK &&
               stook_heap_shrink(data) == -EDEADLK ? 42 : 1;
}

static int refuse(struct stook_heap *heap, void *data)
{
        (void)heap, (void)data;
        return 1;
}

static int create_there(struct stook_cache *cache, void *data)
{
        struct stook_heap_stats stats = { .stats_size = sizeof(stats) };

        (void)cache;
        errno = 0;
        return !stook_heap_create("there", NULL) && errno == EDEADLK &&
               stook_heap_for_each(refuse, NULL) == -EDEADLK &&
               stook_heap_get_stats(data, &stats) == -EDEADLK ? 42 : 1;
}

static void a_heap_is_made_of_good_arguments(void **state)
{
        struct stook_heap_args args = { 0 };
        char name[STOOK_HEAP_NAME_BYTES + 1];
        struct stook_heap *heap;

        (void)state;
        REFUSED(EINVAL, stook_heap_create(NULL, NULL));
        REFUSED(EINVAL, stook_heap_create("", NULL));
        REFUSED(EINVAL, stook_heap_create("unit", &args));
        memset(name, 'n', sizeof(name));
        name[STOOK_HEAP_NAME_BYTES] = 0;
        REFUSED(EINVAL, stook_heap_create(name, NULL));
        name[STOOK_HEAP_NAME_BYTES - 1] = 0;
        heap = stook_heap_create(name, NULL);
        assert_non_null(heap);
        assert_string_equal(stats_of(heap).name, name);
        assert_int_equal(stats_of(heap).limit_bytes, 0);
        assert_int_equal(stook_heap_destroy(heap), 0);
}

/* In a call that holds the list of caches. */
static int walk_caches(int (*each)(struct stook_cache *cache, void *data), void *data)
{
        struct stook_cache *one = stook_cache_create("one", 8, NULL);
        int answer = stook_cache_for_each(each, data);

        assert_int_equal(stook_cache_destroy(one), 0);
        return answer;
}

static void no_call_waits_for_the_call_that_it_is_made_in(void **state)
{
        struct stook_heap *heap = make(0);
        void *object;

        (void)state;
        stook_on_report(on_report, NULL);
        reports = 0;
        assert_int_equal(walk_caches(destroy_there, heap), 42);
        assert_int_equal(reports, 3);
        assert_int_equal(last_fault, STOOK_FAULT_DEADLOCK);
        assert_int_equal(walk_caches(create_there, heap), 42);
        object = stook_heap_alloc(heap, 100);
        assert_ptr_equal(stook_heap_of(object), heap);
        assert_int_equal(stook_heap_destroy(heap), 0);
        stook_on_report(NULL, NULL);
}

static int alloc_there(struct stook_cache *cache, void *data)
{
        void *object = stook_heap_alloc(data, 100);

        (void)cache;
        memset(object, 1, 100);
        return stook_heap_of(object) == data ? 42 : 1;
}

/* Where the heap's first object of a size cannot have a cache. */
static void an_object_without_a_cache_is_a_span(void **state)
{
        struct stook_heap *heap = make(0);

        (void)state;
        assert_int_equal(walk_caches(alloc_there, heap), 42);
        assert_int_equal(stats_of(heap).spilled, 1);
        assert_int_equal(stats_of(heap).caches, 0);
        assert_int_equal(stats_of(heap).large_bytes, stook_os_page_bytes());
        assert_int_equal(stook_heap_destroy(heap), 0);
}

static void objects_of_all_sizes_are_the_heap_s(void **state)
{
        struct stook_heap *heap = make(0), *other = make(0);

        (void)state;
        for (size_t size = 0; size < 300000; size += size / 7 + 1) {
                char *object = stook_heap_alloc(heap, size);
                char *stranger = stook_heap_alloc(other, size), *plain = stook_malloc(size);

                assert_non_null(object);
                assert_int_equal(off_by(object, 16), 0);
                assert_true(stook_usable_size(object) >= size);
                assert_true(stook_owns(object));
                memset(object, 1, stook_usable_size(object));
                assert_ptr_equal(stook_heap_of(object), heap);
                assert_ptr_equal(stook_heap_of(stranger), other);
                assert_null(stook_heap_of(plain));
                stook_heap_free(heap, object);
                stook_free(stranger);
                stook_free(plain);
        }
        assert_null(stook_heap_of(NULL));
        assert_null(stook_heap_of(&heap));
        assert_int_equal(stats_of(heap).objects_live, 0);
        assert_int_equal(stats_of(heap).large_bytes, 0);
        assert_int_equal(stook_heap_destroy(other), 0);
        assert_int_equal(stook_heap_destroy(heap), 0);
}

static void zeroed_objects_are_zero(void **state)
{
        struct stook_heap *heap = make(0);

        (void)state;
        for (unsigned round = 0; round < 3; round++)
                for (size_t size = 1; size < 200000; size = size * 2 + 1) {
                        unsigned char *object = stook_heap_calloc(heap, size, 1);

                        assert_non_null(object);
                        for (size_t i = 0; i < size; i++)
                                assert_int_equal(object[i], 0);
                        memset(object, 0xff, stook_usable_size(object));
                        stook_heap_free(heap, object);
                }
        REFUSED(ENOMEM, stook_heap_calloc(heap, SIZE_MAX / 2, 3));
        assert_int_equal(stook_heap_destroy(heap), 0);
}

static volatile size_t no_align = 0, odd_align = 24;

static void aligned_objects_are_aligned(void **state)
{
        struct stook_heap *heap = make(0);

        (void)state;
        for (size_t align = 1; align <= 1 << 20; align *= 2)
                for (size_t size = 0; size < 100000; size = size * 3 + 1) {
                        void *object = stook_heap_aligned_alloc(heap, align, size);

                        assert_non_null(object);
                        assert_int_equal(off_by(object, align), 0);
                        assert_ptr_equal(stook_heap_of(object), heap);
                        memset(object, 1, size);
                        if (size % 2)
                                stook_free(object);
                }
        REFUSED(EINVAL, stook_heap_aligned_alloc(heap, no_align, 10));
        REFUSED(EINVAL, stook_heap_aligned_alloc(heap, odd_align, 10));
        REFUSED(ENOMEM, stook_heap_aligned_alloc(heap, 64, SIZE_MAX - 100));
        assert_int_equal(stook_heap_destroy(heap), 0);
}

static void check_bytes(const unsigned char *object, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                assert_int_equal(object[i], (unsigned char)(i * 7));
}

/* By the heap's call, and by the one that knows no heap. */
static void a_resized_object_stays_in_its_heap(void **state)
{
        static const size_t sizes[] = { 1, 16, 100, 40, 5000, 30000, 70000, 20000, 200000, 5000000,
                                        900000, 33000, 10, 0, 64 };
        struct stook_heap *heap = make(0);

        (void)state;
        for (unsigned plain = 0; plain < 2; plain++) {
                unsigned char *object = stook_heap_realloc(heap, NULL, 8);
                size_t had = 8;

                for (size_t i = 0; i < had; i++)
                        object[i] = (unsigned char)(i * 7);
                for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
                        object = plain ? stook_realloc(object, sizes[k])
                                       : stook_heap_realloc(heap, object, sizes[k]);
                        assert_non_null(object);
                        assert_ptr_equal(stook_heap_of(object), heap);
                        check_bytes(object, had < sizes[k] ? had : sizes[k]);
                        had = sizes[k];
                        for (size_t i = 0; i < had; i++)
                                object[i] = (unsigned char)(i * 7);
                }
                stook_free(object);
        }
        assert_int_equal(stats_of(heap).large_bytes, 0);
        REFUSED(ENOMEM, stook_heap_realloc(heap, stook_heap_alloc(heap, 9), SIZE_MAX / 2));
        REFUSED(ENOMEM, stook_heap_realloc(heap, stook_heap_alloc(heap, 90000), SIZE_MAX / 2));
        assert_int_equal(stook_heap_destroy(heap), 0);
}

static void misuse_is_reported(void **state)
{
        struct stook_heap *heap = make(0), *other = make(0);
        char *small = stook_heap_alloc(heap, 100), *large = stook_heap_alloc(heap, 100000);
        char *plain = stook_malloc(100);
        struct { void *pointer; enum stook_fault fault; } bad[] = {
                { stook_heap_alloc(other, 100), STOOK_FAULT_WRONG_CACHE },
                { stook_heap_alloc(other, 100000), STOOK_FAULT_WRONG_CACHE },
                { plain, STOOK_FAULT_WRONG_CACHE },
                { small + 8, STOOK_FAULT_INTERIOR },
                { large + 4096, STOOK_FAULT_NOT_LIVE },
                { &heap, STOOK_FAULT_FOREIGN },
        };

        (void)state;
        stook_on_report(on_report, NULL);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                reports = 0;
                stook_heap_free(heap, bad[i].pointer);
                assert_int_equal(reports, 1);
                assert_int_equal(last_fault, bad[i].fault);
                REFUSED(EINVAL, stook_heap_realloc(heap, bad[i].pointer, 10));
                assert_int_equal(reports, 2);
        }
        stook_heap_free(heap, NULL);
        assert_int_equal(reports, 2);
        stook_free(plain);
        assert_int_equal(stook_heap_destroy(other), 0);
        assert_int_equal(stook_heap_destroy(heap), 0);
        reports = 0;
        assert_int_equal(stook_heap_destroy(heap), -EINVAL);
        assert_int_equal(last_fault, STOOK_FAULT_DOUBLE_FREE);
        assert_int_equal(stook_heap_reset(heap), -EINVAL);
        assert_int_equal(stook_heap_shrink(heap), -EINVAL);
        REFUSED(ENOMEM, stook_heap_alloc(heap, 100));
        REFUSED(ENOMEM, stook_heap_calloc(heap, 100, 1));
        REFUSED(ENOMEM, stook_heap_aligned_alloc(heap, 8192, 1));
        assert_int_equal(last_fault, STOOK_FAULT_NOT_LIVE);
        assert_int_equal(reports, 6);
        /* The objects went with the heap. */
        stook_free(small);
        stook_free(large);
        assert_int_equal(reports, 8);
        assert_int_equal(last_fault, STOOK_FAULT_NOT_LIVE);
        stook_on_report(NULL, NULL);
}

static void arguments_that_are_none_are_refused(void **state)
{
        struct stook_heap_stats stats = { .stats_size = 1 };
        struct stook_heap *heap = make(0);

        (void)state;
        assert_int_equal(stook_heap_destroy(NULL), 0);
        assert_int_equal(stook_heap_reset(NULL), -EINVAL);
        assert_int_equal(stook_heap_shrink(NULL), -EINVAL);
        assert_int_equal(stook_heap_set_limit(NULL, 1), -EINVAL);
        assert_int_equal(stook_heap_get_stats(NULL, &stats), -EINVAL);
        assert_int_equal(stook_heap_get_stats(heap, NULL), -EINVAL);
        assert_int_equal(stook_heap_get_stats(heap, &stats), -EINVAL);
        assert_int_equal(stook_heap_for_each(NULL, NULL), -EINVAL);
        assert_int_equal(stook_heap_destroy(heap), 0);
        stats.stats_size = sizeof(stats);
        assert_int_equal(stook_heap_get_stats(heap, &stats), -EINVAL);
}

static int find(struct stook_heap *heap, void *data)
{
        struct stook_heap **wanted = data;

        if (heap == *wanted)
                return 7;
        assert_ptr_equal(heap, wanted[1]);
        return 0;
}

static void a_walk_meets_each_heap(void **state)
{
        struct stook_heap *heaps[2];

        (void)state;
        assert_int_equal(stook_heap_for_each(find, NULL), 0);
        for (unsigned i = 0; i < 2; i++)
                heaps[i] = make(0);
        assert_int_equal(stook_heap_for_each(find, heaps), 7);
        assert_int_equal(stook_heap_destroy(heaps[0]), 0);
        assert_int_equal(stook_heap_for_each(find, heaps), 0);
        assert_int_equal(stook_heap_destroy(heaps[1]), 0);
}

/* All that the heap takes, slabs and large objects. */
static void a_limit_bounds_a_heap(void **state)
{
        struct stook_heap *heap = make(1 << 20);
        void **objects = calloc(100000, sizeof(*objects)), *large;
        size_t n = 0;

        (void)state;
        assert_int_equal(stats_of(heap).limit_bytes, 1 << 20);
        while ((objects[n] = stook_heap_alloc(heap, 64)))
                memset(objects[n++], 1, 64);
        assert_int_equal(errno, ENOMEM);
        assert_true(n * 64 > (1 << 20) - (1 << 16) && n * 64 <= 1 << 20);
        assert_true(stats_of(heap).bytes <= 1 << 20);
        assert_true(stats_of(heap).refusals > 0);
        REFUSED(ENOMEM, stook_heap_alloc(heap, 100000));
        REFUSED(ENOMEM, stook_heap_alloc(heap, 2 << 20));
        /* What was freed is had again, of another size: the sheaves are emptied for it. */
        for (size_t i = 0; i < n; i++)
                stook_heap_free(heap, objects[i]);
        large = stook_heap_alloc(heap, 900000);
        assert_non_null(large);
        REFUSED(ENOMEM, stook_heap_realloc(heap, large, 2000000));
        assert_int_equal(stook_heap_set_limit(heap, 0), 0);
        large = stook_heap_realloc(heap, large, 2000000);
        assert_non_null(large);
        assert_true(stats_of(heap).large_bytes >= 2000000);
        assert_true(stats_of(heap).peak_bytes >= stats_of(heap).bytes);
        assert_int_equal(stook_heap_set_limit(heap, 1), 0);
        REFUSED(ENOMEM, stook_heap_alloc(heap, 3000));
        assert_int_equal(stook_heap_destroy(heap), 0);
        free(objects);
}

/*
 * A large object that grows gets ahead of what was asked for, and near the limit it is cut to that:
 * the group is charged what the heap has, no more and no less.
 */
static void what_is_cut_at_a_limit_is_uncharged(void **state)
{
        struct stook_group *group = stook_group_create("cut", NULL, 0);
        struct stook_heap_args args = { .args_size = sizeof(args), .group = group,
                                        .limit_bytes = 4 << 20 };
        struct stook_heap *heap = stook_heap_create("cut", &args);
        uint64_t own = stook_group_usage(group);        /* the heap itself */
        unsigned cut = 0;
        char *object;

        (void)state;
        for (size_t first = 200000; first < 3 << 20; first += 300000) {
                object = stook_heap_alloc(heap, first);
                for (size_t size = first; object; size += 100000) {
                        char *other = stook_heap_realloc(heap, object, size);
                        size_t usable = stook_usable_size(other ? other : object);

                        assert_int_equal(stook_group_usage(group) - own, stats_of(heap).bytes);
                        assert_int_equal(stats_of(heap).large_bytes, usable);
                        assert_true(usable <= 4 << 20);
                        cut += other && size > 3 << 20 && usable < size + size / 8;
                        if (!other)
                                break;
                        object = other;
                }
                stook_heap_free(heap, object);
                assert_int_equal(stook_group_usage(group), own);
        }
        assert_true(cut > 0);
        assert_int_equal(stook_heap_destroy(heap), 0);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_destroy(group);
}

static void a_shrink_gives_back_what_is_free(void **state)
{
        struct stook_heap *heap = make(0);
        void *objects[1000];

        (void)state;
        for (unsigned i = 0; i < 1000; i++)
                objects[i] = stook_heap_alloc(heap, 200);
        assert_int_equal(stats_of(heap).objects_live, 1000);
        for (unsigned i = 0; i < 1000; i++)
                stook_heap_free(heap, objects[i]);
        assert_int_equal(stook_heap_shrink(heap), 0);
        assert_int_equal(stats_of(heap).bytes, 0);
        assert_int_equal(stats_of(heap).slabs, 0);
        assert_int_equal(stats_of(heap).caches, 1);
        assert_int_equal(stook_heap_destroy(heap), 0);
}

/* Its group is charged what the heap has; the group of the thread is not. */
static void a_group_is_charged_the_heap(void **state)
{
        struct stook_group *group = stook_group_create("group", NULL, 1 << 20);
        struct stook_group *own = stook_group_create("own", NULL, 0);
        struct stook_heap_args args = { .args_size = sizeof(args), .group = group };
        struct stook_heap *heap = stook_heap_create("charged", &args);
        uint64_t empty = stook_group_usage(group);
        void *object, *large;

        (void)state;
        assert_non_null(heap);
        stook_group_enter(own);
        object = stook_heap_alloc(heap, 100);
        large = stook_heap_alloc(heap, 100000);
        assert_non_null(object);
        assert_non_null(large);
        assert_int_equal(stook_group_usage(own), 0);
        assert_int_equal(stook_group_usage(group) - empty, stats_of(heap).bytes);
        REFUSED(ENOMEM, stook_heap_alloc(heap, 1 << 20));
        large = stook_heap_realloc(heap, large, 400000);
        assert_int_equal(stook_group_usage(group) - empty, stats_of(heap).bytes);
        assert_int_equal(stook_heap_reset(heap), 0);
        assert_int_equal(stook_group_usage(group), empty);
        for (unsigned i = 0; i < 100000 && (object = stook_heap_alloc(heap, 1000)); i++)
                ;
        assert_null(object);
        assert_true(stook_group_usage(group) <= 1 << 20);
        assert_int_equal(stook_heap_destroy(heap), 0);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_enter(NULL);
        stook_group_destroy(own);
        stook_group_destroy(group);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_walk_meets_each_heap),
                cmocka_unit_test(a_heap_is_made_of_good_arguments),
                cmocka_unit_test(no_call_waits_for_the_call_that_it_is_made_in),
                cmocka_unit_test(an_object_without_a_cache_is_a_span),
                cmocka_unit_test(objects_of_all_sizes_are_the_heap_s),
                cmocka_unit_test(zeroed_objects_are_zero),
                cmocka_unit_test(aligned_objects_are_aligned),
                cmocka_unit_test(a_resized_object_stays_in_its_heap),
                cmocka_unit_test(misuse_is_reported),
                cmocka_unit_test(arguments_that_are_none_are_refused),
                cmocka_unit_test(a_limit_bounds_a_heap),
                cmocka_unit_test(what_is_cut_at_a_limit_is_uncharged),
                cmocka_unit_test(a_shrink_gives_back_what_is_free),
                cmocka_unit_test(a_group_is_charged_the_heap),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
