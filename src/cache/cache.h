/*
 * Purpose: a cache, composed of one part for each layer, and the table of all caches.
 * Invariants:
 *  I1 the cache of index i lives at stook_caches + i, for ever; index 0 is no cache. The index of a
 *     destroyed cache is used again, after all its slots have been evacuated.
 *  I2 front.line is the first field: inlined callers read it.
 *  I3 front.config is even while sheaves may be installed, by a cache that has none yet, too; odd
 *     for caches without sheaves, and for those that are being emptied for good. It never takes an
 *     earlier value again, so that an install that was prepared for an earlier life of the index
 *     misses.
 * Concurrency: const after publication but for what the layers say; state under the registry
 *  mutex.
 */
#ifndef STOOK_CACHE_INTERNAL_H
#define STOOK_CACHE_INTERNAL_H

/* A flag of ours: one of malloc's caches, or of a heap's. The program does not destroy it. */
#define STOOK_CACHE_OF_MALLOC (UINT64_C(1) << 63)

/* Of a cache's name, with the 0 at its end. */
#define STOOK_NAME_BYTES 64

#include <stook/cache.h>
#include "barn/barn.h"
#include "rcu/rcu.h"
#include "slab/slab.h"
#include "slot/slot.h"
#include "special/special.h"
#include "stat/counter.h"

enum stook_cache_state {
        STOOK_CACHE_FREE, STOOK_CACHE_MAKING, STOOK_CACHE_LIVE, STOOK_CACHE_DYING
};

/* What the maker of a cache wants to be asked (cache_limit.h). Const but for what is marked. */
struct stook_limit {
        uint64_t most;          /* atomic: objects that callers may own; 0: any number */
        uint64_t owned;         /* atomic: objects that callers own; only if there is a limit */
        uint64_t low;
        void   (*on_low)(struct stook_cache *cache, size_t left, void *data);
        size_t (*reclaim)(struct stook_cache *cache, size_t wanted, void *data);
        void    *data;
        uintptr_t reclaiming;   /* atomic: stook_self of the thread in `reclaim`; 0: none */
};

/* What the slow calls of a cache go through (cache_slow.h). */
enum stook_edge {
        STOOK_EDGE_NONE,        /* nothing */
        STOOK_EDGE_ACCOUNT,     /* accounted, and not watched: src/account */
        STOOK_EDGE_WATCH,       /* watched, accounted or not: src/watch */
        STOOK_EDGE_GONE,        /* destroyed: reports */
};

struct stook_cache {
        struct stook_front    front;    /* I2 */
        uint64_t              magic;    /* slabs.magic again: a free touches this line only */
        uint32_t              index;
        uint32_t              starts;   /* likewise: stook_slabs_starts() */
        uint64_t              flags;
        uint32_t              object_size; /* registry mutex (merging raises it); read racily */
        uint32_t              align;
        int64_t               charge;   /* const: bytes of an accounted object; 0: not accounted */
        uint8_t               state;    /* registry mutex; read racily */
        uint8_t               watch;    /* const: enum stook_watch, or'ed; 0: none */
        /* Registry mutex: kept for the line of the sheaves, if that is another one; 0: none. */
        uint16_t              second_index;
        uint32_t              references; /* registry mutex: merged users */
        uint16_t              account_word; /* const: words from an object to the group's */
        uint8_t               edge;     /* enum stook_edge; const while the cache lives */
        uint8_t               sealed;   /* const: malloc's class, if the watch says SEAL */
        uint32_t              debug_modes; /* const: debug->flags, for readers outside */
        uint64_t              born;     /* order of creation */
        struct stook_list     all;      /* registry mutex: living caches by age, or idle indices */
        struct stook_barns    barns;
        struct stook_slabs    slabs;
        /* const: the user's; slabs.ctor may be another one. NULL: none */
        void                (*ctor)(void *object, void *ctor_data);
        struct stook_counters counters;
        struct stook_rcu_cache rcu;
        char                  short_name[16]; /* a longer one: struct stook_seldom */
} STOOK_ALIGNED(STOOK_CACHELINE);

