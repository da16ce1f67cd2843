/*
 * Purpose: the library's one line of thread-local storage, `stook_thread_v1` of <stook/layout.h>, under a
 * name for use inside.
 * Invariants:
 *  I1 all of it but no_index is zero in a new thread: such a thread's first call takes the slow path.
 *  I2 `ready` is not zero only while the kernel protects this thread's sections: the thread is registered
 *     (cpu_id >= 0) and is not a vfork child.
 *  I3 initial-exec, 64 bytes in all: the library can be dlopened, and no access allocates.
 */
#ifndef STOOK_THREAD_H
#define STOOK_THREAD_H

#include <stddef.h>
#include <stook/layout.h>

/*
 * Another name for this library's stook_thread_v1. That name itself is, to a program, the line of the first library
 * that has it: with the drop-in before libstook.so, the drop-in's.
 */
extern __thread struct stook_thread_v1 stook_thread
        __attribute__((tls_model("initial-exec"), visibility("hidden")));
#define stook_self (&stook_thread)

/* In `barred`. Handlers leave the upper seven as they found them. */
#define STOOK_SELF_BARRED         0x1
#define STOOK_SELF_RCU_CALL       0x2   /* inside a call of an RCU implementation */
#define STOOK_SELF_RCU_CALLBACK   0x4   /* inside a callback of ours: barriers wait for it */
#define STOOK_SELF_TRANSIT0_SHIFT 4     /* two bits each: this thread's share of slot_rcu.c's two counts */
#define STOOK_SELF_TRANSIT1_SHIFT 6
#define STOOK_SELF_TRANSIT_MASK   0x3

_Static_assert(sizeof(struct stook_thread_v1) == 64, "static TLS budget");
_Static_assert(offsetof(struct stook_thread_v1, ready) == STOOK_THREAD_READY, "layout v1");
_Static_assert(offsetof(struct stook_thread_v1, nowhere) == STOOK_RSEQ_CS, "layout v1");
_Static_assert(offsetof(struct stook_thread_v1, no_index) == STOOK_RSEQ_MM_CID, "layout v1");
_Static_assert(offsetof(struct stook_thread_v1, barred) == STOOK_THREAD_BARRED, "malloc/vfork_*.S");

#endif
