/*
 * Purpose: the library's one line of thread-local storage, `stook_thread_v1` of <stook/layout.h>,
 * under a name for use inside.
 * Invariants:
 *  I1 all of it but no_index is zero in a new thread: such a thread's first call is a
 *     slow call.
 *  I2 `ready` is not zero only while the kernel protects this thread's sections: the thread is
 *     registered (cpu_id >= 0) and is not a vfork child.
 *  I3 initial-exec, 64 bytes in all: the library can be dlopened, and no access allocates. With
 *     STOOK_DYNAMIC_TLS accesses are calls, and there are no sections: musl makes the record of
 *     each thread in dlopen or with the thread.
 */
#ifndef STOOK_THREAD_H
#define STOOK_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stook/layout.h>
#include "base/compiler.h"

/*
 * Another name for this library's stook_thread_v1. That name itself is, to a program, the record of
 * the first library that has it: with the drop-in before libstook.so, the drop-in's.
 */
extern __thread struct stook_thread_v1 stook_thread
        STOOK_THREAD_MODEL __attribute__((visibility("hidden")));
/* Tests whose threads are no threads of the system have records of their own. */
#ifndef stook_self
#define stook_self (&stook_thread)
#endif

/*
 * Does the program use this copy of the library? Not if the drop-in stands before libstook.so: then
 * the program's calls are the drop-in's. Two names of one object may be the same, which clang does
 * not know: it takes different names for different objects.
 */
STOOK_INLINE bool stook_self_is_programs(void)
{
        uintptr_t record = (uintptr_t)&stook_thread_v1;

        __asm__("" : "+r"(record));
        return record == (uintptr_t)stook_self;
}

/* Atomic, relaxed: how many threads have enrolled (slot/slot_enrol.c). */
extern uint32_t stook_threads_enrolled;
/*
 * Atomic, relaxed: how many of them, without the first, have not ended, where ends are noticed
 * (life/last_thread.c). Threads of the locked backend that have large objects count, too.
 */
extern uint32_t stook_threads_live;

/* ---- barred: this thread never enrols, or never again ---- */

STOOK_INLINE bool stook_self_is_barred(void)
{
        return stook_self->barred;
}

STOOK_INLINE void stook_self_bar(void)
{
        stook_self->barred = 1;
}

/*
 * ---- inside: what this thread is in the middle of, or was jumped out of ----
 * A handler leaves it as it found it. A child of vfork shares it; the parent gets it back as it
 * was. By bits:
 *   0x01  STOOK_INSIDE_WAIT          a wait for a lock (base/lock.c)
 *   0x02  STOOK_INSIDE_RCU_CALL      a call of an RCU implementation
 *   0x04  STOOK_INSIDE_RCU_CALLBACK  a callback of the library's: barriers wait for it
 *   0x08  STOOK_INSIDE_ASK           the fork of a child that answers and ends (process/child.c)
 *   0x30  transit 0                  calls in the first of rcu_transit.c's two counts
 *   0xc0  transit 1                  calls in the second
 */
#define STOOK_INSIDE_WAIT         0x1
#define STOOK_INSIDE_RCU_CALL     0x2
#define STOOK_INSIDE_RCU_CALLBACK 0x4
#define STOOK_INSIDE_ASK          0x8
#define STOOK_INSIDE_RCU          (STOOK_INSIDE_RCU_CALL | STOOK_INSIDE_RCU_CALLBACK)
#define STOOK_TRANSIT_SHARE_MAX   3     /* as many as two bits hold */

/* Any of @what: STOOK_INSIDE_..., by bits. */
STOOK_INLINE bool stook_self_is_inside(uint8_t what)
{
        return stook_self->inside & what;
}

STOOK_INLINE void stook_self_set_inside(uint8_t what)
{
        stook_self->inside |= what;
}

STOOK_INLINE void stook_self_clear_inside(uint8_t what)
{
        stook_self->inside &= (uint8_t)~what;
}

STOOK_INLINE unsigned stook_self_transit_shift(unsigned at)
{
        return at ? 6 : 4;
}

/* This thread's share of rcu_transit.c's count @at (0 or 1): 0 to STOOK_TRANSIT_SHARE_MAX. */
STOOK_INLINE unsigned stook_self_transit(unsigned at)
{
        return stook_self->inside >> stook_self_transit_shift(at) & STOOK_TRANSIT_SHARE_MAX;
}

STOOK_INLINE void stook_self_set_transit(unsigned at, unsigned calls)
{
        unsigned shift = stook_self_transit_shift(at);
        unsigned others = stook_self->inside & ~(STOOK_TRANSIT_SHARE_MAX << shift);

        stook_self->inside = (uint8_t)(others | calls << shift);
}

_Static_assert(sizeof(struct stook_thread_v1) == 64, "static TLS budget");
_Static_assert(offsetof(struct stook_thread_v1, ready) == STOOK_THREAD_READY, "layout v1");
_Static_assert(offsetof(struct stook_thread_v1, nowhere) == STOOK_RSEQ_CS, "layout v1");
_Static_assert(offsetof(struct stook_thread_v1, no_index) == STOOK_RSEQ_MM_CID, "layout v1");
_Static_assert(offsetof(struct stook_thread_v1, locks_held) % 4 == 0, "base/lock.h I4");
_Static_assert(offsetof(struct stook_thread_v1, inside) == STOOK_THREAD_INSIDE &&
               STOOK_THREAD_INSIDE % 2 == 0 && STOOK_THREAD_BARRED == STOOK_THREAD_INSIDE + 1,
               "dropin/vfork_*.S keeps both in one load and store");
_Static_assert(offsetof(struct stook_thread_v1, barred) == STOOK_THREAD_BARRED, "dropin/vfork_*.S");

#endif
