/*
 * Purpose: counts the calls that are in transit: that have a sheaf which is off its slot, but not
 * with an RCU implementation yet. A barrier that did not wait for them would miss what they hold.
 * Place: rcu layer. A call begins to be in transit before it takes a sheaf (off a slot, or off the
 * stack of deferred ones). That ends when the sheaf was submitted, or was put on that stack.
 */
#ifndef STOOK_RCU_TRANSIT_H
#define STOOK_RCU_TRANSIT_H

#include <stdbool.h>
#include <stdint.h>

/* Any instruction. Return: a ticket that names the call. */
uint64_t stook_transit_begin(void);
void stook_transit_end(uint64_t ticket);
/*
 * Waits until all calls that were in transit before have ended. False: a call has not ended in
 * stook_transit_wait_ms. From then on it is lost, with what it has in hands, and no other wait
 * waits for it. Not for handlers.
 */
bool stook_transit_wait(void);
extern uint32_t stook_transit_wait_ms;  /* const; tests make it shorter */
/* The call was given up; or it is of a thread that this child of a fork does not have. */
bool stook_transit_is_lost(uint64_t ticket);
/* The latter of the two: the call never comes back. */
bool stook_transit_is_gone(uint64_t ticket);
/* In a child of a fork: of all threads only this one, with what it interrupted, is left. */
void stook_transit_fork_child(void);

#endif
