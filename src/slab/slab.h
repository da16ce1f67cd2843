/*
 * Purpose: slabs, spans cut into objects of one size: arrays of objects out (fill) and in (drain).
 * Place: called by barn (refills, drains, single objects), by cache (bulk calls, and all that
 * creates, tunes and destroys), by home (objects of one node), prefill, limit (shrink), rcu
 * (chains) and debug (objects of the quarantine), and by walk and inspect, which look; calls pages.
 * A slab knows its free objects by one bit each, outside of the objects. The descriptor and the
 * table of transitions are in slab/slab_state.h. This header has what the layers above see: the
 * slabs of a cache.
 *
 * Invariants:
 *  I1 Nothing is written into a free object, and nothing is read from it. A page of a slab becomes
 *     resident when a user writes to one of its objects.
 *  I2 There are two shared transitions: take (by the holder of the lock, or of the part's claim)
 *     and free (by any thread). Each is one compare-and-swap.
 *  I3 The responsibility for listing or releasing a slab is taken in the same compare-and-swap that
 *     makes it necessary (CLAIM).
 * Concurrency: one partial list for each node and cache, under its lock. A thread that cannot have
 *  the lock uses the list's pending stack. Everything here may run at any instruction of anything
 *  else here.
 * Failure: fill returns fewer objects than asked, having lost none.
 */
#ifndef STOOK_SLAB_H
#define STOOK_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/pending_stack.h"
#include "stat/counter.h"

#define STOOK_SLAB_OBJECTS_MAX 4096     /* 64 parts of 64: slab_state.h */

/*
 * Objects a slab should have, within 64 KiB. A slab goes back to the pages when its last object has
 * come back. So few objects are better where many sizes come and go, as in malloc's classes: 64 MiB
 * of values of drifting sizes peak at 216 MiB with at least 64 objects in 32 KiB. They peak at 193
 * MiB with 16 objects in 16 KiB, and at 181 MiB with FEW. Many objects are better where one size is
 * taken in bulk, because a birth costs as much as a batch (512 bytes: 2.7 ns an object with 64, 2.1
 * ns with 128).
 */
#define STOOK_SLAB_OBJECTS_FEW  4
#define STOOK_SLAB_OBJECTS_MANY 512

#define STOOK_NO_OBJECT SIZE_MAX        /* instead of bytes: no live object starts there */

struct stook_span;
struct stook_slab;
struct stook_slabs;
struct stook_heap;

/* What slabs of some caches do otherwise (src/special). Only a shrink releases such slabs. */
struct stook_slabs_special {
        /* Where there are runs: slabs of a new run, @n at most. Those beyond are listed. */
        unsigned (*births)(struct stook_slabs *slabs, unsigned node, size_t n,
                           struct stook_slab **born);
        /* Before a shrink releases empty slabs. */
        void     (*shrink)(struct stook_slabs *slabs);
        /* Held: the shrink may release the slab, if it is empty. */
        bool     (*may_go)(struct stook_slab *slab);
};

/* What the slabs of a cache are made from. All sizes in bytes. */
struct stook_slabs_args {
        const char *name;                       /* kept: for reports */
        uint32_t  cache_index;                  /* 1..STOOK_CACHES_MAX-1: goes into the pagemap */
        size_t    object_size;
        size_t    tail_bytes;                   /* of a stride, behind the object: not the user's */
        bool      keep_first;                   /* the first object of a slab is never handed out */
        size_t    align;                        /* power of two, from 8 to the page size */
        uint32_t  slab_objects;                 /* wanted in a slab; 0: STOOK_SLAB_OBJECTS_FEW */
        bool      random_order;
        /*
         * NULL: an empty slab's span goes to the pages at once. Otherwise this takes the span, and
         * gives it to the pages after a grace period, because readers may still look at its
         * objects. Its kind is TAKEN; `list`, `link` and `use` are free to use. Frees then release
         * no slab, only shrink and destroy do: a free in a handler may not ask for a grace period.
         */
        void    (*give_later)(struct stook_slabs *slabs, struct stook_span *span);
        bool      keep_none;                    /* an empty slab goes back to the pages at once */
        void    (*ctor)(void *object, void *ctor_data);
        void     *ctor_data;
        /* NULL: none. Only with `ctor`. As above, only shrink and destroy release slabs then. */
        void    (*dtor)(void *object, void *ctor_data);
        bool      of_heap;                      /* of a cache of src/heap */
        struct stook_slabs_special *special;    /* or NULL */
        /* Of runs, as in struct stook_slabs; else 0: */
        uint32_t  run_slabs, slab_bytes;
        bool      run_asks;
        struct stook_counters *counters;        /* the cache's */
};

