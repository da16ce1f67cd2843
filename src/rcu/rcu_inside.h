/*
 * Purpose: what the files of this layer share: how objects get to an RCU implementation and back.
 * Place: rcu layer only.
 */
#ifndef STOOK_RCU_INSIDE_H
#define STOOK_RCU_INSIDE_H

#include "barn/barn.h"
#include "base/pending_stack.h"
#include "base/thread.h"
#include "gate/gate.h"
#include "rcu/rcu.h"

/* ---- rcu_use.c ---- */

/*
 * The implementation that frees of the cache go to. NULL: there is none. From here on the process's
 * implementation cannot be changed.
 */
const struct stook_rcu *stook_rcu_pin(struct stook_rcu_cache *or_null);
/* The same, which pins nothing. */
const struct stook_rcu *stook_rcu_peek(struct stook_rcu_cache *or_null);
/* The process's implementation. NULL: nothing pinned it yet. */
const struct stook_rcu *stook_rcu_pinned(void);

/* This is the first free by RCU of the cache. False: there is no implementation. */
bool stook_rcu_cache_use(struct stook_rcu_cache *cache);
/* The cache at @index. NULL: there never was such a free. */
struct stook_rcu_cache *stook_rcu_cache_at(unsigned index);
/* Indices of caches that had such frees are below. */
unsigned stook_rcu_caches_bound(void);

STOOK_INLINE bool stook_rcu_cache_is_used(const struct stook_rcu_cache *cache)
{
        return __atomic_load_n(&cache->used, __ATOMIC_ACQUIRE);          /* rcu_use.c M1 */
}

/* ---- rcu_transit.c: calls of the implementation ---- */

/* Has @done called after a grace period. This thread is not inside a call of an implementation. */
void stook_rcu_call(const struct stook_rcu *rcu, struct stook_rcu_head *head,
                    void (*done)(struct stook_rcu_head *head));
/*
 * A wait for a grace period can end here. @least: 1 for a wait by the implementation's barrier, 2
 * for a wait that only waits (may_wait of <stook/rcu.h>).
 */
bool stook_rcu_may_wait(const struct stook_rcu *rcu, int least);
/*
 * Around what a callback of ours does. It is the first thing of the library that a forked child may
 * run, so it makes the gate's check. @frame: the frame of the caller, which is never inlined.
 * Return: for the end.
 */
unsigned stook_rcu_callback_begin(const void *frame);
void stook_rcu_callback_end(unsigned place);
void stook_rcu_heal_slow(void);

/*
 * At the entry of a call: a thread that jumped out of what it was inside of is not inside any more.
 */
STOOK_INLINE void stook_rcu_heal(void)
{
        if (STOOK_UNLIKELY(stook_self_is_inside(STOOK_INSIDE_RCU)))
                stook_rcu_heal_slow();
}

/*
 * At the entry of a call that may call the implementation: the gate's check, too. Inlined: both
 * look at where the stack is.
 */
STOOK_INLINE void stook_rcu_check(void)
{
        stook_gate_check();
        stook_rcu_heal();
}

/* ---- rcu_transit.c: calls in transit ---- */

/*
 * A call is in transit while it has a sheaf that is off its slot, but not with an RCU
 * implementation yet. A barrier that did not wait for it would miss what it holds. A call begins to
 * be in transit before it takes a sheaf, off a slot or off the stack of deferred ones. That ends
 * when the sheaf was submitted, or was put on that stack.
 */

/* Any instruction. Return: a ticket that names the call. */
uint64_t stook_transit_begin(void);
void stook_transit_end(uint64_t ticket);
/*
 * Waits until all calls that were in transit before have ended. False: a call has not ended in
 * stook_transit_wait_ms. From then on it is lost, with what it has in hands, and no other wait
 * waits for it. Not for handlers.
 */
bool stook_transit_wait(void);
extern uint32_t stook_transit_wait_ms;  /* atomic: const, but for tests */
/* The call was given up; or it is of a thread that this child of a fork does not have. */
bool stook_transit_is_lost(uint64_t ticket);
/* The latter of the two: the call never comes back. */
bool stook_transit_is_gone(uint64_t ticket);

/* ---- rcu_submit.c: the caller is in transit up to the chain ---- */

/*
 * Gives @sheaf, which is not empty, to the implementation. With @nolock, or inside a call of the
 * implementation, the sheaf goes on the stack of deferred sheaves instead.
 */
void stook_rcu_submit_or_defer(struct stook_sheaf *sheaf, bool nolock);
/* Submits a sheaf that was taken off a slot, in the same way; an empty one goes back at once. */
void stook_rcu_submit_or_free(struct stook_sheaf *sheaf);
/* Submits all deferred sheaves and spans. Not in a nolock call. */
void stook_rcu_submit_deferred_in_transit(void);

/* ---- rcu_submit.c: how much waits ---- */

