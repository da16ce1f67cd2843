/*
 * Purpose: what the files of cache_rcu*.c share: how rcu sheaves get to an RCU implementation and back.
 * Place: cache layer only.
 */
#ifndef STOOK_CACHE_RCU_H
#define STOOK_CACHE_RCU_H

#include <stook/rcu.h>
#include "cache/cache.h"

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
/* To the implementation; @nolock, or where it would be re-entered: on the submit stack. @sheaf is not empty. */
void stook_rcu_submit(struct stook_sheaf *sheaf, bool nolock);
/* What lies on the submit stack. Not nolock. */
void stook_rcu_submit_waiting(void);
/* An object of a cache made with STOOK_RCU, by its hidden word. */
void stook_rcu_chain_put(struct stook_cache *cache, void *object, bool nolock);
/* Has a grace period begin for what lies on the chain, if it is not waiting for one already. */
void stook_rcu_chain_kick(struct stook_cache *cache);
/* This thread is inside a call of an implementation: its functions must not be called now. */
bool stook_rcu_is_inside(void);

/* ---- cache_rcu.c ---- */
/* The open sheaf of a cache, or of objects of many, to the implementation. */
void stook_rcu_submit_open(struct stook_cache *or_null);

#endif
