/*
 * Purpose: a heap profile: which call stacks allocate how much, what of it is in use now, what was
 * at the peak, what has grown since a mark, how long objects live. It looks at a sample of the
 * allocations, so that it costs little.
 * Place: called by watch, for watched caches and large objects of malloc; started by life. Calls
 *  stack for call stacks.
 *
 * What is sampled: points lie on the row of all bytes that are allocated, at random, one in
 * `interval` bytes in the mean and independent of each other (a Poisson process). An allocation of
 * s bytes is sampled if a point lies in it: with the probability p = 1 - exp(-s / interval). It
 * then stands for w = 1 / p allocations of its size. So the expected value of each sum is the true
 * value, whatever the mix of sizes is. Its variance is estimated by the sum of f^2 w (w - 1) over
 * the samples, where f is what the sum adds up: 1, or the bytes of an object.
 * Who decides what is a sample calls stook_profile_begin for it, with its weight w.
 * Invariants:
 *  I1 a sampled object in use that profile_sample.c chose is in the table (profile_objects.c),
 *     under its address. It is entered before the allocation returns, and taken out before the free
 *     begins.
 *  I2 a stack's sums in use are those of the lives that have begun and not ended.
 *  I3 what a bucket had in use when number n of the peaks (of the marks) began is what it saved
 *     under n, or, if it has saved nothing under n, what it has now (profile_life.c).
 * Concurrency: any thread, any instruction; no lock. A forked child has its parent's sums and
 *  objects, as it has the memory. Samples of one stack that end and begin at once in several
 *  threads may be missing in a saved value, or be one too many.
 * Failure: a sample for which there is no room is not counted; how many is in the profile.
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
/* @interval: bytes, at least 1. @lifetimes: pairs of stacks, too. False: no memory. */
bool stook_profile_start(uint64_t interval, bool lifetimes);
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

/* ---- profile_objects.c: the objects in use that profile_sample.c chose ---- */
/* Before a free, of any object. */
void stook_profile_free(const void *object);

bool stook_profile_objects_start(uint64_t interval);
struct stook_profile_life;
/* False: no room. */
bool stook_profile_enter(const void *object, const struct stook_profile_life *life);

/* ---- profile_write.c ---- */
/*
 * Writes all of it in pprof's format to the file @path, which is replaced when it is whole; "%p" in
 * it stands for the process number. Return: 0; -errno; -EBUSY: another thread, or the call below
 * this handler, is writing.
 */
int stook_profile_write_to(const char *path);

/* ---- profile_life.c: begin and end of sampled objects, whoever chose them ---- */

/* The life of a sampled object. It lies where its owner keeps it. */
struct stook_profile_life {
        struct stook_profile_bucket *bucket;    /* set by stook_profile_begin */
        double   weight;                /* w: for how many allocations it stands; at least 1 */
        uint64_t bytes;                 /* requested, at least 1 */
        uint64_t born;                  /* ns of stook_os_clock_ns */
        uint32_t stack;                 /* stack/stack.h; 0: not known */
        uint32_t thread;                /* stook_profile_thread_now() */
};
/*
 * Before the allocation returns. False: no memory, the sample counts as lost, and the life must not
 * be ended.
 */
bool stook_profile_begin(struct stook_profile_life *life);
/*
 * Once, by the call that frees the object. @stack: of the free; 0: not known. @died: ns, as `born`.
 */
void stook_profile_end(const struct stook_profile_life *life, uint32_t stack, uint32_t thread,
                       uint64_t died);
/* What is in use from here on is compared with what is in use now. */
void stook_profile_mark_growth(void);

/* ---- profile_table.c ---- */
/*
 * At the start of a session, not in a handler. What is there stays. @lifetimes: pairs of stacks are
 * kept, too. False: no memory.
 */
bool stook_profile_table_start(uint64_t interval, bool lifetimes);
/* Bytes; of the session that runs, or ran last. */
void stook_profile_set_interval(uint64_t interval);
bool stook_profile_has_lifetimes(void);
/* While pairs are kept, the kernel's number of this thread, by a system call; else 0. */
uint32_t stook_profile_thread_now(void);

/* What samples stand for, in parts of an object or byte: 1 << STOOK_PROFILE_PART_BITS make one. */
#define STOOK_PROFILE_PART_BITS 10

/* Each atomic, relaxed. */
struct stook_profile_sums {
        uint64_t objects, bytes;        /* in parts */
        uint64_t samples;
        uint64_t objects_variance, bytes_variance;      /* of whole ones: a double's bits */
};

