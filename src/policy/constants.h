/*
 * Purpose: every constant that decides when memory is kept, grown or given back, on one page. What
 * is a format, a unit or the bound of a loop stands where it is used.
 *
 * A decision compares a signal of what was given back and wanted again with one of what nobody
 * wanted. Its constants say how much of the process that may be: shares of the bytes in use, with
 * a least for small processes; and times in parts of the decay time. "Arbitrary" means that half
 * and twice the value showed nothing on programs.
 */
#ifndef STOOK_CONSTANTS_H
#define STOOK_CONSTANTS_H

#include <stddef.h>

#define STOOK_KIB ((size_t)1 << 10)
#define STOOK_MIB ((size_t)1 << 20)

/* ---- free pages: limit.c, pages/purge.c ---- */

#define STOOK_DECAY_MS        1000      /* STOOK_DECAY_MS: what lies free for so long goes */
#define STOOK_RECURS_DECAYS   3         /* what recurs stays for so many: phases are rarely apart */
#define STOOK_DIRTY_PART      8         /* of the bytes in use may lie dirty. Less costs faults */
#define STOOK_DIRTY_LEAST     (1 * STOOK_MIB)
#define STOOK_PURGE_BIG       (1 * STOOK_MIB)   /* spans that are purged at once above the limit */
#define STOOK_PURGE_SMALL     (64 * STOOK_KIB)  /* above twice the limit: between slabs that live */
#define STOOK_SPIKE_END_PART  8         /* in use of the most of lately: a spike ends, purge all */
#define STOOK_IN_TURN_PART    8         /* so much less in use ends "in turn". Arbitrary */
#define STOOK_IN_TURN_TIMES   2         /* the next large object may be so much larger. Arbitrary */
#define STOOK_WAITING_LEAST   (64 * STOOK_KIB)  /* single pages: fewer are not joined. Arbitrary */

/* ---- debt: debt.c ---- */

#define STOOK_HIGH_WATER_PART  32       /* of the bytes in use may lie dirty at a new mark */
#define STOOK_HIGH_WATER_LEAST (256 * STOOK_KIB)
#define STOOK_HIGH_WATER_HUGE  (2 * STOOK_MIB)  /* the same, with huge pages: the rest of one */

/* ---- the allocation clock: fresh.c ---- */

#define STOOK_CLOCK_PART      256       /* of the bytes in use moves it. More: larger peaks */
#define STOOK_CLOCK_LEAST     (256 * STOOK_KIB)
#define STOOK_CLOCK_REUSE     512       /* of the decay time lies between moves by dirty memory */

/* ---- huge pages: density.c, pages/advice.c ---- */

#define STOOK_HUGE_FROM_SMALL (32 * STOOK_MIB)  /* in use: one pads by a sixteenth at most */
#define STOOK_HUGE_FROM_LARGE (8 * STOOK_MIB)   /* the same for large objects, which fill it */
#define STOOK_HUGE_TELL       (6 * STOOK_MIB)   /* in use: before, slabs are of few kinds */
#define STOOK_HUGE_LOOK       (4 * STOOK_MIB)   /* taken from look to look: one is ten faults */
#define STOOK_HUGE_REGROWN    (8 * STOOK_MIB)   /* refaults: the process is on its way back */
#define STOOK_HUGE_LAST_PART  8         /* of a large object, padding of its last huge page */
#define STOOK_HUGE_DEAR       3         /* faults dearer than small ones, more than were not */
#define STOOK_HUGE_DEAR_MS    10000     /* until one is tried again. Arbitrary */
#define STOOK_WRITTEN_PAGES   27        /* of 32 that are looked at: memory is written as a whole */
#define STOOK_WRITING_MS      100       /* another thread may still be writing what it got */

/* ---- barns and sheaves: barn/barn_budget.c, barn/barn_growth.c ---- */

#define STOOK_BARN_FULL       10        /* whole sheaves, at first: the kernel's MAX_FULL_SHEAVES */
#define STOOK_BARN_EMPTY      10        /* and MAX_EMPTY_SHEAVES */
#define STOOK_BARN_SHORT      32        /* objects: the get of fewer is dear for each */
#define STOOK_BARN_CACHE_BYTES (512 * STOOK_KIB)        /* of one cache in a node's barns */
#define STOOK_BARN_SWING_BYTES (2 * STOOK_MIB)  /* the same of one that swings by more */
#define STOOK_BARN_NODE_BYTES (4 * STOOK_MIB)   /* of all caches */
#define STOOK_BARN_PART       8         /* of the bytes in use, whatever the machine has */
#define STOOK_BARN_LEAST      (1 * STOOK_MIB)
#define STOOK_BARN_UNASKED    4         /* times its room put, no ask: keeps none. Arbitrary */
#define STOOK_SLOT_CACHE_BYTES (64 * STOOK_KIB) /* of one cache in a slot, at first. Arbitrary */
#define STOOK_SLOT_WIDE_BYTES (128 * STOOK_KIB) /* and where it has grown */
#define STOOK_SLOT_GROWN_BYTES (512 * STOOK_KIB)        /* by which caches grow in a slot */
#define STOOK_SLOT_GROWN_MOST (1 * STOOK_MIB)   /* or this part of the bytes in use, up to that */
#define STOOK_SLOT_GROWN_PART 4
#define STOOK_SWINGS          8         /* a program's start and end do not reach it. Arbitrary */
#define STOOK_SWINGS_GET      64        /* gets count less than refills: a growth costs memory */
#define STOOK_SWINGS_FEWER    16        /* with fewer than FEWER objects nearly all calls miss */
#define STOOK_SHEAF_FEWER     4         /* objects of a sheaf of large ones: the first step */
#define STOOK_SHEAF_FEW       12        /* the second */
#define STOOK_SHEAF_FEW_MOST  24        /* the last. Arbitrary */
#define STOOK_SHEAF_MOST      1024      /* objects of a sheaf that grew */
#define STOOK_FEW_BUDGETS     4         /* times STOOK_BARN_NODE_BYTES: sheaves of large objects */
#define STOOK_FEW_LEAST       (2 * STOOK_MIB)
#define STOOK_FILL_FIRST      8         /* objects of a first refill: a short program uses few */

/* ---- what is idle: slot/slot_idle.c, barn/barn_idle.c, slab, life/last_thread.c ---- */

#define STOOK_TICK_CALLS      16        /* one slow call in so many asks the clock */
#define STOOK_TICK_SHEAVES    16        /* flushed by one step, which its caller waits for */
#define STOOK_TICK_CACHES     128       /* looked at by one step: a bound where thousands exist */
#define STOOK_TICK_SLABS      32        /* whose free pages one step looks for */
#define STOOK_PUT_SLABS       8         /* the same for a put, in a cache that only frees */
#define STOOK_SLAB_KEPT_BYTES (128 * STOOK_KIB) /* of empty slabs, in a node. Arbitrary */
#define STOOK_SLAB_FREE_OF_8  7         /* eighths of a slab free: below, whole pages seldom are */
#define STOOK_SLAB_MORE_PART  48        /* of a slab's objects freed since: it is looked at again */
#define STOOK_HALVED_LEAST    (2 * STOOK_MIB)   /* of slabs, and half of it gone: all is idle */
#define STOOK_SLABS_MOST      (128 * STOOK_KIB) /* spans from here on are large objects */
#define STOOK_LAST_LITTLE     (256 * STOOK_KIB) /* given at a thread's end: try again. Arbitrary */

#endif
