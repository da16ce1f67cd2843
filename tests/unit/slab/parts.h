/*
 * Purpose: a cache's slabs, with one part or three to a slab: for the tests of what becomes of
 *  parts.
 * Place: included by slab_state.c and slab_partial.c; each has slabs of its own.
 */
#ifndef PARTS_H
#define PARTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/lock.h"
#include "base/thread.h"
#include "fake_pages.h"
#include "pages/pagemap.h"
#include "slab/slab_inside.h"

#define LISTED   STOOK_PART_LISTED
#define CLAIM    STOOK_PART_CLAIM
#define RELEASED STOOK_PART_RELEASED
#define MOST     600

static struct stook_slabs *slabs;
static void *objects[MOST];

/* One part: 64 KiB, 16 objects of 4096 bytes. No empty slab is kept unless a test says so. */
static inline int setup_one(void **unused)
{
        (void)unused;
        slabs = fake_source(3, 4096, 8, false, NULL, NULL);
        slabs->min_partial = 0;
        assert_int_equal(slabs->objects, 16);
        return 0;
}

/* Three parts, the last one not full: 150 objects. */
static inline int setup_three(void **unused)
{
        (void)unused;
        slabs = fake_source(3, 216, 8, false, NULL, NULL);
        slabs->min_partial = 0;
        assert_in_range(slabs->objects, 129, 191);
        return 0;
}

static inline int teardown(void **unused)
{
        (void)unused;
        fake_source_end(slabs);
        assert_int_equal(fake_spans_taken(), 0);
        return 0;
}

static inline struct stook_slab *slab_of(const void *object)
{
        return stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)object)));
}

static inline uint64_t flags_of(struct stook_slab *slab, unsigned p)
{
        return stook_part_flags(*stook_slab_part(slab, p));
}

static inline void expect(struct stook_slab *slab, unsigned p, uint64_t bits, uint64_t flags)
{
        assert_int_equal(stook_slab_part(slab, p)->hi,
                         bits | ~stook_part_objects(slab, p));                  /* S8 */
        assert_int_equal(flags_of(slab, p), flags);
        assert_int_equal(slab->listed >> p & 1, !!(flags & LISTED));
}

static inline void set_flags(struct stook_slab *slab, unsigned p, uint64_t flags)
{
        stook_slab_part(slab, p)->lo = (stook_slab_part(slab, p)->lo & ~STOOK_PART_FLAGS) | flags;
}

static inline void fill(size_t n)
{
        assert_int_equal(stook_slab_fill(slabs, 0, n, objects, STOOK_FILL_ASCENDING), n);
}

static inline void drain(size_t from, size_t n)
{
        void *gone[MOST];

        memcpy(gone, objects + from, n * sizeof(*gone));
        stook_slab_drain(slabs, n, gone);
}

static inline uint64_t counted(enum stook_counter which)
{
        return stook_counted(slabs->counters, which);
}

/* Another thread holds the node's lock: a thread that waits is refused after a while. */
static inline void lock(void) { slabs->node[0].lock.word = 1; }
static inline void unlock(void) { slabs->node[0].lock.word = 0; }

/* As the holder does it: after the lock is dropped it looks. */
static inline void drop(void)
{
        stook_self->locks_held++;
        stook_slab_unhold(&(struct stook_slab_hold){ .slabs = slabs, .node = &slabs->node[0] });
}

static inline bool on_pending(struct stook_slab *slab)
{
        return slabs->node[0].pending.first == &stook_slab_span(slab)->link;
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, setup_one, teardown)
#define THREE(name) cmocka_unit_test_setup_teardown(name, setup_three, teardown)

#endif
