/*
 * Purpose: the library's only lock, for the few places that need one (partial lists, the page layer).
 * It can refuse: whoever cannot have it goes another way, without it (the pending stacks).
 *
 * Invariants:
 *  I1 nobody who holds a lock waits for another: while stook_self->locks_held is not zero (a signal handler
 *     on top of a holder, too), taking a lock only tries. ("Never wait for myself" is not enough: two
 *     threads with handlers deadlock crosswise.)
 *  I2 no wait is unbounded: after a short spin and at most about 1 ms asleep, take returns false. So a
 *     holder that never returns (stopped, dead, jumped out of) costs memory, never progress.
 *  I3 locks_held is raised before the acquiring compare-and-swap and lowered after the release: a handler
 *     in between sees a lock too many, never one too few.
 * Concurrency: word is 0 free, 1 held, 2 held and somebody may sleep. M1: the release exchange pairs with
 *  the acquiring compare-and-swap or, of a waiter, exchange. Sleeping is a futex wait of the
 *  os layer handed in at start.
 */
#ifndef STOOK_LOCK_H
#define STOOK_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"
#include "base/thread.h"

struct stook_lock {
        uint32_t word;                  /* M1 */
};

/* False: not to be had now; the caller holds nothing and must go the way without the lock. */
bool stook_lock_take(struct stook_lock *lock);
bool stook_lock_try(struct stook_lock *lock);
void stook_lock_drop(struct stook_lock *lock);

/*
 * After a drop: loads from here on are done after the lock was seen free. On x86-64 the exchange that dropped it was a
 * full fence already, a second one costs as much again.
 */
static inline void stook_lock_fence_after_drop(void)
{
#if defined(__x86_64__)
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
#else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * Between the two this thread counts as a holder: it waits for no lock (take does what try does), its slow paths leave
 * work that is not the caller's undone (purging), and a child forked on top of it does not repair the heap before the
 * end (life/fork.c). For calls that may not wait; and for steps in which something is in this thread's hands that
 * looks like a vanished thread's to a child that repairs. They nest.
 */
STOOK_INLINE void stook_lock_forbid_waits(void)
{
        stook_self->locks_held++;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

STOOK_INLINE void stook_lock_allow_waits(void)
{
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stook_self->locks_held--;
}

/* Does this thread hold a lock, or was told not to wait? For slow paths that have work to offer. */
STOOK_INLINE bool stook_lock_may_not_wait(void)
{
        return stook_self->locks_held != 0;
}

/* For the child of a fork whose lock words belong to threads that are gone. */
void stook_lock_reset(struct stook_lock *lock);

/* How to sleep while *word == value for at most @ns, and how to wake one sleeper. Set once at start; before, take spins. */
struct stook_lock_sleep {
        void (*wait)(uint32_t *word, uint32_t value, uint64_t ns);
        void (*wake)(uint32_t *word);
};
void stook_lock_set_sleep(const struct stook_lock_sleep *sleep);

/* Test hook: when not 0, take and try refuse every n-th call. */
extern uint32_t stook_lock_refuse_every;

#endif
