/*
 * Purpose: what the drop-in's direct sections know without asking the thread record
 * (dropin/hot_x86_64.S).
 * Place: written by slot_enrol.c and life/fork.c, and around vfork by the drop-in
 *  (dropin/vfork_x86_64.S). Read by sections in assembly. The argument: slot_direct.c.
 */
#ifndef STOOK_SLOT_DIRECT_H
#define STOOK_SLOT_DIRECT_H

#include <stdint.h>
#include "base/compiler.h"

extern struct stook_direct {
        /*
         * Bytes from the thread pointer to the kernel's area. Before the start, and where direct
         * sections are off: to the thread record, whose no_index is above every bound.
         */
        intptr_t area;
        /*
         * Low half: slots below this index are filled, and direct sections may use them. High half:
         * vforks under way, and STOOK_DIRECT_OFF. One of the two halves is 0. Any thread, by
         * compare-and-swap. One vfork more than fit turns direct sections off.
         */
        uint64_t ready;
} stook_direct STOOK_HIDDEN;

#define STOOK_DIRECT_VFORK (UINT64_C(1) << 32)
#define STOOK_DIRECT_OFF   (UINT64_C(1) << 63)          /* for ever */

STOOK_INLINE uint32_t stook_direct_bound_of(uint64_t ready)
{
        return (uint32_t)ready;
}

STOOK_INLINE intptr_t stook_direct_area(void)
{
        return __atomic_load_n(&stook_direct.area, __ATOMIC_RELAXED);
}

/* At start. @area: this thread's; NULL: direct sections are off. */
void stook_direct_start(const char *area);
/* Slots have become ready, or a vfork is over. */
void stook_direct_raise(void);
/* This thread's registration is none: the C library does not register every thread. */
void stook_direct_turn_off(void);
/* In the only thread of a forked child. */
void stook_direct_fork_child(void);

/* Of the thread that calls vfork, which is barred from before the first to behind the second. */
void stook_direct_begin_vfork(void);
void stook_direct_end_vfork(void);

#endif