/* For each node. */
struct stook_slabs_node {
        struct stook_lock lock;                 /* guards list, partial */
        uint32_t  partial;                      /* lock; slabs on the list. Read racily: a hint */
        struct stook_list list;                 /* lock; slabs with free objects */
        struct stook_pending_stack pending;     /* slabs with claims of threads without the lock */
        uint64_t  slabs;                        /* atomic: live slabs of this node */
        uint32_t  going;                        /* atomic: of `slabs`, being given back */
} STOOK_ALIGNED(STOOK_CACHELINE);

/* The slabs of a cache. Const after init but for `reserved` and node[]. */
struct stook_slabs {
        uint64_t  magic;                        /* stook_magic_of(stride) */
        uint32_t  stride;                       /* bytes from object to object */
        uint32_t  objects;                      /* in a slab of slab_bytes */
        uint32_t  slab_bytes;
        uint32_t  object_size;
        uint32_t  min_partial;                  /* listed slabs from which on empty ones go */
        uint32_t  reserved;                     /* atomic, relaxed: slabs that every node keeps */
        uint16_t  cache_index;
        uint16_t  run_slabs;                    /* made together; 0: there are no runs */
        bool      is_special;                   /* `special` is used */
        bool      run_asks : 1;                 /* the program prepares each run */
        bool      of_heap : 1;                  /* what slabs take is counted: stook_heap_duties */
        bool      kept_first;                   /* the first object of a slab is kept back */
        bool      in_random_order;              /* else lowest address first */
        /* Atomic, racy maxima: most slabs at once, most objects out of them; noted at births. */
        uint64_t  slabs_peak, objects_peak;
        void    (*ctor)(void *object, void *ctor_data);
        void     *ctor_data;
        /* in_random_order: a permutation of a part's indices, twice. Kept for the next cache. */
        uint8_t  *random;
        const char *name;
        struct stook_counters *counters;
        void    (*give_later)(struct stook_slabs *slabs, struct stook_span *span);
        struct stook_slabs_node *node;          /* [stook_os_node_count()] */
        void    (*dtor)(void *object, void *ctor_data);
        struct stook_slabs_special *special;    /* kept for the next cache; NULL: none was used */
};

/* What src/heap, above, does for memory of heaps. Any thread, any instruction; no lock is held. */
struct stook_heap_duties {
        /* As stook_slab_make, of a cache of a heap. NULL: over a limit, too. */
        struct stook_slab *(*make_slab)(struct stook_slabs *slabs, struct stook_span *span);
        /* It is no slab any more. Its span is the caller's still, and counts as one of @slabs. */
        void (*slab_left)(struct stook_slabs *slabs, struct stook_span *span);
        /* A large object, of a heap or not: as stook_large_resize. It is of its heap no more. */
        void *(*resize)(struct stook_span *span, size_t size);
        void (*left)(struct stook_span *span);
        /*
         * Another object of the heap of @object, which lives; if it is of none, as stook_malloc
         * without errno. @span: of none it is a span. Waits for no other thread.
         */
        void *(*beside)(const void *object, size_t size, bool span);
};
extern const struct stook_heap_duties stook_heap_duties STOOK_HIDDEN;

/* Frees release no slab: for readers, or for the destructor, or because whole runs go. */
static inline bool stook_slabs_only_shrink(const struct stook_slabs *slabs)
{
        return slabs->give_later || slabs->is_special;
}

/* Bytes from object to object. */
uint32_t stook_slabs_stride(const struct stook_slabs_args *args);

/*
 * @slabs is zeroed memory, or it served a cache that is destroyed and has no slab left: its memory
 * is used again.
 * Return: 0; -ERANGE: a size or alignment out of bounds; -ENOMEM.
 */
int stook_slabs_init(struct stook_slabs *slabs, const struct stook_slabs_args *args);

/*
 * Raises the peaks to what the counters say now. Births call it, and readers of statistics. Between
 * two births objects come out of slabs that there are. So a peak that no reader saw may lack some,
 * fewer than a slab has.
 */
void stook_slabs_note_peaks(struct stook_slabs *slabs);

/* Slabs on the list of a node. Without the lock it is a hint. */
static inline uint32_t stook_slabs_partial(const struct stook_slabs *slabs, unsigned node)
{
        return __atomic_load_n(&slabs->node[node].partial, __ATOMIC_RELAXED);
}

/*
 * An empty slab is given back if its node's list is longer than this. So this bounds the list, not
 * the empty slabs: slabs with objects out count, too.
 */
static inline uint32_t stook_slabs_listed_kept(const struct stook_slabs *slabs)
{
        uint32_t reserved = __atomic_load_n(&slabs->reserved, __ATOMIC_RELAXED);

        return reserved > slabs->min_partial ? reserved : slabs->min_partial;
}

/*
 * D. Lemire, O. Kaser, N. Kurz, "Faster remainder by direct computation", 2019: exact for 32-bit
 * values. The least number above 2^64 / stride, so magic * stride is 2^64 + e, and e is 1 to
 * @stride. Multiples of the stride yield multiples of e, all other offsets the magic or more.
 */
