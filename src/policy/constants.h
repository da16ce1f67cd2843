/*
 * Purpose: every constant that decides when memory is kept or given back, and how far sheaves and
 * barns grow, on one page. How much is got at once stands at growth, refill and geometry
 * (pages/span_grow.c, barn/barn.c, slab/slab_birth.c). What is a format, a unit or the bound of a
 * loop stands where it is used.
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

/* ---- free pages, debt, allocation clock: dirty.c, pages/purge.c ---- */

/*
 * The environment's STOOK_DECAY_MS, by default: what lies free for so long goes. Half: phases are
 * faulted in that are less than a second apart. Twice: what a phase left stays twice as long.
 */
#define STOOK_DECAY_MS        1000
/* What recurs stays for so many. Half: phases are further apart. Twice: a spike of two stays. */
#define STOOK_RECURS_DECAYS   3
/*
 * Of the bytes in use: may lie dirty; are left of the most where a spike is at its end; are gone
 * where large objects come in turn no more; pad an object's last huge page. Half (an eighth):
 * larger peaks of mixed sizes. Twice (a 32nd): a purge and its faults for each swing that is
 * smaller.
 */
#define STOOK_PART            16
/*
 * The least of that, and the least span that is worth a purge above the dirty limit. Half: small
 * programs purge what they take again. Twice: all processes are larger by as much.
 */
#define STOOK_DIRTY_LEAST     (1 * STOOK_MIB)
/*
 * The same above twice the limit, and of what waits, to be joined for it: between slabs that live.
 * Half: twice as many purges, for as many bytes. Twice: more stays of what is freed at random.
 */
#define STOOK_PURGE_SMALL     (64 * STOOK_KIB)
/*
 * Of what may lie dirty, at a new high-water mark. Half: peaks of large objects are larger. Twice:
 * a program that only grows purges more.
 */
#define STOOK_HIGH_WATER_PART 4
/*
 * Of the bytes in use, taken clean, moves the allocation clock; and a part of half the decay time
 * is between moves by dirty memory. Half: larger peaks. Twice: rounds that find nothing.
 */
#define STOOK_CLOCK_PART      256

/* ---- huge pages: huge.c, pages/advice.c ---- */

/*
 * In use: a huge page pads by a sixteenth at most. A fourth of it is for large objects, which fill
 * them, and for a process on its way back; an eighth of it is taken from look to look. Half: small
 * programs are larger. Twice: their spikes take a fault for each page.
 */
#define STOOK_HUGE_FROM       (32 * STOOK_MIB)
/*
 * Faults dearer than small ones, more than were not. Half: one that was interrupted ends huge
 * pages. Twice: a process waits for twelve dear ones.
 */
#define STOOK_HUGE_DEAR       3
/*
 * Of 32 that are looked at: memory is written as a whole. Half: objects that are written in part
 * come huge. Twice: none ever does.
 */
#define STOOK_WRITTEN_PAGES   27

/* ---- barns and sheaves: barn/barn_room.c ---- */

#define STOOK_BARN_SHEAVES    10        /* full, and empty, at first: the kernel's MAX_*_SHEAVES */
/*
 * Objects: the get of fewer is dear for each, and so is the put: a slot's sheaf has so many while
 * its cache only frees. Half: such a program is slower. Twice: a spike leaves more.
 */
#define STOOK_BARN_SHORT      32
/* Of one cache, at first. Half: more refills. Twice: large objects are no faster. */
#define STOOK_BARN_CACHE_BYTES (512 * STOOK_KIB)
/* Of all caches; one that swings gets half of it. Twice: wide swings are no faster. */
#define STOOK_BARN_NODE_BYTES (4 * STOOK_MIB)
#define STOOK_BARN_PART       8         /* of the bytes in use, whatever the machine has */
/* The least of that. Half, and a fourth: a small program keeps as much, in slots and as pages. */
#define STOOK_BARN_LEAST      (1 * STOOK_MIB)
#define STOOK_BARN_UNASKED    4         /* times its room put, no ask: keeps none. Arbitrary */
/* Of one cache in a slot; twice that, once grown. Twice: 12 to 31 objects are no faster. */
#define STOOK_SLOT_CACHE_BYTES (64 * STOOK_KIB)
/* By which all caches grow in a slot. Without any growth idle slots keep hardly less. */
#define STOOK_SLOT_GROWN_BYTES (1 * STOOK_MIB)
#define STOOK_SLOT_GROWN_PART 4         /* ... half at least; or up to a part of what is in use */
/*
 * Sheaves of a barn. Half: short programs keep more, and are no faster. Four times: short runs of
 * large objects are slower.
 */
#define STOOK_GROW_GETS       64
#define STOOK_GROW_SWING      8         /* one from the slabs counts so many. Arbitrary */
#define STOOK_SHEAF_FEW       24        /* of large objects, at most. Arbitrary */
#define STOOK_SHEAF_MOST      1024      /* of small ones */
/* Times STOOK_BARN_NODE_BYTES: sheaves of large objects. Half: keeps less, a little slower. */
#define STOOK_FEW_BUDGETS     4
/* Objects of a first refill. With whole sheaves what is used once keeps more, and is no faster. */
#define STOOK_REFILL_FIRST    8

/* ---- what is idle: slot/slot_tick.c, barn/barn_room.c, slab ---- */

#define STOOK_TICK_CALLS      16        /* one slow call in so many asks the clock, and decides */
#define STOOK_TICK_WORK       16        /* sheaves that a step flushes: its caller waits */
#define STOOK_SLAB_KEPT_BYTES (128 * STOOK_KIB) /* of empty slabs, in a node. Arbitrary */
#define STOOK_HALVED_LEAST    (2 * STOOK_MIB)   /* of slabs, and half of it gone: all is idle */

#endif
