/*
 * Purpose: an RCU implementation of the library's own: the table stook_rcu_epoch of <stook/rcu.h>.
 * What the layers above see of this layer.
 * Place: called by life, around forks. The library's frees reach it through the table alone, as
 * they reach any implementation.
 */
#ifndef STOOK_EPOCH_H
#define STOOK_EPOCH_H

#include <stdbool.h>

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

#endif
