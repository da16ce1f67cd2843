/*
 * bench/aspace/front.h - the allocators that the address-space workloads are run on
 *
 * Purpose: one of these for areas and tree nodes alike, chosen once, before the first object:
 *   sheaves  object caches as they come
 *   array    the RFC of 2023: an array of objects for each CPU and the slabs behind it, no barn
 *   slabs    no sheaves: every call goes to a slab
 *   cpu-slab the kernel's older front end, a slab for each CPU (bench/none), in the form of the
 *            double-word compare-and-swap (cpu-slab-cas) or of a restartable sequence (cpu-slab)
 *   double   arrays of 32 above cpu-slab, as in the releases between: cached twice. Its arrays are
 *            the thread's, not the CPU's, which flatters it: they need no section.
 * Where there are no sheaves, frees by RCU are batched in arrays of 128, as the kernel's older
 * batcher does, and "prefilled" nodes are taken one by one. Grace periods are the same for all,
 * those of libstook-urcu.
 */
#ifndef FRONT_H
#define FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* False: no such front end. */
bool front_choose(const char *name);

/*
 * How nodes for a write are got ready: what it needs; or, as the kernel did before 6.13, what any
 * write could need.
 */
enum front_preallocation {
        FRONT_EXACT,
        FRONT_WORST_BULK,       /* by one call, which goes past an array where there is one */
        FRONT_WORST_LOOP,       /* by as many calls as nodes */
        /*
         * Sheaves only: what it needs is brought into the CPU's own sheaf, and the write takes it
         * from there. A write that finds less, for another thread was there, goes to the slabs.
         */
        FRONT_OWN_SHEAF,
};
void front_preallocate(enum front_preallocation how);
/* Of the tree that is written to next, for the worst case. */
void front_height(unsigned height);

/*
 * Nodes so far. taken, given: at the array or sheaf; *_behind: at what is behind it, one by one and
 * by batches together. Of sheaves also: *_alone: those of `behind` that came or went one by one;
 * lent: those of `taken` that came from a prefilled sheaf.
 */
struct front_counts {
        uint64_t taken, taken_behind, given, given_behind;
        uint64_t taken_alone, given_alone, lent;
};
struct front_counts front_counts(void);

/*
 * Objects that a page fault allocates: one; and many back at once, as an unmap gives them. NULL: no
 * memory.
 */
bool  front_pages_create(size_t object_bytes);
void *front_page_take(void);
void  front_pages_give(size_t n, void **objects);

/* Sheaves that went to a barn or came from one so far; 0 with the older front ends. */
uint64_t front_barn_calls(void);

/* Everything that waits for readers is free afterwards. */
void front_settle(void);

#ifdef __cplusplus
}
#endif
#endif
