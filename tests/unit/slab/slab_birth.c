/*
 * What this proves of a cache's slabs and of new ones:
 *  - its geometry, and what it refuses;
 *  - one comparison tells where its objects start (slab.h);
 *  - fresh objects are not touched, not even read, because their pages may not be readable
 *    (slab_birth.c B2);
 *  - constructors run once for each object, when it is first handed out;
 *  - random order is a permutation, another one in the next slab;
 *  - without memory a fill loses nothing, at each n-th take of a span (the kernel's leak of
 *    464b1c115852);
 *  - a slab of many parts is used up before another one is made;
 *  - slabs are smaller where large ones cannot be had.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include <stook/layout.h>
#include "fake_pages.h"
#include "pages/pagemap.h"
#include "slab/slab_state.h"

static char *base_of(const void *object)
{
        return stook_slab_base(
                stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)object))));
}

static int try_init(size_t size, size_t align, uint32_t index)
{
        static struct stook_counters counters;
        struct stook_slabs slabs;

        memset(&slabs, 0, sizeof(slabs));
        return stook_slabs_init(&slabs, &(struct stook_slabs_args){ .name = "x",
                                                                    .cache_index = index,
                                                                    .object_size = size,
                                                                    .align = align,
                                                                    .counters = &counters });
}

static void test_refusals(void **unused)
{
        (void)unused;
        assert_int_equal(try_init(8, 8, 1), 0);
        assert_int_equal(try_init(STOOK_OBJECT_MAX, 4096, STOOK_CACHES_MAX - 1), 0);
        assert_int_equal(try_init(0, 8, 1), -ERANGE);
        assert_int_equal(try_init(STOOK_OBJECT_MAX + 1, 8, 1), -ERANGE);
        assert_int_equal(try_init(SIZE_MAX, 8, 1), -ERANGE);
        assert_int_equal(try_init(8, 4, 1), -ERANGE);
        assert_int_equal(try_init(8, 24, 1), -ERANGE);
        assert_int_equal(try_init(8, 8192, 1), -ERANGE);
        assert_int_equal(try_init(8, 8, 0), -ERANGE);
        assert_int_equal(try_init(8, 8, STOOK_CACHES_MAX), -ERANGE);
}

static void test_geometry(void **unused)
{
        static struct stook_counters counters;

        (void)unused;
        for (size_t size = 1; size <= STOOK_OBJECT_MAX; size += size < 4096 ? 1 : 509)
                for (int way = 0; way < 4; way++) {
                        int ctor = way & 1;
                        uint32_t wanted = way & 2 ? STOOK_SLAB_OBJECTS_MANY
                                                  : STOOK_SLAB_OBJECTS_FEW;
                        struct stook_slabs s;
                        size_t waste;

                        memset(&s, 0, sizeof(s));
                        s.node = (struct stook_slabs_node[1]){ 0 };
                        assert_int_equal(
                                stook_slabs_init(
                                        &s,
                                        &(struct stook_slabs_args){
                                                .name = "x",
                                                .cache_index = 1,
                                                .object_size = size,
                                                .align = 16,
                                                .slab_objects = wanted,
                                                .counters = &counters,
                                                .ctor = ctor ? (void (*)(void *, void *))abort
                                                             : NULL }),
                                0);
                        assert_true(s.stride >= size && s.stride < size + 16);
                        assert_int_equal(s.stride % 16, 0);
                        assert_int_equal(s.slab_bytes % FAKE_PAGE, 0);
                        assert_in_range(s.slab_bytes, way & 2 ? 32768 : 4096, 524288);
                        assert_in_range(s.objects, 2, STOOK_SLAB_OBJECTS_MAX);
                        assert_true((size_t)s.objects * s.stride <= s.slab_bytes);
                        waste = s.slab_bytes - (size_t)s.objects * s.stride;
                        assert_true(waste <= s.slab_bytes / (s.stride > 131072 ? 4
                                                             : way & 2         ? 16
                                                                               : 8));
                        assert_true((size_t)s.min_partial * s.slab_bytes <= 131072);
                        assert_true(s.min_partial || 2 * s.stride > 131072);
                        /* index of starts and of what is between them */
                        for (uint32_t at = 0; at < s.slab_bytes; at += size < 64 ? 1 : 61) {
                                bool interior;
                                uint32_t index = stook_slabs_index(&s, at, &interior);

                                assert_int_equal(index, at / s.stride);
                                assert_int_equal(interior, at % s.stride != 0);
                        }
                        if (size > 600)
                                break;
                }
}

/* Of malloc's classes: slabs a little larger than the least waste nothing, or little. */
static void test_large_objects_waste_nothing(void **unused)
{
        static struct stook_counters counters;
        static const size_t sizes[] = { 2560, 4416, 4608, 8704, 20480 };

        (void)unused;
        for (unsigned i = 0; i < STOOK_ARRAY_SIZE(sizes); i++) {
                struct stook_slabs s;

                memset(&s, 0, sizeof(s));
                s.node = (struct stook_slabs_node[1]){ 0 };
                assert_int_equal(
                        stook_slabs_init(&s, &(struct stook_slabs_args){ .name = "x",
                                                                         .cache_index = 1,
                                                                         .object_size = sizes[i],
                                                                         .align = 16,
                                                                         .counters = &counters }),
                        0);
                assert_in_range(s.slab_bytes - (size_t)s.objects * s.stride, 0,
                                sizes[i] == 4416 ? s.slab_bytes / 128 : 0);
        }
}

