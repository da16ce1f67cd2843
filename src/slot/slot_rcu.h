/*
 * Purpose: the rcu sheaves of slots, which take the objects that wait for readers: opened, taken off; and the count
 * of those who have one in their hands, off the slot but not yet given to an RCU implementation. A barrier that did
 * not wait for them would miss what they hold.
 * Place: called by cache (frees, barriers) and by drains. The sheaf of line 0 takes objects of many caches.
 * Invariants:
 *  I1 rcu_free of a line is NULL or a sheaf with room for at least one object more: the push that fills it takes it off.
 *  I2 it goes from NULL to a sheaf by a compare-and-swap of anybody, and back by the one of rcu_fill, or an exchange.
 */
#ifndef STOOK_SLOT_RCU_H
#define STOOK_SLOT_RCU_H

#include "slot/slot.h"

/* What the cache layer does with a sheaf that a drain took off; set at start. It may be partly filled. */
extern void (*stook_slot_rcu_submit)(struct stook_sheaf *sheaf);

/* Is a sheaf open on the current slot's line? Racily. */
bool stook_slot_rcu_is_open(uint32_t offset);
/* Opens an empty sheaf there; @round: when. False: there is one, or no slot; the sheaf is still the caller's. */
bool stook_slot_rcu_open(uint32_t offset, struct stook_sheaf *sheaf, uint64_t round);

/*
 * Takes the sheaves of cache indices from @first to below @end, opened at @round or before (UINT64_MAX: all), off all
 * slots and submits them. @wait false: only tries, for who must not wait. Return: sheaves that are open still, or were
 * not to be had.
 */
size_t stook_slot_rcu_drain(unsigned first, unsigned end, uint64_t round, bool wait);

/* For slot_drain.c, in its steps: off the slots, the caller in transit from then on; after the barrier. */
struct stook_link *stook_slot_rcu_detach(unsigned first, unsigned end, uint64_t round, int *ticket);
void stook_slot_rcu_hand_on(struct stook_link *sheaves, int ticket);
void stook_slot_rcu_lose(int ticket);

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
