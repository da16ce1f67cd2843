/*
 * Purpose: samples of allocations that may stay on in production: which calls are kept, and how the
 * life of what they get is followed. Which allocation is a sample, the sheaves decide
 * (slot/slot_trip.h); of large objects, a coin.
 * Place: called through stook_sample_duties by slot, cache, malloc; sessions are started and ended
 *  by life. Calls profile for the sums, stack for call stacks.
 *
 * An object of malloc's classes that is a sample is a span of its own, as a large object is; the
 * span's descriptor leads to the sample. So its free misses on every hot path, and finds the
 * sample, and the frees of all other objects pay nothing. An object of another cache is a sample
 * *in place*: it is as any other, and only its allocation is counted. So is one of malloc where no
 * span can be had, or where the call must not wait.
 *
 * With `guard`, some of those that are spans lie between guard pages, and are closed when they are
 * freed (guarded.c).
 *
 * The estimate: an allocation of stride s is kept with the probability
 *      (1 - exp(-s / interval)) * q,
 * and stands for as many as the inverse of that (profile/profile.h). q is the share of samples that
 * is kept so that no more than `most` are kept a second. It depends on earlier samples alone, and
 * is known before the coin is thrown, so the estimate stays right (session.c).
 * Invariants:
 *  I1 a span's `sample` is written by the owner of its object alone: before the allocation returns,
 *     and by the call that ended the object's life.
 * Concurrency: any thread, any instruction; no lock. A jump out of an allocation or a free loses at
 *  most one sample. A forked child has its parent's session and samples.
 * Failure: no memory: the sample is in place, or is counted as lost.
 */
#ifndef STOOK_SAMPLE_H
#define STOOK_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"
#include "pages/span.h"
#include "sample/sample_terms.h"
#include "slot/slot_trip.h"

/* ---- session.c ---- */
/*
 * From the return on each allocation is a trial, if sheaves that are installed later are all there
 * are; others follow as they leave their slots. Not for handlers. False: no memory.
 */
bool stook_sample_start(const struct stook_sample_terms *terms);
/* Samples that are alive stay. Any thread, any instruction. */
void stook_sample_stop(void);

/* Is this sample kept? *@weight: for how many allocations of @stride bytes it stands then. */
bool stook_sample_keep(uint64_t stride, double *weight);

struct stook_sample_counts {
        uint64_t marks;                 /* samples */
        uint64_t kept;                  /* of them */
        uint64_t in_place;              /* of those that were kept */
        uint64_t guarded;               /* likewise */
        uint64_t share;                 /* q, in 2^32 */
};
/* Each atomic, relaxed. */
extern struct stook_sample_counts stook_sample_counts STOOK_HIDDEN;

/* What the user of an object that is a span may use. */
STOOK_INLINE size_t stook_sample_usable(const struct stook_span *span)
{
        return span->bytes - span->use.lead - span->use.slack;
}

/* ---- guarded.c: samples between guard pages ---- */
extern uint64_t stook_guarded_a_second STOOK_HIDDEN;    /* atomic, relaxed; 0: none */
struct stook_report_about;
/*
 * What is known of @address in a guarded sample, or in a guard beside it, is added to @about: the
 * fault that an access there is, the object and its stacks. False: nothing. Any instruction.
 */
bool stook_guarded_describe(uintptr_t address, struct stook_report_about *about);
/* Makes the page of such an address accessible. False: there is no such. Any instruction. */
bool stook_guarded_open(uintptr_t address);

#endif
