/*
 * Purpose: the open rcu sheaves of slots, which take the objects that wait for readers.
 * Place: rcu layer.
 * Invariants:
 *  I1 rcu_free of a line is NULL or a sheaf with room for one object more at least: the push that
 *     fills the sheaf takes it off.
 *  I2 rcu_free goes from NULL to a sheaf by a compare-and-swap of any thread. It goes back to NULL
 *     by the compare-and-swap of rcu_fill (section/section.h), or by an exchange.
 */
#ifndef STOOK_RCU_OPEN_H
#define STOOK_RCU_OPEN_H

#include "slot/slot.h"

/* The line whose rcu_free takes mixed objects: the slot's head, which is no cache's line. */
#define STOOK_RCU_MIXED_LINE 0u

/* A sheaf is open on the current slot's line at @offset. Racy. */
bool stook_rcu_is_open(uint32_t offset);
/*
 * Opens the empty @sheaf there; @round: the clock's last tick (rcu_clock.c). False: a sheaf is open
 * there, or there is no slot; @sheaf is still the caller's.
 */
bool stook_rcu_open(uint32_t offset, struct stook_sheaf *sheaf, uint64_t round);

/*
 * Takes sheaves off all slots and submits them: those of lines from @first to below @end that were
 * opened at @round or before (UINT64_MAX: all). @wait: may wait for another evacuation; without it
 * the call only tries. Return: sheaves that are still open; those of stuck slots (evacuate.h I3) do
 * not count. If no evacuation can be made, or what it took off is lost, that is all sheaves found.
 */
size_t stook_rcu_evacuate(unsigned first, unsigned end, uint64_t round, bool wait);

#endif