static inline uint64_t stook_magic_of(uint32_t stride)
{
        return UINT64_MAX / stride + 1 + !(stride & (stride - 1));
}

/*
 * offset * magic is below it for the starts of a slab's objects, and for no other offset: the
 * number of objects times e. That is at most the bytes of a slab, and so far below any magic.
 */
static inline uint32_t stook_slabs_starts(const struct stook_slabs *slabs)
{
        return slabs->objects * (uint32_t)(slabs->magic * slabs->stride);
}

/* stook_slabs_index, for loops: @magic is the cache's. */
static inline uint32_t stook_index_by_magic(uint64_t magic, uint32_t offset, bool *interior)
{
        unsigned __int128 product = (unsigned __int128)magic * offset;

        *interior = magic * offset >= magic;
        return (uint32_t)(product >> 64);
}

/*
 * Index of the object at @offset in its slab; *@interior says whether it is not an object's start.
 */
static inline uint32_t stook_slabs_index(const struct stook_slabs *slabs, uint32_t offset,
                                         bool *interior)
{
        return stook_index_by_magic(slabs->magic, offset, interior);
}

/* Order of the pointers a fill writes. */
#define STOOK_FILL_ASCENDING  0u        /* lowest address of a slab first */
#define STOOK_FILL_FOR_SHEAF  1u        /* so that pops from the end walk a slab upwards */
#define STOOK_FILL_THISNODE   2u        /* that node only (of one without memory: the nearest) */
#define STOOK_FILL_MAY_ASK    4u        /* memory->in may be called; else such a cache gets none */

/*
 * stook_slab_fill() - up to @n objects
 * Fullest partial slabs first, several in one lock hold, then new slabs.
 * Return: objects written to objects[0..]; fewer than n: no memory.
 */
size_t stook_slab_fill(struct stook_slabs *slabs, unsigned node, size_t n, void **objects,
                       unsigned flags);

/*
 * stook_slab_drain() - objects back into their slabs
 * Those that follow each other in one part go by one compare-and-swap. A pointer that is not an
 * object of this cache, or is free already, is reported (report/) and left out.
 */
void stook_slab_drain(struct stook_slabs *slabs, size_t n, void *const *objects);

/*
 * True if @object, which lies in a live slab of this cache, is an object that is out of its slab.
 * Racy: the answer may be old when the call returns.
 */
bool stook_slab_object_out(struct stook_slabs *slabs, const void *object);

/* Was that object ever handed out, of a cache with a constructor? Racy as above. */
bool stook_slab_object_made(const struct stook_slabs *slabs, const void *object);

/*
 * Gives empty slabs back and sorts partial lists, fullest first. Takes the locks; not for handlers.
 * Return: slabs left.
 */
size_t stook_slabs_shrink(struct stook_slabs *slabs);

/*
 * Gives back the empty slabs that are kept near the list's head, for a cache that is idle. The lock
 * is only tried.
 */
void stook_slabs_give_kept(struct stook_slabs *slabs, unsigned node);

/*
 * @node has @n free objects in its slabs now. From here on every node keeps as many slabs as hold
 * @n objects, for the number is the cache's. 0: no slab is reserved any more. Takes the lock; not
 * for handlers.
 * Return: 0; -ENOMEM: some slabs could not be had, and those that could be are kept.
 */
int stook_slabs_reserve(struct stook_slabs *slabs, unsigned node, size_t n);

/* Objects out of their slabs (with users and in sheaves), by a walk over all slabs. Quiescent. */
size_t stook_slabs_objects_out(struct stook_slabs *slabs);
size_t stook_slabs_count(const struct stook_slabs *slabs);

/* Calls @each for every slab. */
void stook_slabs_for_each(struct stook_slabs *slabs,
                          void (*each)(struct stook_slab *slab, void *data), void *data);
/* Calls @each for every object that is out of its slab (quiescent). */
void stook_slabs_for_each_out(struct stook_slabs *slabs,
                              void (*each)(void *object, void *slab, void *data), void *data);

/*
 * Calls @each for every object that was handed out at least once, of a cache with a constructor;
 * @out: it is out of its slab (quiescent).
 */
void stook_slabs_for_each_made(struct stook_slabs *slabs,
                               void (*each)(void *object, void *slab, bool out, void *data),
                               void *data);

/* fork, as for pages (pages/span.h). */
bool stook_slabs_fork_prepare(struct stook_slabs *slabs);
void stook_slabs_fork_parent(struct stook_slabs *slabs);
void stook_slabs_fork_child(struct stook_slabs *slabs, bool whole);
/*
 * After fork_child, once for all caches: settles the claims of vanished threads. If not @whole, it
 * also lists all slabs anew. If @whole, fork_parent drops the locks afterwards.
 */
void stook_slabs_fork_mend(bool whole);

#endif
