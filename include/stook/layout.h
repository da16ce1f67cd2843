/*
 * <stook/layout.h> - the memory layout that inlined calls depend on
 *
 * Purpose: <stook/inline.h> runs critical sections on the library's per-CPU data, from code that is
 * compiled into the caller. This file fixes what those sections touch, as layout version 1, and
 * nothing else. A library with another layout still exports stook_thread_v1, with `ready` zero for
 * ever: inlined calls then always call the library. They never abort and never misread.
 *
 * Not an interface to program against: use <stook/cache.h> or <stook/inline.h>.
 */
#ifndef STOOK_LAYOUT_H
#define STOOK_LAYOUT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A slot's region is 1 << STOOK_SLOT_SHIFT bytes: one line of 64 bytes for each of STOOK_CACHES_MAX
 * caches.
 */
#define STOOK_SLOT_SHIFT  19
#define STOOK_LINE_SHIFT  6
#define STOOK_CACHES_MAX  8192

/*
 * struct stook_cache begins with a uintptr_t: the address of the cache's line in slot 0, whether
 * slot 0 is ready or not.
 */

/*
 * A sheaf: `word` is size (low 16 bits) | count of pops (the 15 bits above) | MARK (bit 31) | what
 * is the library's. A pop adds 0xffff, a push adds 1: the one store that commits the operation also
 * counts it. So a sheaf counts its pops up to the mark. Where it is set, no inlined call pops: the
 * library gives the sheaf a new count first. Size 0 and the mark are one test: the masked word, as
 * an int32_t, is 0 or negative.
 */
#define STOOK_SHEAF_WORD      0         /* uint64_t */
#define STOOK_SHEAF_BOUND     8         /* uint32_t: hot paths push up to it: the capacity */
#define STOOK_SHEAF_OBJECTS   32        /* void *[capacity] */
#define STOOK_SHEAF_CAPACITY_MAX 65534
#define STOOK_SHEAF_POP       0xffff    /* what one pop adds to `word` */
#define STOOK_SHEAF_MARK      0x80000000
#define STOOK_SHEAF_POPPABLE  0x8000ffff        /* MARK and the size */
/*
 * A sheaf on loan (<stook/sheaf.h>): bit 0 of this byte says that the library must see each object
 * that is taken (to zero it, to charge it). A library with another layout keeps the first two bytes
 * of what it lends zero: then each inlined call asks the library.
 */
#define STOOK_SHEAF_LENT      16

/*
 * The thread record, the library's only thread-local storage: 64 bytes, initial-exec. In a new
 * thread all but no_index is zero. So the thread's first call goes to the library, which proves the
 * thread's rseq registration and fills the record. Only the thread itself writes to it, and a child
 * of vfork, which shares it (see the vfork of libstook-malloc).
 */
struct stook_thread_v1 {
        uint32_t           ready;       /* slots below this index are filled; 0: ask the library */
        uint8_t            inside;      /* the library's: base/thread.h */
        uint8_t            barred;      /* 1: never enrol (a vfork child, an exiting thread,
                                           no registration to be had) */
        uint16_t           group;       /* is charged what this thread allocates; 0: group.h */
        uint64_t           nowhere;     /* with no_index: found while stook_area_v1 is 0 */
        char              *rseq;        /* this thread's struct rseq; rseq_cs is at 8 */
        uint32_t           no_index;    /* always UINT32_MAX: above every bound */
        uint8_t            locks_held;  /* with the next three, one word: see base/lock.h */
        uint8_t            held_from[3];
        /* registered where libc made no area */
        char               own_rseq[32] __attribute__((aligned(32)));
};

#ifdef STOOK_DYNAMIC_TLS        /* the library's own: it was configured with -Dstatic_tls=false */
#define STOOK_THREAD_MODEL
#else
#define STOOK_THREAD_MODEL __attribute__((tls_model("initial-exec")))
#endif
extern __thread struct stook_thread_v1 stook_thread_v1
        STOOK_THREAD_MODEL __attribute__((visibility("default")));

/*
 * Bytes from a thread's stook_thread_v1 to the area that the kernel writes the thread's concurrency
 * id to. It is the same in every thread, because both are static thread-local memory. The library
 * sets it once, when it starts. Of several libraries that have it, the one sets it whose
 * stook_thread_v1 the program sees.
 * 0: inlined calls must go to the library, because there are no restartable sequences, or the slot
 * index is not the concurrency id. They then take the record itself for the area, and its no_index
 * sends them to the library.
 * To callers it is const: it may stay in a register over loops and calls. A caller that reads it
 * before the start reads 0, which is safe.
 */
extern const intptr_t stook_area_v1 __attribute__((visibility("default")));

#define STOOK_THREAD_READY 0
#define STOOK_THREAD_INSIDE 4
#define STOOK_THREAD_BARRED 5
#define STOOK_RSEQ_CS      8            /* in struct rseq, and in the record: nowhere */
#define STOOK_RSEQ_MM_CID  24           /* likewise: no_index */

#ifdef __cplusplus
}
#endif
#endif
