/*
 * Purpose: empty slots from outside, while threads go on using them. The engine is one: a mutex, a
 * client's function that takes things off each slot, and barriers after which these are the
 * caller's alone. Clients take off pairs of sheaves (evacuate_pairs.c), sheaves of other nodes'
 * objects (home/home_remote.c), and, in layers above, precharges and open rcu sheaves.
 * Place: called by cache (shrink, destroy, tuning), rcu, group and life. The caller holds no lock,
 * but for group: it may be within an allocation (I1). Calls slot for the lines, barn to flush, os
 * for membarrier and futex.
 *
 * The steps: begin, barrier, take off, barrier, end.
 *
 * The client's function takes a thing off a slot by the same atomic operation by which all threads
 * change it. From then on no thread finds it there. But a section that had loaded it before may
 * still commit to it. One membarrier aborts, on every CPU, the sections that have not committed. So
 * after it the thing is the caller's alone, and only then the caller looks inside. On slots of the
 * locked backend a look at their word says the same: it was free once, after the exchange. Nothing
 * is put back: the next miss on the slot installs a sheaf.
 *
 * The first barrier finds out whether membarrier still works (a sandbox may have come down since
 * start) before anything is taken off. It also ends all sections that saw the cache's configuration
 * as it was before the caller changed it. So what they install is there to be taken off.
 *
 * Invariants:
 *  I1 one evacuation at a time, under the mutex. Allocations and frees do not take it, but for one
 *     that is over a group's limit, which only tries.
 *  I2 if the second barrier fails, what was taken off is never touched again, and no evacuation is
 *     tried any more.
 *  I3 a locked slot whose holder does not come back is waited for once. From then on, while the
 *     holder is away, the slot is stuck: it is skipped, and keeps what it has. If it is the second
 *     barrier that finds a slot stuck, all that this evacuation took off is never touched again.
 */
#ifndef STOOK_EVACUATE_H
#define STOOK_EVACUATE_H

#include <stdbool.h>
#include <stdint.h>
#include "slot/slot.h"

/* ---- evacuate.c: the engine ---- */

enum stook_evacuate_how {
        STOOK_EVACUATE_WAIT,            /* for another evacuation; not for handlers */
        STOOK_EVACUATE_TRY,
        /*
         * The same within an allocation: the call counts as a lock's holder (base/lock.h), so that
         * a jump out of it is noticed.
         */
        STOOK_EVACUATE_TRY_COUNTED,
};

/* Takes the mutex. False: another thread has it, or evacuations are broken (I2). */
bool stook_evacuate_begin(enum stook_evacuate_how how);
void stook_evacuate_end(void);
/* This thread has it, perhaps in a call below this handler. */
bool stook_evacuate_is_mine(void);

enum stook_evacuated {
        STOOK_EVACUATE_REFUSED,         /* membarrier is refused: nothing was taken off */
        STOOK_EVACUATE_LOST,            /* what was taken off is never to be touched (I2, I3) */
        STOOK_EVACUATE_DONE,            /* what was taken off is the caller's alone */
};

/*
 * Takes things off one slot. @lines: the slot's, from line 0; how many are filled says
 * stook_regions_lines(). @stuck: nothing may be taken (I3). True: something was taken.
 */
typedef bool stook_evacuate_take(unsigned slot, bool stuck, struct stook_line *lines, void *data);

/*
 * With the mutex: a barrier, a call of @take for each slot that is ready, and a barrier if anything
 * was taken.
 */
enum stook_evacuated stook_evacuate_slots(stook_evacuate_take *take, void *data);

/*
 * With the mutex, for a client that can undo what it did: a barrier alone. True: no section and no
 * holder of a locked slot is inside any more that was there before.
 */
bool stook_evacuate_barrier(void);

/* After a jump out of an allocation of this thread that had begun: lets the mutex go. */
void stook_evacuate_recover(void);
/* In the child of a fork: no other thread is in an evacuation. */
void stook_evacuate_fork_child(void);

/* ---- evacuate_pairs.c ---- */

/*
 * Empties all slots of a cache into its slabs. False: not all of them (membarrier was refused, or a
 * holder never came back). What threads may still use is left alone. Waits; not for handlers.
 */
bool stook_evacuate_cache(struct stook_front *front);
/*
 * Later in the child of a fork, when all below is whole: flushes what an evacuation of a thread
 * that the child does not have had taken off.
 */
void stook_evacuate_fork_mend(void);

/*
 * Gives back what idle slots keep: those from which nothing was taken for @after_ms milliseconds,
 * and those on which no thread can run any more (their CPU went, or left the process's affinity).
 * Waits; not for handlers. Return: caches of which something was given back.
 */
unsigned stook_evacuate_idle(uint32_t after_ms);
extern uint32_t stook_evacuate_looking; /* for tests: a thread is in such a round */

#endif
