/*
 * Purpose: what the files of cache_rcu*.c share: how rcu sheaves get to an RCU implementation and back.
 * Place: cache layer only.
 */
#ifndef STOOK_CACHE_RCU_H
#define STOOK_CACHE_RCU_H

#include <stook/rcu.h>
#include "cache/cache.h"

struct stook_span;

/* ---- cache_rcu_submit.c ---- */

/* A table of this release with what must be in it. */
bool stook_rcu_is_usable(const struct stook_rcu *rcu);
/* The implementation that a cache (NULL: objects of many caches) uses, in use from here on; NULL: none. */
const struct stook_rcu *stook_rcu_of(struct stook_cache *or_null);
/* The same without using it. */
const struct stook_rcu *stook_rcu_look(struct stook_cache *or_null);

/* The process's, if anything was freed by it. */
const struct stook_rcu *stook_rcu_in_use(void);

/* The rest, up to the barrier: in transit. */
/* The function of slot/slot_rcu.h. */
void stook_rcu_submit_drained(struct stook_sheaf *sheaf);
/* To the implementation; @nolock, or where it would be re-entered: on the submit stack. @sheaf is not empty. */
void stook_rcu_submit(struct stook_sheaf *sheaf, bool nolock);
/* What lies on the submit stack. Not nolock. */
void stook_rcu_submit_waiting(void);
/* An object of a cache made with STOOK_RCU, by its hidden word. */
void stook_rcu_chain_put(struct stook_cache *cache, void *object, bool nolock);
/* Has a grace period begin for what lies on the chain, if it is not waiting for one already. */
void stook_rcu_chain_kick(struct stook_cache *cache);
/* @done after a grace period; not while inside. */
void stook_rcu_call(const struct stook_rcu *rcu, struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *));
/* A wait for a grace period could end here: @least 1 by the implementation's barrier, 2 by just waiting (<stook/rcu.h>). */
bool stook_rcu_may_wait(const struct stook_rcu *rcu, int least);
/* This thread is inside a call of an implementation: its functions must not be called now. */
bool stook_rcu_is_inside(void);

/* ---- cache_rcu_pages.c: type-stable memory ---- */

/* For struct stook_slabs_args. */
void stook_rcu_give_later(struct stook_slabs *slabs, struct stook_span *span);
/* What was given so, to the implementation. In transit, not inside, not nolock. */
void stook_rcu_submit_spans(void);

/* ---- cache_rcu_backlog.c: how much waits ---- */

/* Bytes that a sheaf's objects keep from being used: booked when it is submitted, unbooked before they are freed. */
size_t stook_rcu_bytes_of(const struct stook_sheaf *sheaf);
void stook_rcu_book(size_t bytes);
void stook_rcu_unbook(size_t bytes);
/*
 * Less waits than the limit, or (not @nolock, and where that can end) so it is after a wait. Caches made with
 * STOOK_RCU are let in anyway; that is reported once.
 */
bool stook_rcu_has_room(struct stook_cache *or_null, bool nolock);

/* ---- cache_rcu_step.c: open sheaves get old ---- */

/* What a round takes at least; for tests. */
extern uint32_t stook_rcu_round_ms;
/* Now, for sheaves that are opened. */
uint64_t stook_rcu_round(void);
/* A sheaf was opened: sees to it that it is submitted some time. May call the implementation. */
void stook_rcu_watch(struct stook_cache *or_null);

/* Objects of a sheaf of the cache. */
STOOK_INLINE unsigned stook_rcu_capacity(const struct stook_cache *cache)
{
        return stook_barns_capacity(&cache->barns);
}

#endif
