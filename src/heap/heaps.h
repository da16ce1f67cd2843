/*
 * Purpose: heaps: malloc for objects that end together. docs/HEAPS.md says how, and which thread
 * writes which field.
 * Place: heap_objects.c (allocations, frees) stands on malloc's parts; heap_life.c has the list of
 *  heaps, and what they count; heap_end.c empties them, with heap_drop.c for their slabs, which
 *  heap_spans.c knows. Malloc and slab call up, by stook_heap_duties (slab/slab.h).
 * Invariants:
 *  I1 the memory of a heap serves heaps for ever, so a stale pointer to a heap leads to one.
 *  I2 `bytes` is the sum of the heap's slabs and large spans. It may be more while one of them is
 *     being made or given back.
 *  I3 a class whose line is not that of no cache has a cache, and the line is that cache's.
 * Concurrency: any thread allocates and frees. The registry mutex guards the life of a heap and the
 *  making of its caches. M1: the release of a line pairs with the dependency of the section's loads
 *  on it: the line was filled before. M2: the release of an index pairs with the acquire of a slow
 *  call: the cache is published.
 */
#ifndef STOOK_HEAPS_H
#define STOOK_HEAPS_H

#include <stook/heap.h>
#include "malloc/malloc.h"

/*
 * Objects above it are spans: a slab would have several of their size, of which a small heap uses
 * one.
 */
#define STOOK_HEAP_CLASS_MAX ((size_t)32 << 10)

enum stook_heap_state {
        STOOK_HEAP_FREE,                /* never made, or destroyed */
        STOOK_HEAP_LIVE,
        STOOK_HEAP_ENDING,              /* being emptied; or some of its memory could not be had */
};

/* Entries of the first piece of the table of a heap's spans; each next piece has twice as many. */
#define STOOK_HEAP_PIECE  16
#define STOOK_HEAP_PIECES 28

/* heap_spans.c: which spans the heap has. */
struct stook_heap_spans {
        uint64_t *piece[STOOK_HEAP_PIECES]; /* atomic, M1 there; kept for the next heap */
        uint64_t  top;                  /* atomic: tag, 1 + the entry that was left last; 0: none */
        uint32_t  used;                 /* atomic: entries used since the heap was made, or reset */
};

struct stook_heap {
        /* By class: atomic, registry mutex, M1: the line of its cache, or of no cache. */
        uintptr_t line[STOOK_CLASSES];
        /* By class: atomic, registry mutex, M2: the index of its cache; 0: not made. */
        uint16_t index[STOOK_CLASSES];
        uint32_t state;                 /* atomic, registry mutex: enum stook_heap_state */
        uint16_t group;                 /* const while live; 0: none */
        char     name[STOOK_HEAP_NAME_BYTES];   /* const while live */
        struct stook_heap *next;        /* of all that there ever were; const once listed */
        struct stook_list idle;         /* registry mutex: while FREE */
        /* Atomic, by any thread. */
        uint64_t limit STOOK_ALIGNED(STOOK_CACHELINE);  /* UINT64_MAX: none */
        uint64_t bytes;                 /* I2 */
        uint64_t peak;
        uint64_t large_bytes;           /* of `bytes` */
        uint64_t refusals, spilled;     /* stook_heap_get_stats() */
        struct stook_heap_spans spans;
};

/* Atomic: the newest heap; heaps are pushed, never removed. */
extern struct stook_heap *stook_heaps STOOK_HIDDEN;

/* The cache of a class, if the heap has it. */
STOOK_INLINE struct stook_cache *stook_heap_class(const struct stook_heap *heap, unsigned class)
{
        unsigned index = __atomic_load_n(&heap->index[class], __ATOMIC_ACQUIRE);       /* M2 */

        return STOOK_LIKELY(index != 0) ? stook_cache_at(index) : NULL;
}

STOOK_INLINE bool stook_heap_is_live(const struct stook_heap *heap)
{
        return STOOK_LIKELY(__atomic_load_n(&heap->state, __ATOMIC_RELAXED) == STOOK_HEAP_LIVE);
}

/* ---- heap_life.c ---- */

/*
 * The registry mutex, for a call on @heap that is not NULL. Return: 0: held; -EDEADLK: in a
 * callback that holds it; -EINVAL: the heap is not live. Both are reported.
 */
int stook_heap_lock(struct stook_heap *heap, const char *refusal);
STOOK_COLD void stook_heap_report_destroyed(const struct stook_heap *heap);
/* Registry mutex held: the next object of the class comes from @cache. NULL: from none. */
void stook_heap_set_class(struct stook_heap *heap, unsigned class, struct stook_cache *cache);
/* Registry mutex held: the heap is as the program has destroyed it. */
void stook_heap_give(struct stook_heap *heap);
bool stook_heap_take_bytes(struct stook_heap *heap, size_t bytes);
void stook_heap_give_bytes(struct stook_heap *heap, size_t bytes);
/* Of a large object: `bytes` and `large_bytes`. */
bool stook_heap_take_large(struct stook_heap *heap, size_t bytes);
void stook_heap_give_large(struct stook_heap *heap, size_t bytes);

/* ---- heap_objects.c ---- */

/* The heap that @object is of, which lives; NULL: of none. */
struct stook_heap *stook_object_heap(const void *object);
/* stook_heap_duties (slab/slab.h) */
void *stook_heap_beside(const void *object, size_t size, bool span);
void *stook_heap_resize_large(struct stook_span *span, size_t size);
void stook_heap_large_left(struct stook_span *span);
/* What the hot path left over. @how: ERRNO, ZERO, a size. NULL: no memory, or over a limit. */
void *stook_heap_miss(struct stook_heap *heap, size_t size, uint64_t how);

/* ---- heap_spans.c ---- */

/* @span is the heap's from here on. False: no memory. */
bool stook_heap_note_span(struct stook_heap *heap, struct stook_span *span);
void stook_heap_forget_span(struct stook_heap *heap, const struct stook_span *span);
/* What was at entry @at is at @to now. */
void stook_heap_span_moved(struct stook_heap *heap, uint32_t at, struct stook_span *to);
/* Spans that come meanwhile may be left out. @each may forget its span. */
void stook_heap_for_each_span(struct stook_heap *heap,
                              void (*each)(struct stook_span *span, void *data), void *data);
/* The heap has no span. Not beside other calls. */
void stook_heap_forget_all(struct stook_heap *heap);

/* ---- heap_drop.c ---- */

/*
 * All slabs and large objects of a heap go back to the pages, whatever is alive. Its caches are
 * closed, the registry mutex is held. False: a thread has a claim on a slab, or a lock, and does
 * not let it go.
 */
bool stook_heap_drop(struct stook_heap *heap);

#endif