/* Bytes that the objects of a sheaf keep from being used. */
size_t stook_rcu_bytes_of(const struct stook_sheaf *sheaf);
/* When objects are submitted; and before they are freed. */
void stook_rcu_book(size_t bytes);
void stook_rcu_unbook(size_t bytes);
/*
 * Less waits than the limit allows. A call that is not @nolock may wait until that is so. Caches
 * whose objects have a hidden word are never refused; that is reported once.
 */
bool stook_rcu_has_room(struct stook_rcu_cache *or_null, bool nolock);
extern uint32_t stook_rcu_waiters;      /* for tests */

/* ---- rcu_open.c: open sheaves ---- */

/* The line whose rcu_free takes mixed objects: the slot's head, which is no cache's line. */
#define STOOK_RCU_MIXED_LINE 0u

/* A sheaf is open on the current slot's line at @offset. Racy. */
bool stook_rcu_is_open(uint32_t offset);
/*
 * Opens the empty @sheaf there. False: a sheaf is open there, or there is no slot; @sheaf is still
 * the caller's.
 */
bool stook_rcu_open(uint32_t offset, struct stook_sheaf *sheaf);

/*
 * Takes sheaves off all slots and submits them: those of lines from @first to below @end that were
 * opened at @round or before (UINT64_MAX: all). @wait: may wait for another evacuation; without it
 * the call only tries. Return: sheaves that are still open; those of stuck slots (evacuate.h I3) do
 * not count. If no evacuation can be made, or what it took off is lost, that is all sheaves found.
 */
size_t stook_rcu_evacuate(unsigned first, unsigned end, uint64_t round, bool wait);

/* A sheaf was opened: makes sure that it is submitted some time. May call the implementation. */
void stook_rcu_watch(struct stook_rcu_cache *or_null);

/* ---- rcu_turn.c: callbacks of which one at a time is on its way ---- */

/* What the implementation is given. Its memory is never given back. */
struct stook_rcu_asked {
        struct stook_rcu_head head;
        struct stook_rcu_turn *turn;    /* const once asked for */
        struct stook_link *batch;       /* the turn's owner: objects that wait for the callback */
        uint32_t serial;                /* atomic; the turn's owner writes, late callbacks read */
};

/* All zero: free. */
struct stook_rcu_turn {
        uint64_t word;                  /* atomic: rcu_turn.c M1 */
        struct stook_rcu_asked *now;    /* atomic, likewise; NULL: first */
        struct stook_rcu_asked first;
};

/* The turn is free. Racy. */
bool stook_rcu_turn_is_free(const struct stook_rcu_turn *turn);
/* The turn is free, or belongs to a lost call. Racy. */
bool stook_rcu_turn_is_takeable(const struct stook_rcu_turn *turn);

/* From here on the caller is in transit by @ticket. */

/*
 * Takes the turn. NULL: it is not to be had. *@gone: what a thread had asked for that this child of
 * a fork does not have, and which has no owner now; NULL: there is none.
 */
struct stook_rcu_asked *stook_rcu_turn_take(struct stook_rcu_turn *turn, uint64_t ticket,
                                            struct stook_rcu_asked **gone);
/* Has @done called for the head. The turn is not the caller's any more. */
void stook_rcu_turn_ask(struct stook_rcu_asked *asked, uint64_t ticket, const struct stook_rcu *rcu,
                        void (*done)(struct stook_rcu_head *head));
/* In the callback: takes the turn. False: the turn was lost. */
bool stook_rcu_turn_begin(struct stook_rcu_asked *asked, uint64_t ticket);
/* In the callback, as owner: takes the turn once more, to ask again. False: the turn was lost. */
bool stook_rcu_turn_again(struct stook_rcu_asked *asked, uint64_t ticket);
/* As owner: frees the turn. False: the turn was lost. */
bool stook_rcu_turn_end(struct stook_rcu_asked *asked, uint64_t ticket);

/* ---- rcu_free.c: chains ---- */

/*
 * Objects for which there was no sheaf, linked by their hidden words. It is never made anew with
 * the cache: a barrier may still look at it when the index is another cache's. It then does for
 * that cache what it would have done for the first.
 */
struct stook_rcu_chain {
        struct stook_pending_stack waiting;
        struct stook_rcu_turn turn;     /* of the batch that waits for a grace period */
        struct stook_rcu_cache *cache;  /* const */
};

/* Asks for a grace period for what is on the chain, unless a batch of it waits for one already. */
void stook_rcu_chain_kick(struct stook_rcu_cache *cache, uint64_t ticket);
/* An object is on the chain, or in a batch that waits for a grace period. */
bool stook_rcu_chain_holds(struct stook_rcu_cache *cache);
/* Makes the chain, if there is none yet. Registry mutex held. False: no memory. */
bool stook_rcu_chain_new(struct stook_rcu_cache *cache);

/* ---- what a cache leads to ---- */

/* Objects of a sheaf of the cache. */
STOOK_INLINE unsigned stook_rcu_capacity(const struct stook_rcu_cache *cache)
{
        return stook_barns_capacity(cache->front->barns);
}

STOOK_INLINE const char *stook_rcu_name(const struct stook_rcu_cache *or_null)
{
        return or_null ? or_null->front->barns->slabs->name : NULL;
}

#endif
