/*
 * Purpose: slabs, spans cut into objects of one size: arrays of objects out (fill) and in (drain).
 * Place: called by barn (refills, flushes) and, for nodes and caches without sheaves, by cache; calls pages.
 * The descriptor, its state word and the transition table are in slab/slab_state.h; here is what the layers
 * above see: a source of objects of one kind.
 *
 * Invariants:
 *  I1 no free list is ever built: fresh objects come from an iterator, only freed ones are linked.
 *  I2 two shared transitions only: take (by whoever detached the slab from its list), push a chain (anybody).
 *  I3 responsibility for listing or releasing a slab is taken in the same compare-and-swap that makes it
 *     necessary (CLAIM).
 * Concurrency: partial lists under one lock for each node and source; who cannot have it uses the node's
 *  pending stack. Everything here may run at any instruction of anything else here.
 * Failure: fill returns fewer objects than asked, having lost none.
 */
#ifndef STOOK_SLAB_H
#define STOOK_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/list.h"
#include "base/lock.h"
#include "base/pending_stack.h"
#include "stat/counter.h"

#define STOOK_SLAB_OBJECTS_MAX 32767

/*
 * Objects a slab should have, within 64 KiB. A slab goes back to the pages when its last object has come back, so few
 * are better where many sizes come and go (malloc's classes: values of drifting sizes, 64 MiB, peak at 216 MiB with 64
 * objects in 32 KiB at least, at 193 with 16 in 16, at 181 with these); many are better where one size is taken in bulk,
 * for a birth costs as much as a batch (512 bytes: 2.7 ns an object with 64, 2.1 with 128).
 */
#define STOOK_SLAB_OBJECTS_FEW  8
#define STOOK_SLAB_OBJECTS_MANY 512

struct stook_span;
struct stook_slabs;

/* What a source is made from. All sizes in bytes. */
struct stook_slabs_args {
        const char *name;                       /* kept: for reports */
        uint32_t  cache_index;                  /* 1..STOOK_CACHES_MAX-1: goes into the pagemap */
        size_t    object_size;
        size_t    align;                        /* power of two, at least 8, at most the page size */
        uint32_t  slab_objects;                 /* in a slab, if it is 64 KiB at most; 0: STOOK_SLAB_OBJECTS_FEW */
        bool      random_order;
        /*
         * What becomes of an empty slab's span, if it is not given to the pages at once; kind TAKEN, `list`, `link` and
         * `user` free to use. Then slabs are kept until shrink.
         */
        void    (*give)(struct stook_slabs *slabs, struct stook_span *span);
        bool      keep_none;                    /* an empty slab goes back to the pages at once */
        bool      link_behind;                  /* a free leaves all bytes of an object alone; with a constructor it does anyway */
        void    (*ctor)(void *object, void *ctor_data);
        void     *ctor_data;
        struct stook_counters *counters;        /* the cache's */
};

/* For each node. */
struct stook_slabs_node {
        struct stook_lock lock;                 /* guards list, partial */
        uint32_t  partial;                      /* lock; slabs on the list. Read racily: a hint */
        struct stook_list list;                 /* lock; slabs with free objects */
        struct stook_pending_stack pending;     /* slabs that should change lists, from who may not wait */
        uint64_t  slabs;                        /* atomic: live slabs of this node */
} STOOK_ALIGNED(STOOK_CACHELINE);

/* A source of objects of one kind. Const after init but for node[]. */
struct stook_slabs {
        uint64_t  magic;                        /* UINT64_MAX / slot_size + 1: see stook_slabs_index */
        uint32_t  slot_size;                    /* bytes from object to object */
        uint32_t  objects;                      /* in a slab of slab_bytes */
        uint32_t  slab_bytes;
        uint32_t  object_size;
        uint32_t  align;
        uint32_t  link_offset;                  /* of the encoded link in a freed object */
        uint32_t  min_partial;                  /* empty slabs kept for each node */
        uint32_t  reserved;                     /* atomic, relaxed: slabs kept for each node, whatever happens */
        uint32_t  cache_index;
        void    (*ctor)(void *object, void *ctor_data);
        void     *ctor_data;
        const uint16_t *sequence;               /* random order: a permutation of 0..objects-1, and behind it the
                                                   position of each object in it; NULL: sequential */
        uint16_t *sequence_memory;              /* kept when the source is made anew */
        uint32_t  sequence_room;                /* objects it has room for */
        const char *name;
        struct stook_counters *counters;
        void    (*give)(struct stook_slabs *slabs, struct stook_span *span);
        struct stook_slabs_node *node;          /* [stook_os_node_count()] */
};

