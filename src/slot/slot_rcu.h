/*
 * Purpose: who has an rcu sheaf in his hands: off the slot, but not yet given to an RCU implementation. A barrier
 * that did not wait for them would miss what they hold.
 * Place: called by cache (frees, barriers) and by drains.
 */
#ifndef STOOK_SLOT_RCU_H
#define STOOK_SLOT_RCU_H

#include <stdbool.h>

/*
 * Raised before a sheaf is taken (off a slot, off the submit stack), lowered once it was submitted or pushed there.
 * -1: not now, too many handlers of this thread are in between themselves.
 */
int  stook_transit_enter(void);
void stook_transit_leave(int ticket);
/* Waits until everybody who was in transit before this call has left. False: this thread itself is, so it cannot. */
bool stook_transit_wait(void);
/* fork child: of all threads only this one, with what it interrupted, is left. */
void stook_transit_fork_child(void);

#endif