_Static_assert(offsetof(struct stook_cache, front.line) == 0, "layout v1");
_Static_assert(sizeof(struct stook_cache) == 448, "a program may have many caches");

/*
 * What few caches use. It lies below the table of caches, that of index i at -1 - i, so that its
 * pages are touched only for caches that use it. Zeros until then.
 */
struct stook_seldom {
        struct stook_limit  limit;
        /* src/watch: const; only if `debug_modes` are not 0. The next cache keeps it. */
        struct stook_debug *debug;
        struct stook_alias *aliases;    /* registry mutex: names of merged users */
        char                name[STOOK_NAME_BYTES]; /* if it is too long for short_name */
        uint64_t            counters[STOOK_COUNTERS_FAR_COUNT]; /* the cache's counters.far */
};

/* [STOOK_CACHES_MAX], reserved at start, committed as caches are made, up to stook_caches_used. */
extern struct stook_cache *stook_caches STOOK_HIDDEN;
/* Atomic (cache_registry.c M1): highest index ever in use + 1; 0 before the first cache. */
extern uint32_t stook_caches_used STOOK_HIDDEN;

/* One more name of a cache. Its memory is an alias for ever. */
struct stook_alias {
        struct stook_alias *next;
        char name[STOOK_NAME_BYTES];
};

STOOK_INLINE struct stook_cache *stook_cache_at(unsigned index)
{
        return stook_caches + index;
}

/* Of any index: NULL if no cache lives there. There is none at 0. */
STOOK_INLINE struct stook_cache *stook_cache_alive_at(unsigned index)
{
        struct stook_cache *cache = stook_cache_at(index);
        bool alive = index < __atomic_load_n(&stook_caches_used, __ATOMIC_ACQUIRE) &&
                     __atomic_load_n(&cache->state, __ATOMIC_ACQUIRE) == STOOK_CACHE_LIVE;

        return STOOK_LIKELY(alive) ? cache : NULL;
}

STOOK_INLINE struct stook_seldom *stook_cache_seldom(const struct stook_cache *cache)
{
        return (struct stook_seldom *)stook_caches - 1 - cache->index;
}

/* The word behind an object of an accounted cache (account/account.h). */
#define STOOK_ACCOUNT_BYTES sizeof(uint64_t)

/* Where it lies behind an object of @size bytes. */
STOOK_INLINE size_t stook_account_offset(size_t size)
{
        return (size + STOOK_ACCOUNT_BYTES - 1) & ~(STOOK_ACCOUNT_BYTES - 1);
}

STOOK_INLINE bool stook_cache_is_accounted(const struct stook_cache *cache)
{
        return cache->flags & STOOK_CACHE_ACCOUNT;
}

/*
 * I3: the generation that follows. Without sheaves it is odd: no sheaf is installed under it.
 * Registry mutex held.
 */
STOOK_INLINE uint32_t stook_cache_next_generation(const struct stook_cache *cache, bool sheaves)
{
        return ((cache->front.config + 2) & ~1u) | !sheaves;
}

/*
 * From here on no sheaf is installed, so an evacuation leaves the slots without any. Registry mutex
 * held until stook_cache_allow_installs, which gets the return: the generation until then.
 */
STOOK_INLINE uint32_t stook_cache_forbid_installs(struct stook_cache *cache)
{
        uint32_t generation = cache->front.config;

        __atomic_store_n(&cache->front.config, generation | 1, __ATOMIC_SEQ_CST);
        return generation;
}

/* I3: under an even generation sheaves were installed, so a new one begins; an odd one stays. */
STOOK_INLINE void stook_cache_allow_installs(struct stook_cache *cache, uint32_t generation)
{
        __atomic_store_n(&cache->front.config, generation & 1 ? generation : generation + 2,
                         __ATOMIC_RELEASE);
}

