/*
 * Purpose: frees that wait for readers. What the layers above see of this layer.
 * Place: called by cache (frees, barriers, destroy) and by life (fork, maintenance, limits).
 *
 * An object goes this way:
 *   open      rcu_free.c puts it into the open rcu sheaf of the current slot (rcu_open.c).
 *   transit   the free that fills the sheaf takes it off the slot. From before that until the sheaf
 *             is with the RCU implementation, the free is counted as in transit (rcu_transit.c).
 *   submit    the sheaf goes to the implementation as one head (rcu_submit.c). A call that must not
 *             call the implementation puts the sheaf on a stack for the next call that may.
 *   free      after the grace period the sheaf is disposed of (stook_slot_dispose): a full one goes
 *             to a barn as it is where its objects have one home. Otherwise it is drained.
 * A sheaf that no free fills is taken off by a clock (rcu_open.c), by a barrier (rcu_barrier.c),
 * or when the cache is emptied. An object for which there is no sheaf waits on a chain of its cache
 * (rcu_free.c), if it has a hidden word. The bytes that wait are bounded (rcu_submit.c).
 *
 * "Mixed": objects of caches without sheaves, and large objects of malloc, share a sheaf for each
 * slot, on line 0. Where a function of this layer takes `or_null`, NULL stands for mixed objects.
 */
#ifndef STOOK_RCU_INTERNAL_H
#define STOOK_RCU_INTERNAL_H

#include <stook/rcu.h>
#include "slot/slot.h"

struct stook_span;
struct stook_rcu_chain;

/* What this layer knows of a cache. */
struct stook_rcu_cache {
        struct stook_front *front;      /* const */
        const struct stook_rcu *own;    /* atomic: rcu_use.c M2; NULL: the process's */
        uint32_t offset;                /* const: of the cache's line in each slot */
        uint32_t hidden_offset;         /* const: of an object's hidden word; 0: it has none */
        bool     used;                  /* atomic: rcu_use.c M1; something was freed by RCU */
        bool     accounted;             /* const: its objects may be charged to groups */
        bool     watched;               /* const: the layer above wants to see each free */
        /* Atomic: rcu_free.c M2; NULL: no cache of this index had a hidden word yet. */
        struct stook_rcu_chain *chain;
};

/* What this layer asks of the layers above it. Defined in free_rcu/free_rcu.c. */
struct stook_rcu_duties {
        /*
         * Frees @n objects of any caches, and large objects of malloc. No reader sees them any
         * more.
         */
        void (*free_mixed)(size_t n, void **objects);
        /* Takes the charge off @n objects of an accounted cache that are about to become free. */
        void (*uncharge)(struct stook_rcu_cache *cache, size_t n, void *const *objects);
        /* Of a watched cache: readers have left @n objects that are about to become free. */
        void (*left)(struct stook_rcu_cache *cache, size_t n, void *const *objects);
};
extern const struct stook_rcu_duties stook_rcu_duties;

/* ---- rcu_use.c: implementations, and the caches that use them ---- */

/* @rcu is a table of this release, with its mandatory functions. */
bool stook_rcu_is_usable(const struct stook_rcu *rcu);
/*
 * A cache is made: registry mutex held, its slots and barns ready, no object of it out.
 * @own: its implementation, or NULL for the process's. @hidden_offset: as in the struct.
 * False: no memory.
 */
bool stook_rcu_cache_init(struct stook_rcu_cache *cache, struct stook_front *front,
                          const struct stook_rcu *own, uint32_t hidden_offset, bool accounted);
/* The cache is destroyed: nothing of it waits. */
void stook_rcu_cache_end(struct stook_rcu_cache *cache);

/* ---- rcu_free.c ---- */

/*
 * Frees @object, which is known to be of the cache, after a grace period. @nolock: neither calls
 * the implementation nor waits. Return: 0; -ENOTSUP: there is no implementation; -EAGAIN: there is
 * no place to note the object in, or too much waits. On an error the object stays the caller's.
 * Signal-safe with @nolock.
 */
int stook_rcu_free(struct stook_rcu_cache *cache, void *object, bool nolock);
/*
 * Of @n objects that are known to be of the cache, the first so many are put into sheaves that they
 * fill, and submitted. Returns how many. The others are for stook_rcu_free.
 */
size_t stook_rcu_free_sheaves(struct stook_rcu_cache *cache, size_t n, void *const *objects);
/* stook_rcu_free() for a large object of malloc of @bytes. */
int stook_rcu_free_large(void *object, size_t bytes, bool nolock);

/* ---- rcu_barrier.c ---- */

/*
 * Waits until what was given to stook_rcu_free of this cache before is free. May wait for readers.
 */
void stook_rcu_barrier_of(struct stook_rcu_cache *cache);

/* ---- rcu_open.c ---- */

/*
 * Takes the open sheaves of the cache off all slots and submits them. Waits; not for handlers.
 * True: all were submitted, but for those of stuck slots (evacuate/evacuate.h I3). False: sheaves
 * are still open, because membarrier is refused; or they were taken off, and must not be touched.
 */
bool stook_rcu_cache_evacuate(struct stook_rcu_cache *cache);

/*
 * Submits sheaves that have been open for long, and what calls left that must not call the
 * implementation. May call the implementation. Not for handlers.
 */
void stook_rcu_maintain(void);

/* ---- rcu_submit.c ---- */

/* Submits what calls left that must not call the implementation. Not for handlers. */
void stook_rcu_submit_deferred(void);
/*
 * The empty slab @span of a type-stable cache goes back to the pages after a grace period. Any
 * instruction, with locks held. The span's `list`, `link` and `use` are this layer's until then.
 */
void stook_rcu_give_span(struct stook_rcu_cache *cache, struct stook_span *span);

/* At start: the limit in bytes that stook_rcu_set_limit(0) sets. */
void stook_rcu_set_default_limit(uint64_t bytes);
/*
 * When the first implementation comes, if that was not said: an eighth of the memory there is.
 * Reads files of /proc and /sys.
 */
void stook_rcu_find_default_limit(void);
/* What may wait, in bytes; 0: not found out yet. */
uint64_t stook_rcu_limit_bytes(void);

/* ---- rcu_transit.c ---- */

/* In a child of a fork: of all threads only this one, with what it interrupted, is left. */
void stook_rcu_fork_child(void);

#endif
