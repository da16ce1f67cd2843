/*
 * What this proves: random calls on some heaps do what a plain model of them says. The model knows
 * of each object its heap, its size and its content; of each heap its limit. Objects of all heaps,
 * and of malloc, keep their content, whatever ends beside them.
 *      heap_random [steps [seed]]
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "heap/heaps.h"
#include <stook/stook.h>

#define HEAPS   6                       /* heap 0 is malloc */
#define OBJECTS 600

static struct object {
        unsigned char *at;
        size_t   size;
        unsigned heap;
        unsigned char seed;
} objects[OBJECTS];

static struct stook_heap *heaps[HEAPS];
static uint64_t limits[HEAPS];
static uint64_t random_state = 1;
static unsigned steps = 30000;
static bool debugged;

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 */
static uint64_t any(void)
{
        uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static unsigned below(unsigned n)
{
        return (unsigned)(any() % n);
}

static size_t any_size(void)
{
        return below(8) ? below(600) : below(4) ? below(40000) : below(400000);
}

static void write_content(struct object *o)
{
        for (size_t i = 0; i < o->size; i++)
                o->at[i] = (unsigned char)(o->seed + i);
}

static void check_content(const struct object *o, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                assert_int_equal(o->at[i], (unsigned char)(o->seed + i));
}

static void make_heap(unsigned i)
{
        struct stook_heap_args args = { .args_size = sizeof(args) };

        limits[i] = args.limit_bytes = below(3) ? 0 : UINT64_C(1) << (16 + below(6));
        heaps[i] = stook_heap_create("model", &args);
        assert_non_null(heaps[i]);
}

/* Only a heap with a limit may refuse. */
static void may_refuse(unsigned heap)
{
        assert_int_equal(errno, ENOMEM);
        assert_true(heap && limits[heap]);
}

static void allocate(struct object *o)
{
        size_t align = below(4) ? 1 : (size_t)1 << below(14);
        bool zeroed = align == 1 && below(3) == 0;

        o->heap = below(HEAPS);
        o->size = any_size();
        if (!o->heap)
                o->at = stook_malloc(o->size);
        else if (zeroed)
                o->at = stook_heap_calloc(heaps[o->heap], 1, o->size);
        else if (align > 1)
                o->at = stook_heap_aligned_alloc(heaps[o->heap], align, o->size);
        else
                o->at = stook_heap_alloc(heaps[o->heap], o->size);
        if (!o->at) {
                may_refuse(o->heap);
                return;
        }
        assert_true(stook_usable_size(o->at) >= o->size);
        if (o->heap)
                assert_int_equal((uintptr_t)o->at % align, 0);
        for (size_t i = 0; o->heap && zeroed && i < o->size; i++)
                assert_int_equal(o->at[i], 0);
        o->seed = (unsigned char)any();
        write_content(o);
}

static void release(struct object *o)
{
        check_content(o, o->size);
        if (o->heap && below(2))
                stook_heap_free(heaps[o->heap], o->at);
        else
                stook_free(o->at);
        o->at = NULL;
}

static void resize(struct object *o)
{
        size_t size = any_size();
        unsigned char *at = o->heap && below(2) ? stook_heap_realloc(heaps[o->heap], o->at, size)
                                                : stook_realloc(o->at, size);

        if (!at) {
                may_refuse(o->heap);
                assert_true(size > o->size);
                check_content(o, o->size);
                return;
        }
        o->at = at;
        check_content(o, size < o->size ? size : o->size);
        o->size = size;
        write_content(o);
}

static void end(unsigned i)
{
        for (unsigned k = 0; k < OBJECTS; k++)
                if (objects[k].at && objects[k].heap == i) {
                        check_content(&objects[k], objects[k].size);
                        objects[k].at = NULL;
                }
        if (below(2)) {
                assert_int_equal(stook_heap_reset(heaps[i]), 0);
                assert_int_equal(heaps[i]->bytes, 0);
                return;
        }
        assert_int_equal(stook_heap_destroy(heaps[i]), 0);
        make_heap(i);
}

/* What each heap counts is what the model and the caches say. */
static void check_all(void)
{
        struct stook_heap_stats stats = { .stats_size = sizeof(stats) };

        for (unsigned i = 1; i < HEAPS; i++) {
                uint64_t small = 0, slabs = 0;

                assert_int_equal(stook_heap_get_stats(heaps[i], &stats), 0);
                for (unsigned k = 0; k < OBJECTS; k++)
                        if (objects[k].at && objects[k].heap == i) {
                                assert_ptr_equal(stook_heap_of(objects[k].at), heaps[i]);
                                small += !stook_span_large_at((uintptr_t)objects[k].at);
                        }
                assert_true(stats.objects_live >= small);
                if (!debugged)                  /* else some are in the quarantine */
                        assert_int_equal(stats.objects_live, small);
                for (unsigned class = 0; class < STOOK_CLASSES; class++) {
                        struct stook_cache *cache = stook_heap_class(heaps[i], class);

                        if (cache)
                                slabs += stook_slabs_count(&cache->slabs) *
                                         cache->slabs.slab_bytes;
                }
                assert_int_equal(stats.bytes - stats.large_bytes, slabs);
                assert_true(!limits[i] || stats.peak_bytes <= limits[i]);
        }
        assert_int_equal(stook_validate_all(), 0);
}

static void heaps_are_as_the_model(void **state)
{
        (void)state;
        for (unsigned i = 1; i < HEAPS; i++)
                make_heap(i);
        for (unsigned step = 0; step < steps; step++) {
                struct object *o = &objects[below(OBJECTS)];
                unsigned what = below(1000);

                if (what == 0)
                        end(1 + below(HEAPS - 1));
                else if (what == 1)
                        assert_int_equal(stook_heap_shrink(heaps[1 + below(HEAPS - 1)]), 0);
                else if (what == 2)
                        check_all();
                else if (!o->at)
                        allocate(o);
                else if (what < 300)
                        resize(o);
                else
                        release(o);
        }
        check_all();
        for (unsigned i = 1; i < HEAPS; i++)
                assert_int_equal(stook_heap_destroy(heaps[i]), 0);
        assert_int_equal(stook_validate_all(), 0);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(heaps_are_as_the_model),
        };

        if (argc > 1)
                steps = (unsigned)atoi(argv[1]);
        if (argc > 2)
                random_state = strtoull(argv[2], NULL, 0);
        debugged = getenv("STOOK_DEBUG");
        printf("seed %llu\n", (unsigned long long)random_state);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