/*
 * @slabs is zeroed memory, or a source that was used before and has no slab left: its memory is used again.
 * Return: 0; -EINVAL: a size or alignment out of bounds; -ENOMEM.
 */
int stook_slabs_init(struct stook_slabs *slabs, const struct stook_slabs_args *args);

/* Slabs on a node's list from which on empty ones are given back. */
static inline uint32_t stook_slabs_kept(const struct stook_slabs *slabs)
{
        uint32_t reserved = __atomic_load_n(&slabs->reserved, __ATOMIC_RELAXED);

        return reserved > slabs->min_partial ? reserved : slabs->min_partial;
}

/* Index of the object at @offset in its slab; *@interior says whether it is not an object's start. */
static inline uint32_t stook_slabs_index(const struct stook_slabs *slabs, uint32_t offset, bool *interior)
{
        /* D. Lemire, O. Kaser, N. Kurz, "Faster remainder by direct computation", 2019: exact for 32-bit values. */
        *interior = offset * slabs->magic > slabs->magic - 1;
        return (uint32_t)(((unsigned __int128)slabs->magic * offset) >> 64);
}

/* Order of the pointers a fill writes. */
#define STOOK_FILL_ASCENDING  0u        /* lowest address of a slab first */
#define STOOK_FILL_FOR_SHEAF  1u        /* so that pops from the end walk a slab upwards */
#define STOOK_FILL_NOLOCK     2u        /* every lock is only tried */
#define STOOK_FILL_THISNODE   4u        /* that node only (of one without memory: the nearest) */

/* Of 1024 fills that find too little on their own node, as many look at other nodes' lists first; 0: none. For tests. */
extern uint32_t stook_slab_defrag_ratio;

/*
 * stook_slab_fill() - up to @n objects
 * Fullest partial slabs first, several in one lock hold, then new slabs.
 * Return: objects written to objects[0..]; fewer than n: no memory.
 */
size_t stook_slab_fill(struct stook_slabs *slabs, unsigned node, size_t n, void **objects, unsigned flags);

/*
 * stook_slab_drain() - objects back into their slabs
 * Groups by slab, one push of a chain for each. The array is reordered. Objects that are not objects of this
 * source, or are free already, are reported (report/) and left out.
 */
void stook_slab_drain(struct stook_slabs *slabs, size_t n, void **objects);

/* True if @object, which lies in a live slab of this source, is an object that was handed out at least once. */
bool stook_slab_object_valid(struct stook_slabs *slabs, const void *object);

/* Gives empty slabs back, sorts partial lists fullest first. Returns slabs left. Takes the locks; not for handlers. */
size_t stook_slabs_shrink(struct stook_slabs *slabs);

/* Gives back the empty slabs that are kept near the list's head, for a cache that went idle. The lock is only tried. */
void stook_slabs_give_kept(struct stook_slabs *slabs, unsigned node);

/*
 * A node keeps as many slabs as hold @n objects from here on, and has @n free objects in them now. 0: none any more.
 * Takes the lock; not for handlers. Return: 0; -ENOMEM: not all could be had, what is there is kept.
 */
int stook_slabs_reserve(struct stook_slabs *slabs, unsigned node, size_t n);

/* Objects out of their slabs (with users and in sheaves), by walking all slabs: quiescent. */
size_t stook_slabs_objects_out(struct stook_slabs *slabs);
size_t stook_slabs_count(const struct stook_slabs *slabs);

/* Calls @each for every object that is out of its slab (quiescent). */
void stook_slabs_for_each_out(struct stook_slabs *slabs, void (*each)(void *object, void *slab, void *data), void *data);

/* Checks every slab's word, links and list membership; reports. Returns faults. Quiescent. */
int stook_slabs_validate(struct stook_slabs *slabs);

/* fork, as for pages (pages/span.h). */
bool stook_slabs_fork_prepare(struct stook_slabs *slabs);
void stook_slabs_fork_parent(struct stook_slabs *slabs);
void stook_slabs_fork_child(struct stook_slabs *slabs, bool whole);
/* After it, once for all sources: lists what vanished threads had detached (not whole: everything). Whole: then fork_parent drops the locks. */
void stook_slabs_fork_mend(bool whole);

#endif
