/*
 * Purpose: a heap profile: which call stacks allocate how much, and what of it is in use. It looks
 * at a sample of the allocations, so that it costs little.
 * Place: called by watch, for watched caches and large objects of malloc; started by life. Calls
 *  stack for call stacks.
 *
 * What is sampled: points lie on the row of all bytes that are allocated, at random, one in
 * `interval` bytes in the mean and independent of each other (a Poisson process). An allocation of
 * s bytes is sampled if a point lies in it: with the probability p = 1 - exp(-s / interval). It
 * then stands for 1 / p allocations of its size. So the expected value of each sum is the true
 * value, whatever the mix of sizes is.
 * Invariants:
 *  I1 a sampled object in use is in the table (profile_table.c), under its address. It is entered
 *     before the allocation returns, and taken out before the free begins.
 *  I2 a stack's sums in use are those of its objects in the table.
 * Concurrency: any thread, any instruction; no lock. A forked child has its parent's sums and
 *  objects, as it has the memory.
 * Failure: a sample for which there is no room is not counted as in use; how many is in the
 *  profile.
 */
#ifndef STOOK_PROFILE_INTERNAL_H
#define STOOK_PROFILE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"
#include "base/thread.h"

#define STOOK_PROFILE_INTERVAL UINT64_C(524288)         /* bytes, by default; as other allocators */
#define STOOK_PROFILE_STRIPES  64                       /* more than threads run at once, mostly */

/* Bytes that are left to the next point. Threads share a stripe by chance. */
struct stook_profile_stripe {
        int64_t left;                   /* atomic, relaxed; 0 or less: a new point is being drawn */
} STOOK_ALIGNED(STOOK_CACHELINE);
extern struct stook_profile_stripe stook_profile_stripes[STOOK_PROFILE_STRIPES] STOOK_HIDDEN;

/* ---- profile_sample.c ---- */
/* @interval: bytes, at least 1. False: no memory. */
bool stook_profile_start(uint64_t interval);
uint64_t stook_profile_interval(void);          /* 0: not started */
/* An allocation in which the point may lie. @before: what was left of the stripe. */
void stook_profile_sample(struct stook_profile_stripe *stripe, int64_t before, const void *object,
                          size_t bytes);

/* After an allocation of @bytes as wanted. */
STOOK_INLINE void stook_profile_alloc(const void *object, size_t bytes)
{
        size_t i = ((uintptr_t)stook_self * UINT64_C(0x9e3779b97f4a7c15)) >> 58;
        struct stook_profile_stripe *stripe = &stook_profile_stripes[i];
        int64_t size = bytes ? (int64_t)bytes : 1;
        int64_t before = __atomic_fetch_sub(&stripe->left, size, __ATOMIC_RELAXED);

        if (STOOK_UNLIKELY(before <= size))
                stook_profile_sample(stripe, before, object, (size_t)size);
}
_Static_assert(STOOK_PROFILE_STRIPES == 1 << (64 - 58), "the hash has as many values");

/* ---- profile_table.c ---- */
/* Before a free, of any object. */
void stook_profile_free(const void *object);

/* ---- profile_write.c ---- */
/*
 * Writes all of it in pprof's format to the file @path, which is replaced when it is whole; "%p" in
 * it stands for the process number. Return: 0; -errno; -EBUSY: another thread, or the call below
 * this handler, is writing.
 */
int stook_profile_write_to(const char *path);

/* For src/profile alone: the sums of each call stack, and the sampled objects in use. */
/* What samples stand for, in parts of an object or byte: 1 << STOOK_PROFILE_PART_BITS make one. */
#define STOOK_PROFILE_PART_BITS 10

struct stook_profile_sums {
        uint64_t objects, bytes;        /* atomic, relaxed; in parts */
};

/* A call stack. It is never removed. */
struct stook_profile_bucket {
        struct stook_profile_bucket *next;      /* const; of the same hash */
        uint32_t stack;                 /* const; stack/stack.h; 0: not known */
        struct stook_profile_sums allocated, freed;
};

bool stook_profile_table_start(uint64_t interval);
/* The bucket of a stack. NULL: no memory. */
struct stook_profile_bucket *stook_profile_bucket(uint32_t stack);
/* A sampled object is in use from now on (I1). False: no room. */
bool stook_profile_enter(const void *object, struct stook_profile_bucket *bucket,
                         struct stook_profile_sums parts);
/* Calls @each for each bucket, with those of other threads as they are now. */
void stook_profile_for_each(void (*each)(const struct stook_profile_bucket *bucket, void *data),
                            void *data);
/* Samples that found no room. */
uint64_t stook_profile_lost(void);
void stook_profile_count_lost(void);

#endif