static void test_fresh_untouched(void **unused)
{
        struct stook_slabs *slabs = fake_source(1, 64, 8, false, NULL, NULL);
        size_t bytes = (size_t)FAKE_PAGE * FAKE_PAGES;
        static void *o[3000];

        (void)unused;
        assert_int_equal(mprotect(fake_arena, bytes, PROT_NONE), 0);
        assert_int_equal(stook_slab_fill(slabs, 0, 700, o, STOOK_FILL_FOR_SHEAF), 700);
        assert_int_equal(stook_slab_fill(slabs, 0, 2300, o + 700, 0), 2300);
        assert_int_equal(mprotect(fake_arena, bytes, PROT_READ | PROT_WRITE), 0);
        stook_slab_drain(slabs, 3000, o);
        fake_source_end(slabs);
}

static unsigned char constructed[2048], handed_out[2048];

static void construct(void *object, void *data)
{
        struct stook_slabs **slabs = data;

        constructed[((char *)object - base_of(object)) / (*slabs)->stride]++;
        memset(object, 0x11, 40);
}

/*
 * Once for each object that is handed out in a life of its slab, whatever comes and goes meanwhile.
 */
static void test_constructor(void **unused)
{
        struct stook_slabs *slabs = NULL;
        void *o[100], *copy[100], *held;
        unsigned most = 0;

        (void)unused;
        slabs = fake_source(1, 40, 8, true, construct, &slabs);
        assert_true(slabs->objects <= 2048);
        for (int life = 0; life < 3; life++) {
                memset(constructed, 0, sizeof(constructed));
                memset(handed_out, 0, sizeof(handed_out));
                assert_int_equal(stook_slab_fill(slabs, 0, 1, &held, 0), 1);
                handed_out[((char *)held - base_of(held)) / slabs->stride] = 1;
                for (int round = 0; round < 30; round++) {
                        assert_int_equal(stook_slab_fill(slabs, 0, 100, o, round & 1), 100);
                        for (int i = 0; i < 100; i++) {
                                for (int j = 0; j < 40; j++)
                                        assert_int_equal(((char *)o[i])[j], 0x11);
                                handed_out[((char *)o[i] - base_of(o[i])) / slabs->stride] = 1;
                        }
                        stook_slab_drain(slabs, 100, memcpy(copy, o, sizeof(o)));
                }
                assert_memory_equal(constructed, handed_out, sizeof(constructed));
                for (uint32_t i = 0; i < slabs->objects; i++)
                        most += constructed[i];
                stook_slab_drain(slabs, 1, &held);
                assert_int_equal(stook_slabs_shrink(slabs), 0);
        }
        assert_true(most > 300);
        fake_source_end(slabs);
}

static void test_random_order(void **unused)
{
        struct stook_slabs *slabs = fake_source(1, 128, 8, true, NULL, NULL);
        uint32_t n = slabs->objects, ups = 0, same = n;
        static void *o[4096], *p[4096];
        static unsigned char seen[4096];
        char *base, *second;

        (void)unused;
        assert_int_equal(stook_slab_fill(slabs, 0, n, o, 0), n);
        base = base_of(o[0]);
        for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(((char *)o[i] - base) % 128, 0);
                assert_int_equal(seen[((char *)o[i] - base) / 128]++, 0);
                ups += i && o[i] > o[i - 1];
        }
        assert_in_range(ups, n / 4, n - n / 4);
        /* Another slab has another order, but that one of 64 starts at the same place. */
        for (unsigned tries = 0; tries < 6 && same >= n / 4; tries++) {
                assert_int_equal(stook_slab_fill(slabs, 0, n, p, STOOK_FILL_FOR_SHEAF), n);
                second = base_of(p[0]);
                assert_ptr_not_equal(base, second);
                same = 0;
                for (uint32_t i = 0; i < n; i++)
                        same += (char *)o[i] - base == (char *)p[n - 1 - i] - second;
                stook_slab_drain(slabs, n, p);
        }
        assert_true(same < n / 4);
        stook_slab_drain(slabs, n, o);
        fake_source_end(slabs);
}

/* Made anew, as the memory of a destroyed cache is: nothing of it is lost. */
static void test_used_again(void **unused)
{
        struct stook_slabs *slabs = fake_source(1, 128, 8, true, NULL, NULL);
        struct stook_slabs_node *node = slabs->node;
        const uint8_t *order = slabs->random;
        void *o[10];

        (void)unused;
        stook_slab_fill(slabs, 0, 10, o, 0);
        stook_slab_drain(slabs, 10, o);
        fake_source_end(slabs);
        for (int random = 1; random >= 0; random--) {
                assert_int_equal(
                        stook_slabs_init(slabs,
                                         &(struct stook_slabs_args){ .name = "anew",
                                                                     .cache_index = 2,
                                                                     .object_size = 512,
                                                                     .align = 8,
                                                                     .random_order = random,
                                                                     .counters = slabs->counters }),
                        0);
                assert_ptr_equal(slabs->node, node);
                assert_ptr_equal(slabs->random, order);
                assert_int_equal(slabs->in_random_order, random);
                assert_int_equal(stook_slab_fill(slabs, 0, 10, o, 0), 10);
                stook_slab_drain(slabs, 10, o);
                fake_source_end(slabs);
        }
}