/* "" before it has one. */
STOOK_INLINE const char *stook_cache_name(const struct stook_cache *cache)
{
        return cache->slabs.name ? cache->slabs.name : "";
}

/*
 * magic and starts of each cache once more, close together: all that malloc's free needs to
 * know of a cache, 16 bytes instead of a cache line. Written before the cache is published, const
 * then. Index 0 is no cache, and its line never has room. Its shape lets every offset pass, so that
 * a free of what is no slab's misses at the jump that frees take where main is full. Another jump,
 * hardly ever taken, would spoil a processor's prediction of the frees around it.
 */
extern struct stook_shape {
        uint64_t magic, starts;
} stook_shapes[STOOK_CACHES_MAX] STOOK_HIDDEN;

/* The heap that a cache is of; NULL: of none. Written as above. */
extern struct stook_heap *stook_cache_heaps[STOOK_CACHES_MAX] STOOK_HIDDEN;

/* What options say about all caches; set by life before the first cache. */
struct stook_cache_options {
        int capacity;           /* of every cache that has sheaves at all; -1: by its size */
        bool tiny;              /* no sheaves, no empty slabs kept; overrides capacity */
        int merge;              /* 1: every cache that may; 0: none; -1: as their flags say */
        uint32_t watch;         /* enum stook_watch: of every cache that is made from now on */
        uint64_t flags;         /* likewise: STOOK_CACHE_RANDOM_ORDER, or 0 */
};
extern struct stook_cache_options stook_cache_options;

/* ---- cache_create.c ---- */
/* What a cache is to be. */
struct stook_cache_plan {
        const char *name;
        size_t   size, align;
        uint64_t flags;
        int      capacity;              /* -1: by size, @at_least as a minimum */
        unsigned at_least;
        uint32_t slab_objects;
        unsigned full_limit, empty_limit;
        bool     grows;                 /* capacity and limits may change by themselves */
        uint32_t watch;                 /* enum stook_watch */
        uint64_t debug;                 /* STOOK_DEBUG_* */
        void   (*ctor)(void *object, void *ctor_data);
        void    *ctor_data;
        void   (*dtor)(void *object, void *ctor_data);
        struct stook_slabs_memory memory;
        struct stook_limit limit;
        const struct stook_rcu *rcu;
        struct stook_heap *heap;
};

/*
 * Makes it. The registry mutex is held. @index 0: any. Return: 0; -ERANGE; -EAGAIN; -ENOMEM.
 */
int stook_cache_make(unsigned index, const struct stook_cache_plan *plan,
                     struct stook_cache **made);
/*
 * As stook_cache_create, for malloc's classes; the default does not raise the capacity. With an
 * index: the cache there, which is made if there is none. Such a call may run in a handler: it
 * returns NULL, too, if another thread holds the registry. Index 0: any; waits for the registry.
 */
struct stook_class_args {
        unsigned index;
        const char *name;
        size_t size, align;
        unsigned capacity, full_limit;
        uint64_t flags;
        uint32_t watch;         /* enum stook_watch */
        uint64_t debug;         /* STOOK_DEBUG_* */
        struct stook_slabs_memory memory;
};
struct stook_cache *stook_cache_create_at(const struct stook_class_args *args);
/* Const after the start: what watched classes have behind their objects, in their strides; or 0. */
extern uint32_t stook_malloc_seal_bytes STOOK_HIDDEN;
/* The same: which entry point made an object is kept, and compared (stook_watch_duties). */
extern bool stook_malloc_pairs STOOK_HIDDEN;
/* Default sheaf capacity by stride, rounded to the sheaf's memory. */
unsigned stook_cache_default_capacity(size_t stride);

/* ---- cache_registry.c ---- */
/* Reserves the table. First indices are kept for malloc's classes. False: no memory. */
bool stook_caches_start(unsigned reserved_indices);
unsigned stook_caches_bound(void);      /* stook_caches_used */
/* Mutex of create, destroy, find, for_each; a futex lock that waits. Not for handlers. */
bool stook_registry_lock(const char *refusal) __attribute__((warn_unused_result));
/*
 * For a caller that has made the gate's check. False: this thread holds the mutex, in a callback of
 * a walk, a trim or a reserve, and would wait for ever. Reported as @refusal.
 */
