/*
 * <stook/layout.h> - the memory layout that inlined calls depend on
 *
 * Purpose: <stook/inline.h> runs critical sections on the library's per-CPU data from code compiled into
 * the caller. What those sections touch is fixed here, as layout version 1, and nothing else is.
 * A library with another layout still exports stook_thread_v1, with `ready` zero for ever: inlined calls
 * then always take the out-of-line path. They never abort and never misread.
 *
 * Not an interface to program against: use <stook/cache.h> or <stook/inline.h>.
 */
#ifndef STOOK_LAYOUT_H
#define STOOK_LAYOUT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A slot's region is 1 << STOOK_SLOT_SHIFT bytes: one 64-byte line for each of STOOK_CACHES_MAX caches. */
#define STOOK_SLOT_SHIFT  19
#define STOOK_LINE_SHIFT  6
#define STOOK_CACHES_MAX  8192

/* struct stook_cache begins with a uintptr_t: the address of the cache's line in slot 0, whether slot 0 is ready or not. */

/*
 * A sheaf: `word` is size (low 16 bits) | count of pops (upper 48 bits). A pop adds 0xffff, a push adds 1:
 * the one store that commits the operation also counts it.
 */
#define STOOK_SHEAF_WORD      0         /* uint64_t */
#define STOOK_SHEAF_CAPACITY  8         /* uint32_t: pushes stop here; at most STOOK_SHEAF_CAPACITY_MAX. 0 on machines
                                           of several nodes: all frees go to the library, which knows whose an object is */
#define STOOK_SHEAF_OBJECTS   32        /* void *[capacity] */
#define STOOK_SHEAF_CAPACITY_MAX 65534
#define STOOK_SHEAF_POP       0xffff    /* what one pop adds to `word` */
/*
 * A sheaf on loan (<stook/sheaf.h>): bit 0 of the byte here says that the library must see each object that is taken
 * (to zero it, to account for it). A library with another layout keeps the first two bytes of what it lends zero; it is then asked each time.
 */
#define STOOK_SHEAF_LENT      16

/*
 * The library's only thread-local storage: 64 bytes, initial-exec. All zero in a new thread but for no_index, so
 * that its first call goes to the library, which proves the thread's rseq registration and fills the line.
 * Written by its own thread only (and by a vfork child, which shares it: see malloc/vfork_x86_64.S).
 */
struct stook_thread_v1 {
        uint32_t           ready;       /* slots below this index are filled; 0: go to the library */
        uint8_t            locks_held;  /* see base/lock.h */
        uint8_t            barred;      /* bit 0: never enrol: vfork child, exiting thread, no registration to be had; others: base/thread.h */
        uint16_t           group;       /* what this thread allocates is charged to it; 0: see group/group.h */
        uint64_t           nowhere;     /* with no_index: what inlined sections find while stook_area_v1 is 0 */
        char              *rseq;        /* the kernel's struct rseq of this thread; rseq_cs is at 8 */
        uint32_t           no_index;    /* always UINT32_MAX: above every bound */
        uint32_t           unused;
        char               own_rseq[32] __attribute__((aligned(32))); /* registered where libc made no area */
};

extern __thread struct stook_thread_v1 stook_thread_v1
        __attribute__((tls_model("initial-exec"), visibility("default")));

/*
 * Bytes from a thread's stook_thread_v1 to the area the kernel writes its concurrency id to: the same in every
 * thread, for both are static thread-local memory. Set once, when the library starts. 0 where inlined calls must
 * go to the library (no restartable sequences, or a slot index that is not the concurrency id): they take the line
 * itself for the area then, whose no_index sends them away. So it is to callers: const, and may stay in a register
 * over loops and calls. (What is read before the start is 0, which is safe.) Of several libraries that have it, the
 * one whose stook_thread_v1 the program sees sets it.
 */
extern const intptr_t stook_area_v1 __attribute__((visibility("default")));

#define STOOK_THREAD_READY 0
#define STOOK_THREAD_BARRED 5
#define STOOK_RSEQ_CS      8            /* in struct rseq, and in the line: nowhere */
#define STOOK_RSEQ_MM_CID  24           /* likewise: no_index */

#ifdef __cplusplus
}
#endif
#endif