/* 8 slabs are needed; the k-th span cannot be had, for every k. */
static void test_no_memory_at_each_span(void **unused)
{
        struct stook_slabs *slabs = fake_source(1, 1024, 8, false, NULL, NULL);
        static void *o[512];

        (void)unused;
        for (unsigned flags = 0; flags < 8; flags++)
                for (long k = 1; k <= 9; k++) {
                        size_t want = 8 * slabs->objects, got;

                        memset(o, 0, sizeof(o));
                        fake_fail_from = k;
                        got = stook_slab_fill(slabs, 0, want, o, flags);
                        fake_fail_from = 0;
                        assert_int_equal(got, k <= 8 ? (size_t)(k - 1) * slabs->objects : want);
                        for (size_t i = 0; i < got; i++)
                                assert_true(stook_slab_object_out(slabs, o[i]));
                        assert_int_equal(stook_slabs_objects_out(slabs), got);
                        stook_slab_drain(slabs, got, o);
                        fake_source_end(slabs);
                        assert_int_equal(fake_spans_taken(), 0);
                }
}

/* A slab has more parts than a fill notes at once: it is used up before another one is made. */
static void test_one_slab_is_enough(void **unused)
{
        static void *o[STOOK_SLAB_OBJECTS_MAX];

        (void)unused;
        for (int random = 0; random < 2; random++) {
                struct stook_slabs *slabs = fake_source(1, 8, 8, random, NULL, NULL);
                size_t n = slabs->objects;

                assert_true(n > 16 * STOOK_PART_OBJECTS);
                for (unsigned flags = 0; flags < 8; flags++) {
                        fake_fail_from = 2;             /* only one span is to be had */
                        assert_int_equal(stook_slab_fill(slabs, 0, n, o, flags), n);
                        fake_fail_from = 0;
                        assert_int_equal(stook_slabs_count(slabs), 1);
                        stook_slab_drain(slabs, n, o);
                        fake_source_end(slabs);
                }
        }
}

static void test_smaller_slabs(void **unused)
{
        struct stook_slabs *slabs = fake_source(1, 1000, 8, true, NULL, NULL);
        void *o[20];

        (void)unused;
        fake_take_max = 4096;
        assert_int_equal(stook_slab_fill(slabs, 0, 18, o, STOOK_FILL_FOR_SHEAF), 18);
        fake_take_max = 0;
        assert_int_equal(stook_counted(slabs->counters, STOOK_STAT_order_fallback),
                         5); /* of four objects each */
        assert_int_equal(stook_slabs_count(slabs), 5);
        for (int i = 0; i < 18; i++)
                assert_true(stook_slab_object_out(slabs, o[i]));
        assert_int_equal(stook_slabs_validate(slabs), 0);
        stook_slab_drain(slabs, 18, o);
        fake_source_end(slabs);
}

/* Every offset in a slab that is as full as can be, and in one that has half of that. */
static void test_starts(void **unused)
{
        static const uint32_t strides[] = { 8, 16, 24, 48, 64, 80, 112, 320, 1000, 1024, 1152, 4096,
                                            5120, 8704, 65536, 65552, 131072, 262152, 524288 };

        (void)unused;
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(strides); i++) {
                uint32_t stride = strides[i], most = STOOK_SLAB_BYTES_MAX / stride;
                uint64_t magic = stook_magic_of(stride);
                struct stook_slabs full = { .magic = magic, .stride = stride, .objects = most };
                struct stook_slabs half = { .magic = magic, .stride = stride,
                                            .objects = most / 2 };

                for (uint32_t offset = 0; offset < STOOK_SLAB_BYTES_MAX; offset++) {
                        uint32_t number = offset / stride;
                        bool starts = number * stride == offset, interior;

                        if ((offset * magic < stook_slabs_starts(&full)) !=
                                    (starts && number < full.objects) ||
                            (offset * magic < stook_slabs_starts(&half)) !=
                                    (starts && number < half.objects) ||
                            stook_index_by_magic(magic, offset, &interior) != number ||
                            interior == starts)
                                fail_msg("stride %u, offset %u", stride, offset);
                }
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_geometry),
                cmocka_unit_test(test_starts),
                cmocka_unit_test(test_large_objects_waste_nothing),
                cmocka_unit_test(test_fresh_untouched),
                cmocka_unit_test(test_constructor),
                cmocka_unit_test(test_random_order),
                cmocka_unit_test(test_used_again),
                cmocka_unit_test(test_no_memory_at_each_span),
                cmocka_unit_test(test_one_slab_is_enough),
                cmocka_unit_test(test_smaller_slabs),
        };

        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
