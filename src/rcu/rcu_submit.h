/*
 * Purpose: what the files of this layer share: how objects get to an RCU implementation and back.
 * Place: rcu layer only.
 */
#ifndef STOOK_RCU_SUBMIT_H
#define STOOK_RCU_SUBMIT_H

#include "barn/barn.h"
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

/* ---- rcu_inside.c: calls of the implementation ---- */

/* Has @done called after a grace period. This thread is not inside a call of an implementation. */
void stook_rcu_call(const struct stook_rcu *rcu, struct stook_rcu_head *head,
                    void (*done)(struct stook_rcu_head *head));
/*
 * A wait for a grace period can end here. @least: 1 for a wait by the implementation's barrier, 2
 * for a wait that only waits (may_wait of <stook/rcu.h>).
 */
bool stook_rcu_may_wait(const struct stook_rcu *rcu, int least);
/* This thread is inside a call of an implementation: the implementation must not be called now. */
bool stook_rcu_is_in_call(void);
/*
 * From here to the end this thread is inside of @what: STOOK_INSIDE_RCU_CALL or _CALLBACK. @frame:
 * the frame of the caller, which is never inlined. Return: for the end.
 */
unsigned stook_rcu_inside_begin(uint8_t what, const void *frame);
void stook_rcu_inside_end(uint8_t what, unsigned place);
/*
 * Around what a callback of ours does. It is the first thing of the library that a forked child may
 * run, so it makes the gate's check. @frame and return: as above.
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

/* ---- rcu_submit.c: the caller is in transit (rcu_transit.h) up to the chain ---- */

/*
 * Gives @sheaf, which is not empty, to the implementation. With @nolock, or inside a call of the
 * implementation, the sheaf goes on the stack of deferred sheaves instead.
 */
void stook_rcu_submit_or_defer(struct stook_sheaf *sheaf, bool nolock);
/* Submits a sheaf that was taken off a slot, in the same way; an empty one goes back at once. */
void stook_rcu_submit_or_free(struct stook_sheaf *sheaf);
/* Submits all deferred sheaves and spans. Not in a nolock call. */
void stook_rcu_submit_deferred_in_transit(void);

/* ---- rcu_chain.c ---- */

/* @object, which has a hidden word, goes on its cache's chain. */
void stook_rcu_chain_put(struct stook_rcu_cache *cache, void *object, bool nolock, uint64_t ticket);
/* Asks for a grace period for what is on the chain, unless a batch of it waits for one already. */
void stook_rcu_chain_kick(struct stook_rcu_cache *cache, uint64_t ticket);
/* An object is on the chain, or in a batch that waits for a grace period. */
bool stook_rcu_chain_holds(struct stook_rcu_cache *cache);
/* Makes the chain, if there is none yet. Registry mutex held. False: no memory. */
bool stook_rcu_chain_new(struct stook_rcu_cache *cache);

/* ---- rcu_backlog.c: how much waits ---- */

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

/* ---- rcu_clock.c: open sheaves get old ---- */

/* The number of the last tick: noted in a sheaf that is opened now. */
uint64_t stook_rcu_tick(void);
/* A sheaf was opened: makes sure that it is submitted some time. May call the implementation. */
void stook_rcu_watch(struct stook_rcu_cache *or_null);

/* ---- what a cache leads to ---- */

/* Objects of a sheaf of the cache. */
STOOK_INLINE unsigned stook_rcu_capacity(const struct stook_rcu_cache *cache)
{
        return stook_barns_capacity(cache->front->below);
}

STOOK_INLINE const char *stook_rcu_name(const struct stook_rcu_cache *or_null)
{
        return or_null ? or_null->front->below->below->name : NULL;
}

#endif
