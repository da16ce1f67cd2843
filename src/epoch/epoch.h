/*
 * Purpose: an RCU implementation of the library's own: the table stook_rcu_epoch of <stook/rcu.h>.
 * epoch.c has grace periods and callbacks; readers.c: which threads are inside a read section, and
 * the wait for them.
 * Place: called by life, around forks. The library's frees reach it through the table alone, as
 * they reach any implementation.
 *
 * A record of 64 bytes for each thread that reads has one word: 0 outside of sections, else the
 * epoch in which the outermost section began, and how deep the sections are nested. A grace period
 * begins with a barrier on all CPUs (membarrier) and with a new epoch. It ends when no record says
 * an earlier epoch. The barrier is the waiting thread's, so a reader has none: a section is a load
 * and a store at either end. (M. Desnoyers, P. McKenney and others, "User-Level Implementations of
 * Read-Copy Update", 2012, describe schemes of this kind.)
 *
 * Claim: a section that may see what was unpublished before the wait is waited for. Say the wait
 * reads a record's word after its barrier.
 *  - It finds 0, or the word of an earlier section, though a section begins or has begun.
 *    Then the store of that section's word is behind the barrier in the reader's order. So are the
 *    section's loads: they find what was published before the wait.
 *  - It finds this epoch or a later one. The reader loaded it, acquiring, after the wait stored it,
 *    releasing: the same follows.
 *  - It finds an earlier epoch: it looks again later.
 * The model is tests/proof/models/epoch.pml.
 *
 * Invariants:
 *  I1 a record is on the list for ever, and belongs to one thread at a time: `owner`.
 *  I2 a thread with a record keeps it to its end. A thread that could not have one never has one:
 *     `crowded` is set before, and stays. `crowd` counts the sections of such threads. Each of them
 *     has its own part of the count in a key's value.
 *  I3 no call here allocates, and none waits but stook_readers_wait.
 * Concurrency: `word` is its thread's; a handler leaves it as it found it. M1: its releasing stores
 *  pair with the acquiring load of a wait. M2: the release of a new epoch pairs with the acquire of
 *  the section that begins in it. M3: the barrier of a wait, or two full fences where membarrier is
 *  refused from the start, order the store of a word before the section's loads. M4: the release
 *  that lists a record pairs with the acquire of the walk. M5: the release of `how` and
 *  `how_crowded` pairs with the acquire before the use of their keys.
 * Failure: without memory for a record: I2. Without a key for its end: walks; slower, as safe.
 *  Without both, a thread of the crowd is refused a wait while another one reads, and a child of a
 *  fork keeps its parent's count.
 */
#ifndef STOOK_EPOCH_H
#define STOOK_EPOCH_H

#include <stdbool.h>

/* ---- epoch.c ---- */
/*
 * Around fork(2): no callback runs in another thread, and none is in another thread's hands.
 * Bounded: where a callback takes long, the child does without it. Not on top of a lock's holder.
 */
void stook_epoch_fork_prepare(void);
void stook_epoch_fork_parent(void);
/*
 * In any child: of all threads only this one, with what it interrupted, is left. @libc_is_whole:
 * it may make threads. After _Fork() or clone() it may not: a thread that is gone may have had the
 * C library's locks. Callbacks then wait for a barrier.
 */
void stook_epoch_fork_child(bool libc_is_whole);
/*
 * In a child of fork(2), as its last step: it may make threads. @now: one for the callbacks that
 * wait. That allocates.
 */
void stook_epoch_fork_revive(bool now);

/* ---- readers.c: of this layer ---- */
/* A section of this thread. They nest, 65,535 deep at most. Any instruction. */
void stook_readers_begin(void);
/* False: this thread is in none. */
bool stook_readers_end(void);
bool stook_readers_is_inside(void);

/*
 * Returns when all sections that were there have ended. This thread is in none. False: the system
 * refuses membarrier, though it did not when the first reader came; nothing was waited for.
 */
bool stook_readers_wait(void);

/* Called at the end of each thread that has a record. Of epoch.c. */
void stook_epoch_thread_ends(void);

/* In a child of a fork: of all threads only this one is left. */
void stook_readers_fork_child(void);

#endif