bool stook_registry_may_wait(const char *refusal);
#define STOOK_REFUSED(call) call " in a callback that must not take the list of caches"
void stook_registry_wait(void);         /* after the gate's check, or within the start */
bool stook_registry_try(void);          /* any instruction; false: a thread holds it */
/* The same for a caller that is not jumped out of, and whose locks below may wait meanwhile. */
bool stook_registry_try_alone(void);
void stook_registry_unlock(void);
/* fork: false: not to be had in a second, or this thread holds it: a handler on top of a holder. */
bool stook_registry_fork_prepare(void);
bool stook_registry_is_mine(void);      /* this thread holds the mutex */
/*
 * Drops it, if a malloc of this thread held it and was jumped out of (base/lock.h I4); makes the
 * lists anew.
 */
void stook_registry_recover(void);
void stook_registry_fork_child(bool whole);
/* One of malloc's? Without the mutex. */
bool stook_registry_is_class(const struct stook_cache *cache);

/* The rest: registry mutex held. */
/*
 * An index that is free, its memory readable, state MAKING. @index 0: any. Return: 0; -EAGAIN;
 * -ENOMEM.
 */
int stook_registry_take(unsigned index, struct stook_cache **cache);
void stook_registry_give(struct stook_cache *cache);
void stook_registry_publish(struct stook_cache *cache);
void stook_registry_withdraw(struct stook_cache *cache);
/* Next living cache by age; NULL: the end. @cache NULL: the first. */
struct stook_cache *stook_registry_next(struct stook_cache *cache);
/* One more name for a cache, unless it has that name. False: no memory. */
bool stook_registry_add_alias(struct stook_cache *cache, const char *name);

/* ---- cache_tune.c ---- */
/*
 * stook_cache_tune() of the living cache of an index that was born as @born; -ENOENT: there is no
 * such cache, or no more, and nothing is reported. Not in a callback of stook_cache_for_each.
 */
int stook_cache_tune_at(unsigned index, uint64_t born, const struct stook_tuning *tuning);

/* ---- cache_destroy.c ---- */
/*
 * Evacuates slots, empties barns, gives empty slabs back. Registry mutex held. False: membarrier
 * refused, or a holder of a locked slot did not come back.
 */
bool stook_cache_empty(struct stook_cache *cache);
/* Has a cache that was emptied prefilled sheaves on loan? Registry mutex held. */
bool stook_cache_has_lent(const struct stook_cache *cache);
/*
 * The registry mutex, for a call on @cache. Return: 0: held; -EDEADLK: see
 * stook_registry_may_wait; -EINVAL: the cache was destroyed, which is reported.
 */
int stook_cache_lock(struct stook_cache *cache, const char *refusal);
STOOK_COLD void stook_cache_report_destroyed(const struct stook_cache *cache);

/* The end of a destroy: of a cache that is DYING, closed and empty. Registry mutex held. */
void stook_cache_give_up(struct stook_cache *cache);

/* ---- cache_calls.c ---- */
/* Report of a free that is none: finds out what @object is and says so. */
STOOK_COLD void stook_cache_free_misuse(struct stook_cache *or_null, const void *object);
/* on_double for the slot layer. */
void stook_cache_free_double(struct stook_front *front, void *object);

/*
 * What malloc does with an object that is of no cache: a span of its own. Bulk frees that name no
 * cache, and frees after a grace period, meet such objects, and call no layer above.
 */
struct stook_large_duties {
        /*
         * Frees the object that begins there. @how: cache_slow.h. False: no live one does, and
         * nothing was done.
         */
        bool (*free)(void *object, uint64_t how);
};
extern const struct stook_large_duties stook_large_duties;

#endif
