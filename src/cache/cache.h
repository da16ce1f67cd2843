/*
 * Purpose: a cache, composed of one part for each layer, and the table of all caches.
 * Invariants:
 *  I1 the cache of index i lives at stook_caches + i, for ever; index 0 is no cache. Indices of destroyed
 *     caches are used again, after all slots were drained.
 *  I2 front.offset is the first field: inlined callers read it.
 * Concurrency: const after publication but for what the layers say; state under the registry mutex.
 */
#ifndef STOOK_CACHE_INTERNAL_H
#define STOOK_CACHE_INTERNAL_H

#include <stook/cache.h>
#include "barn/barn.h"
#include "slab/slab.h"
#include "slot/slot.h"
#include "stat/counter.h"

enum stook_cache_state { STOOK_CACHE_FREE, STOOK_CACHE_MAKING, STOOK_CACHE_LIVE, STOOK_CACHE_DYING };

struct stook_cache {
        struct stook_front    front;    /* I2 */
        uint64_t              magic;    /* slabs.magic again: a free touches this line only */
        uint32_t              index;
        uint32_t              slot_size;
        uint64_t              flags;
        uint32_t              object_size, align;
        uint32_t              state;    /* registry mutex; read racily */
        uint32_t              references; /* registry mutex: merged users */
        char                  name[64];
        uint64_t              born;     /* order of creation */
        struct stook_barns    barns;
        struct stook_slabs    slabs;
        struct stook_counters counters;
} STOOK_ALIGNED(1024);

_Static_assert(offsetof(struct stook_cache, front.offset) == 0, "layout v1");
_Static_assert(sizeof(struct stook_cache) == 1024, "stook_cache_at is a shift");

/* [STOOK_CACHES_MAX], reserved at start, committed as caches are made. */
extern struct stook_cache *stook_caches;

STOOK_INLINE struct stook_cache *stook_cache_at(unsigned index)
{
        return stook_caches + index;
}

/* ---- cache_create.c ---- */
/* As stook_cache_create, but at a fixed index, with a capacity that is not raised by the default. For malloc's classes. */
struct stook_cache *stook_cache_create_at(unsigned index, const char *name, size_t size, size_t align,
                                          unsigned capacity, unsigned full_limit);
/* Default sheaf capacity by slot size (spec 3.1), rounded to the sheaf's memory. */
unsigned stook_cache_default_capacity(size_t slot_size);

/* ---- cache_registry.c ---- */
/* Reserves the table. First indices are kept for malloc's classes. False: no memory. */
bool stook_caches_start(unsigned reserved_indices);
unsigned stook_caches_bound(void);      /* highest index in use + 1 */
/* Mutex of create, destroy, find, for_each; a futex lock that waits. Not for handlers. */
void stook_registry_lock(void);
void stook_registry_unlock(void);

/* ---- cache_free.c ---- */
/* Report of a free that is none: finds out what @object is and says so. */
STOOK_COLD void stook_cache_free_misuse(struct stook_cache *or_null, const void *object);
/* on_double for the slot layer. */
void stook_cache_free_double(struct stook_front *front, void *object);

#endif
