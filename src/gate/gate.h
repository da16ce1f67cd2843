/*
 * Purpose: what a slow call checks before it enters a layer below (stook_gate_check): was a call of
 * this thread jumped out of before, and is this process a forked child whose heap is not repaired
 * yet? Apart from that, the start (stook_gate_start), for calls that may be the first of a program:
 * malloc's, and those that make a cache or a group.
 * Place: called by every layer above it. It calls no layer above. The start and the repair are done
 * by life, which hands them in as a table of functions (stook_gate_duties, in life/start.c).
 */
#ifndef STOOK_GATE_H
#define STOOK_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"

enum stook_gate_state {
        STOOK_GATE_CLOSED,              /* the library has not started */
        STOOK_GATE_STARTING,
        STOOK_GATE_OPEN,
        STOOK_GATE_FAILED,              /* no memory to start with: all allocations are NULL */
};

struct stook_gate_duties {
        /* Starts the library, or waits for the thread that starts it. False: it is not up. */
        bool (*start)(void);
        /* After a jump out of a handler of this thread: drops the locks that its calls held. */
        void (*recover)(void);
        /*
         * In a forked child: makes the heap whole, unless another call has done so, or does.
         * Beside a second thread: has the page of the heap's word wiped in children from now on.
         * Otherwise: does what was asked.
         */
        void (*repair)(void);
};
extern const struct stook_gate_duties stook_gate_duties;

extern uint32_t stook_gate_state;       /* atomic (life/start.c M1): enum stook_gate_state */

/*
 * What *stook_gate_heap may be. ALONE: it is whole, and no slow call was made beside a second
 * thread yet (life/fork.c). ASKED: it is whole, and a command outside asked something of the
 * process, or a handler left something to a slow call (life/request.c). The command writes that
 * where it reads WHOLE or ALONE.
 */
enum { STOOK_HEAP_FORKED = 0, STOOK_HEAP_WHOLE = 1, STOOK_HEAP_REPAIRING = 2,
       STOOK_HEAP_ASKED = 3, STOOK_HEAP_ALONE = 4 };
/*
 * Atomic content; const after the start. From the first slow call beside a second thread on, it
 * lies in a page that the kernel clears in a forked child (MADV_WIPEONFORK), if the kernel can.
 */
extern uint32_t *stook_gate_heap;

STOOK_INLINE bool stook_gate_is_open(void)
{
        return __atomic_load_n(&stook_gate_state, __ATOMIC_ACQUIRE) == STOOK_GATE_OPEN;
}

/* Starts the library if it is not up. False: it failed, or a handler runs on top of its start. */
STOOK_INLINE bool stook_gate_start(void)
{
        return STOOK_LIKELY(stook_gate_is_open()) || stook_gate_duties.start();
}

/*
 * For slow calls, with no lock held: repairs the heap in a child of fork, _Fork or a raw clone, and
 * after a jump out of a handler.
 */
void stook_gate_check(void);

#endif
