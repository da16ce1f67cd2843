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
enum front_preallocation { FRONT_EXACT, FRONT_WORST_BULK, FRONT_WORST_LOOP };
void front_preallocate(enum front_preallocation how);
/* Of the tree that is written to next, for the worst case. */
void front_height(unsigned height);

/* Nodes so far: taken from the array or sheaf, from what is behind it; given back likewise. */
struct front_counts { uint64_t taken, taken_behind, given, given_behind; };
struct front_counts front_counts(void);

/* Sheaves that went to a barn or came from one so far; 0 with the older front ends. */
uint64_t front_barn_calls(void);

/* Everything that waits for readers is free afterwards. */
void front_settle(void);

#ifdef __cplusplus
}
#endif
#endif
