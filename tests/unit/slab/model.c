/*
 * What this proves: fill and drain agree with a naive oracle that knows each object out of its slab
 * (slab.h I1-I3, slab_fill.c F1-F3). No object is handed out twice or lost, and none overlaps
 * another. What a user writes stays, and what a constructor wrote survives a free. The order of a
 * fill and all counts are right, and validation holds after each step. The runs are with and
 * without the lock, with random failures of the page layer, for sizes from 8 bytes to 128 KiB.
 * STOOK_SEED repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/inject.h"
#include "base/lock.h"
#include "fake_pages.h"
#include "pages/pagemap.h"
#include "slab/slab_state.h"

#define OUT_MAX 6000

static uint64_t seed;
static uint64_t state;

static uint32_t random_below(uint32_t n)
{
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (uint32_t)(state >> 32) % n;
}

struct model {
        struct stook_slabs *slabs;
        size_t   size, align;
        bool     ctor;
        void    *out[OUT_MAX];
        uint32_t stamp[OUT_MAX];
        size_t   n;
};

/* owner of each 8-byte place of the arena, number of the object + 1 */
static uint8_t place_out[(size_t)FAKE_PAGES * FAKE_PAGE / 8];
static uint32_t constructed;

static void construct(void *object, void *data)
{
        memset(object, 0xc7, *(size_t *)data);
        constructed++;
}

static void mark(const struct model *m, const void *object, bool out)
{
        size_t at = (size_t)((const char *)object - fake_arena) / 8;

        for (size_t i = 0; i < (m->size + 7) / 8; i++) {
                assert_int_equal(place_out[at + i], !out);
                place_out[at + i] = out;
        }
}

static void write_stamp(const struct model *m, void *object, uint32_t stamp)
{
        memset(object, (int)stamp & 0xff, m->size);
}

static void check_stamp(const struct model *m, const void *object, uint32_t stamp)
{
        const unsigned char *p = object;

        for (size_t i = 0; i < m->size; i += i < 64 ? 1 : 97)
                assert_int_equal(p[i], stamp & 0xff);
        assert_int_equal(p[m->size - 1], stamp & 0xff);
}

static void check_object(const struct model *m, void *object)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);

        assert_int_equal(stook_entry_cache(entry), m->slabs->cache_index);
        assert_int_equal((uintptr_t)object % m->align, 0);
        assert_true(stook_slab_object_out(m->slabs, object));
        mark(m, object, true);
        if (m->ctor)
                check_stamp(m, object, 0xc7);
}

/* Several fresh objects of one slab: upwards, seen in the order in which the caller uses them. */
static void check_order(const struct model *m, void **got, size_t n, unsigned flags)
{
        if (m->slabs->in_random_order)
                return;
        for (size_t i = 1; i < n; i++) {
                size_t a = flags & STOOK_FILL_FOR_SHEAF ? n - i : i - 1,
                       b = flags & STOOK_FILL_FOR_SHEAF ? a - 1 : i;

                assert_ptr_equal((char *)got[b], (char *)got[a] + m->slabs->stride);
        }
}

static size_t fill(struct model *m, size_t want, unsigned flags, bool all_fresh)
{
        void *got[OUT_MAX];
        size_t n;

        if (want > OUT_MAX - m->n)
                want = OUT_MAX - m->n;
        memset(got, 0, sizeof(got));
        n = stook_slab_fill(m->slabs, 0, want, got, flags);
        assert_true(n <= want);
        if (all_fresh)
                check_order(m, got, n, flags);
        for (size_t i = 0; i < n; i++) {
                check_object(m, got[i]);
                m->out[m->n] = got[i];
                m->stamp[m->n] = m->ctor ? 0xc7 : random_below(256);
                write_stamp(m, got[i], m->stamp[m->n]);
                m->n++;
        }
        return n;
}

static void drain(struct model *m, size_t n)
{
        void *gone[OUT_MAX];

        if (n > m->n)
                n = m->n;
        for (size_t i = 0; i < n; i++) {
                size_t pick = random_below(8) ? m->n - 1 : random_below((uint32_t)m->n);

                gone[i] = m->out[pick];
                check_stamp(m, gone[i], m->stamp[pick]);
                mark(m, gone[i], false);
                m->out[pick] = m->out[--m->n];
                m->stamp[pick] = m->stamp[m->n];
        }
        stook_slab_drain(m->slabs, n, gone);
}

static void check(const struct model *m)
{
        unsigned reports;

        assert_int_equal(stook_slabs_validate(m->slabs), 0);
        assert_int_equal(stook_slabs_objects_out(m->slabs), m->n);
        fake_report(&reports);
        assert_int_equal(reports, 0);
}

static void run(size_t size, size_t align, bool random, bool ctor, unsigned steps)
{
        static struct model model;
        struct model *m = &model;
        size_t most = size > 8192 ? 100 : size > 512 ? 1000 : OUT_MAX;

        memset(m, 0, sizeof(*m));
        m->size = size;
        m->ctor = ctor;
        m->align = align;
        m->slabs = fake_source(7, size, align, random, ctor ? construct : NULL, &m->size);
        constructed = 0;
        assert_int_equal(
                fill(m, 60 < most ? 60 : most, STOOK_FILL_ASCENDING, m->slabs->objects >= 60),
                60 < most ? 60 : most);
        drain(m, 100);
        for (unsigned i = 0; i < steps; i++) {
                uint32_t what = random_below(100);
                unsigned flags = random_below(8);

                fake_fail_from = random_below(10) ? 0 : 1 + random_below(4);
                fake_take_max = random_below(10) ? 0 : 40000;
                stook_inject.lock_refuse_every = random_below(4) ? 0 : 1 + random_below(3);
                if (what < 45 && m->n < most)
                        fill(m, 1 + random_below(what < 5 ? (uint32_t)most - (uint32_t)m->n : 64),
                             flags, false);
                else if (what < 90)
                        drain(m, 1 + random_below(what < 50 ? (uint32_t)most : 64));
                else if (what == 99)
                        stook_slabs_shrink(m->slabs);
                fake_fail_from = 0;
                fake_take_max = 0;
                stook_inject.lock_refuse_every = 0;
                check(m);
        }
        drain(m, m->n);
        check(m);
        fake_source_end(m->slabs);
        assert_int_equal(fake_spans_taken(), 0);
        if (ctor)
                assert_true(constructed > 0);
}

static void test_sizes(void **unused)
{
        static const size_t sizes[] = { 8,   9,    16,   24,   40,    64,    100,
                                        256, 1000, 4096, 5000, 20000, 131072 };

        (void)unused;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                run(sizes[i], 8, false, false, 150);
                run(sizes[i], 16, true, false, 100);
                run(sizes[i], 64, false, true, 60);
                run(sizes[i], 8, true, true, 40);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sizes),
        };
        const char *given = getenv("STOOK_SEED");

        seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) << 20 ^ (uint64_t)clock();
        printf("STOOK_SEED=%llu\n", (unsigned long long)seed);
        fflush(stdout);
        state = seed | 1;
        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
