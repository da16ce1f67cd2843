/*
 * Purpose: a cache, composed of one part for each layer, and the table of all caches.
 * Invariants:
 *  I1 the cache of index i lives at stook_caches + i, for ever; index 0 is no cache. Indices of destroyed
 *     caches are used again, after all slots were drained.
 *  I2 front.line is the first field: inlined callers read it.
 *  I3 front.config is even while sheaves may be installed; odd for caches without sheaves and for those that
 *     are being emptied for good. It never takes an earlier value again, so that an install that was prepared
 *     for an earlier life of the index misses.
 * Concurrency: const after publication but for what the layers say; state under the registry mutex.
 */
#ifndef STOOK_CACHE_INTERNAL_H
#define STOOK_CACHE_INTERNAL_H

/* A flag of ours: one of malloc's, which nobody may destroy. */
#define STOOK_CACHE_OF_MALLOC (UINT64_C(1) << 63)

#include <stook/cache.h>
#include <stook/rcu.h>
#include "barn/barn.h"
#include "slab/slab.h"
#include "slot/slot.h"
#include "stat/counter.h"

enum stook_cache_state { STOOK_CACHE_FREE, STOOK_CACHE_MAKING, STOOK_CACHE_LIVE, STOOK_CACHE_DYING };

/* Objects freed by free_rcu that found no sheaf, linked by their hidden words (STOOK_RCU). */
struct stook_rcu_chain {
        struct stook_pending_stack waiting;
        struct stook_link *batch;       /* busy's owner: what waits for a grace period */
        uint32_t busy;                  /* atomic: a batch does */
        struct stook_rcu_head head;
};

struct stook_cache {
        struct stook_front    front;    /* I2 */
        uint64_t              magic;    /* slabs.magic again: a free touches this line only */
        uint32_t              index;
        uint32_t              last_offset; /* of the last object in a slab of full size */
        uint64_t              flags;
        uint32_t              object_size; /* registry mutex (merging raises it); read by anybody */
        uint32_t              align;
        uint32_t              state;    /* registry mutex; read racily */
        uint32_t              references; /* registry mutex: merged users */
        uint32_t              second_index; /* registry mutex: kept for the line of an accounted cache's sheaves; 0: none */
        uint64_t              born;     /* order of creation */
        char                  name[64];
        struct stook_alias   *aliases;  /* registry mutex: names of merged users */
        struct stook_list     all;      /* registry mutex: living caches by age, or idle indices */
        struct stook_barns    barns;
        struct stook_slabs    slabs;
        struct stook_counters counters;
        const struct stook_rcu *rcu;    /* NULL: the process's */
        uint32_t              rcu_used; /* atomic: there was such a free */
        struct stook_rcu_chain rcu_chain;
} STOOK_ALIGNED(STOOK_CACHELINE);

_Static_assert(offsetof(struct stook_cache, front.line) == 0, "layout v1");

/* [STOOK_CACHES_MAX], reserved at start, committed as caches are made. */
extern struct stook_cache *stook_caches STOOK_HIDDEN;

STOOK_INLINE struct stook_cache *stook_cache_at(unsigned index)
{
        return stook_caches + index;
}

/*
 * magic and last_offset of each cache once more, close together: all that malloc's free needs to know of a cache,
 * 16 bytes instead of a cache line. Written before the cache is published, const then.
 */
extern struct stook_shape {
        uint64_t magic, last_offset;
} stook_shapes[STOOK_CACHES_MAX] STOOK_HIDDEN;

/* What options say about all caches; set by life before the first cache. */
struct stook_cache_options {
        int capacity;                   /* of every cache that has sheaves at all; -1: by its size */
        bool tiny;                      /* no sheaves, no empty slabs kept; stronger than capacity */
        int merge;                      /* 1: every cache that may; 0: none; -1: those made with STOOK_MERGE */
};
extern struct stook_cache_options stook_cache_options;

/* ---- cache_create.c ---- */
/*
 * As stook_cache_create, with a capacity that is not raised by the default. For malloc's classes: at a fixed index, if
 * there is none yet, and in handlers, too: NULL also where the registry is somebody's; or (0) at any.
 */
struct stook_cache *stook_cache_create_at(unsigned index, const char *name, size_t size, size_t align,
                                          unsigned capacity, unsigned full_limit, uint64_t flags);
/* Default sheaf capacity by slot size, rounded to the sheaf's memory. */
unsigned stook_cache_default_capacity(size_t slot_size);

/* ---- cache_registry.c ---- */
/* Reserves the table. First indices are kept for malloc's classes. False: no memory. */
bool stook_caches_start(unsigned reserved_indices);
unsigned stook_caches_bound(void);      /* highest index ever in use + 1 */
/* Mutex of create, destroy, find, for_each; a futex lock that waits. Not for handlers. */
void stook_registry_lock(void);
void stook_registry_wait(void);         /* the same for who has made the fork check, or is the start */
bool stook_registry_try(void);          /* any instruction; false: somebody has it */
void stook_registry_unlock(void);
/* fork: false: not to be had in a second, or this thread has it (a handler on top of a holder). */
bool stook_registry_fork_prepare(void);
bool stook_registry_is_mine(void);      /* this thread has the mutex */
void stook_registry_fork_child(bool whole);
bool stook_registry_is_class(const struct stook_cache *cache);  /* one of malloc's; without the mutex */

/* The rest: registry mutex held. */
/* An index nobody uses, its memory readable, state MAKING. @index 0: any. Return: 0; -ENFILE; -ENOMEM. */
int stook_registry_take(unsigned index, struct stook_cache **cache);
void stook_registry_give(struct stook_cache *cache);
void stook_registry_publish(struct stook_cache *cache);
void stook_registry_withdraw(struct stook_cache *cache);
/* Next living cache by age; NULL: the end. @cache NULL: the first. */
struct stook_cache *stook_registry_next(struct stook_cache *cache);
/* One more name for a cache. False: no memory. */
bool stook_registry_add_alias(struct stook_cache *cache, const char *name);

/* ---- cache_destroy.c ---- */
/* Empties slots and barns, gives empty slabs back. Registry mutex held. False: membarrier refused. */
bool stook_cache_empty(struct stook_cache *cache);

/* ---- cache_rcu_backlog.c ---- */
/* At start: what stook_rcu_limit(0) means. */
void stook_rcu_set_default_limit(uint64_t bytes);
/* When the first implementation comes, if that was not said: an eighth of the memory there is. Reads files. */
void stook_rcu_find_default_limit(void);

/* ---- cache_rcu_step.c ---- */
/* Submits what has been waiting for a full sheaf for long, or lies where handlers left it. May call the implementation. */
void stook_rcu_step(void);
/* The latter only, and the pages of type-stable caches. Not for handlers. */
void stook_rcu_hand_in(void);

/* ---- cache_free.c ---- */
/* Report of a free that is none: finds out what @object is and says so. */
STOOK_COLD void stook_cache_free_misuse(struct stook_cache *or_null, const void *object);
/* By the pagemap: an object of @cache may start there, so it may be pushed. */
bool stook_cache_owns(const struct stook_cache *cache, const void *object);
/* on_double for the slot layer. */
void stook_cache_free_double(struct stook_front *front, void *object);

#endif