/* What was in use when a number began (I3). Written by the one who has the bucket's claim. */
struct stook_profile_saved {
        uint64_t number;                /* atomic; 0: nothing was saved */
        struct stook_profile_sums in_use;
};

/*
 * Bytes, in parts, by the time of the session: 8 windows of 2^(STOOK_PROFILE_WINDOW_BITS + shift)
 * ns. Once the time has left the last one, windows become twice as wide. As `saved`.
 */
#define STOOK_PROFILE_WINDOWS     8
#define STOOK_PROFILE_WINDOW_BITS 24            /* 17 ms; arbitrary */
struct stook_profile_windows {
        uint64_t shift;
        uint64_t born[STOOK_PROFILE_WINDOWS], died[STOOK_PROFILE_WINDOWS];
        uint64_t gone[STOOK_PROFILE_WINDOWS];   /* of those born in it: died since */
};

/* A call stack. It is never removed. */
struct stook_profile_bucket {
        struct stook_profile_bucket *next;      /* const; of the same hash */
        uint32_t stack;                 /* const; stack/stack.h; 0: not known */
        uint64_t claim;                 /* atomic: since when (ns) a thread has it; 0: none has */
        struct stook_profile_sums allocated, freed;
        struct stook_profile_saved peak, mark;
        struct stook_profile_windows windows;
};

/* Objects of two stacks: of their allocation, and of their free. It is never removed. */
#define STOOK_PROFILE_LIVES      32
#define STOOK_PROFILE_LIFE_BITS  11             /* lives[0]: below 2^11 ns; the last: the rest */
struct stook_profile_pair {
        struct stook_profile_pair *next;        /* const */
        uint32_t born, died;            /* const: stacks */
        uint64_t samples, objects, bytes;       /* atomic, relaxed; the latter two in parts */
        uint64_t elsewhere;             /* objects freed by another thread, as `objects` */
        uint64_t lives[STOOK_PROFILE_LIVES];    /* objects by powers of two of ns, as `objects` */
};

#define STOOK_PROFILE_CHAINS 4096       /* heads of chains, of buckets and of pairs; arbitrary */

/* All that readers need, here and outside of the process (life/root.h). */
struct stook_profile_state {
        uint64_t interval;              /* atomic; 0: none yet */
        uint64_t started;               /* atomic, relaxed; const after the first start: ns */
        uint64_t lost, pairs_lost;      /* atomic, relaxed: what found no room */
        uint64_t in_use;                /* atomic, relaxed: bytes, in parts */
        uint64_t peak_bytes;            /* atomic: of in_use at the last peak */
        uint64_t peak_number, mark_number;      /* atomic; 0: none yet. I3 */
        uint64_t peak_at, mark_at;      /* atomic, relaxed: ns */
        uint32_t lifetimes;             /* atomic, relaxed: pairs are kept */
};
extern struct stook_profile_state stook_profile STOOK_HIDDEN;
extern struct stook_profile_bucket *stook_profile_buckets[STOOK_PROFILE_CHAINS] STOOK_HIDDEN;
extern struct stook_profile_pair *stook_profile_pairs[STOOK_PROFILE_CHAINS] STOOK_HIDDEN;

/* The bucket of a stack. NULL: no memory. */
struct stook_profile_bucket *stook_profile_bucket(uint32_t stack);
/* Calls @each for each bucket, or pair, with those of other threads as they are now. */
void stook_profile_for_each(void (*each)(const struct stook_profile_bucket *bucket, void *data),
                            void *data);
void stook_profile_for_each_pair(void (*each)(const struct stook_profile_pair *pair, void *data),
                                 void *data);
/* An object's life that is over, in parts. */
void stook_profile_add_pair(const struct stook_profile_life *life, struct stook_profile_sums parts,
                            uint32_t stack, bool elsewhere, uint64_t ns);
/* Samples that found no room. */
uint64_t stook_profile_lost(void);
void stook_profile_count_lost(void);

/* ---- profile_values.c: what a bucket had, in whole objects and bytes ---- */
enum stook_profile_kind { STOOK_PROFILE_ALLOC, STOOK_PROFILE_INUSE, STOOK_PROFILE_PEAK,
                          STOOK_PROFILE_GROWTH, STOOK_PROFILE_KINDS };
struct stook_profile_value {
        int64_t  objects, bytes;        /* below 0: of growth alone */
        uint64_t samples;               /* that this stands on */
        double   objects_variance, bytes_variance;      /* of growth: at most */
};
/* @state: of the same process. */
void stook_profile_values(const struct stook_profile_state *state,
                          const struct stook_profile_bucket *bucket,
                          struct stook_profile_value values[STOOK_PROFILE_KINDS]);

#endif
