/*
 * Purpose: what the drop-in's direct sections know without asking the thread record
 * (dropin/hot_x86_64.S, dropin/hot_aarch64.S).
 * Place: written at the events that slot tells (stook_direct_duties in slot/slot.h), by
 *  life/fork.c, and around vfork by the drop-in (dropin/vfork_x86_64.S, dropin/vfork_aarch64.S).
 *  Read by sections in assembly. The argument: direct.c.
 */
#ifndef STOOK_DIRECT_H
#define STOOK_DIRECT_H

#include <stdint.h>
#include "base/compiler.h"
#include "slot/slot.h"

/*
 * `ready` has
 *   the bound: slots below this index are filled, and direct sections may use them;
 *   vforks under way, in units of STOOK_DIRECT_VFORK. One more than fit turns direct sections off;
 *   STOOK_DIRECT_OFF, the bit above them;
 *   on aarch64 also the area, in its lower half: see below.
 * The bound is above 0 only while no vfork is under way and STOOK_DIRECT_OFF is not set. Any thread
 * changes it, by compare-and-swap.
 *
 * The area is in bytes from the thread pointer to the kernel's area. Where direct sections are off
 * it is to the thread record, whose no_index is above every bound.
 */
#if defined(__aarch64__)
extern struct stook_direct {
        char     *slots;                /* slot 0; const after start */
        uint64_t  ready;                /* before the start 0, which is the area of no thread */
        /*
         * malloc's: 0, or the next field where direct sections were on at start. All sizes take the
         * checked section while it is 0. Const after start.
         */
        uint64_t  sizes;
        uint64_t  sizes_when_on;        /* const: the drop-in's first value */
} stook_direct STOOK_HIDDEN;

#define STOOK_DIRECT_AREA        UINT64_C(0xffffffff)
#define STOOK_DIRECT_OFF         (UINT64_C(1) << 47)
#define STOOK_DIRECT_BOUND_SHIFT 48
#else
extern struct stook_direct {
        intptr_t area;                  /* before the start, and with seals: to the thread record */
        uint64_t ready;
        intptr_t sealed;                /* the area of sections of sealed objects; or 0 */
} stook_direct STOOK_HIDDEN;

#define STOOK_DIRECT_AREA        UINT64_C(0)
#define STOOK_DIRECT_OFF         (UINT64_C(1) << 63)
#define STOOK_DIRECT_BOUND_SHIFT 0
#endif
#define STOOK_DIRECT_VFORK       (UINT64_C(1) << 32)
#define STOOK_DIRECT_BOUND_MAX   UINT16_MAX             /* of aarch64 */

STOOK_INLINE uint32_t stook_direct_bound_of(uint64_t ready)
{
        return (uint32_t)(ready >> STOOK_DIRECT_BOUND_SHIFT);
}

STOOK_INLINE intptr_t stook_direct_area(void)
{
#if defined(__aarch64__)
        return (int32_t)(uint32_t)__atomic_load_n(&stook_direct.ready, __ATOMIC_RELAXED);
#else
        return __atomic_load_n(&stook_direct.area, __ATOMIC_RELAXED);
#endif
}

/* Slots have become ready, or a vfork is over. */
void stook_direct_raise(void);
/*
 * At start, where sealed objects have sections (dropin/hot_sealed_x86_64.h): the others find no
 * index from now on, and give way to them.
 */
void stook_direct_seal(void);
/* In the only thread of a forked child. */
void stook_direct_fork_child(void);

/* Of the thread that calls vfork, which is barred from before the first to behind the second. */
void stook_direct_begin_vfork(void);
void stook_direct_end_vfork(void);

#endif
