/*
 * bench/none/none_slab.h - slabs of the older kind: a free list through the objects, and a word
 *
 * Purpose: what the kernel's older front end stood on. The library's slabs keep a bit for each
 * object and no list, so the rival has slabs of its own: spans of the library's page layer, found
 * by its pagemap, cut like the library's slabs. A link is encoded as cheaply as in the kernel:
 * place of the next object ^ key of the slab ^ byte-swapped address of the link.
 * Place: none_miss.c and none_bulk.c call it. The CPU's list itself is in none_slot.h.
 *
 * The word, changed by compare-and-swap, is the kernel's pair of free list and counters in 64 bits:
 *      first object of the slab's list (16 bits) | objects in use (16) | objects (16) | flags
 * Objects on a CPU's own list count as in use. So objects - inuse of them are on the slab's list.
 *
 * States, by flags:
 *   full    none     no object on the list; on no list of slabs
 *   listed  LISTED   on the node's list
 *   frozen  FROZEN   a CPU has it, or a thread that is bringing it to a CPU or to the node
 *
 * Invariants:
 *  N1 Any thread may push objects. Only the thread that has the slab frozen takes objects off its
 *     list. So a taker's first object stays on the list until its compare-and-swap, and no tag is
 *     needed.
 *  N2 The push that makes a full slab a partial one freezes it in the same compare-and-swap: the
 *     slab is that thread's. A push that does not freeze the slab, and does not empty it under the
 *     lock, is the thread's last touch: the slab may be released after it.
 *  N3 LISTED changes under the node's lock only. A listed slab is taken off the list for its
 *     release under the lock: by the push that brought its last object back, or by a shrink that
 *     finds it empty. A frozen one is released by the thread that has it.
 *  N4 No lock is held over a call into the page layer.
 * Concurrency: every change of the word is acquire-release: a push publishes its links to the
 *  taker, and all uses of a slab's objects come before its release. The rest is constant while the
 *  slab lives.
 * Simpler than the library's slabs: one node, a lock that is waited for, no handlers, no fork.
 */
#ifndef NONE_SLAB_H
#define NONE_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/list.h"
#include "base/lock.h"
#include "pages/span.h"

#define NONE_NODE 0                     /* the only one that this front end knows */

/* ---- links ---- */

/* A place counts 8-byte units from the slab's start: 16 bits name every object. */
#define NONE_PLACE_SHIFT 3
#define NONE_PLACE_NONE  0xffffu
#define NONE_SLAB_BYTES_MAX ((size_t)NONE_PLACE_NONE << NONE_PLACE_SHIFT)

STOOK_INLINE uint64_t none_link_mask(const void *word, uint64_t key)
{
        return key ^ __builtin_bswap64((uintptr_t)word);
}

STOOK_INLINE void none_link_write(void *object, uint64_t link_offset, uint64_t key, uint64_t place)
{
        uint64_t *word = (uint64_t *)((char *)object + link_offset);

        __atomic_store_n(word, place ^ none_link_mask(word, key), __ATOMIC_RELAXED);
}

/* The place, or more than NONE_PLACE_NONE: no link. */
STOOK_INLINE uint64_t none_link_read(const void *object, uint64_t link_offset, uint64_t key)
{
        const uint64_t *word = (const uint64_t *)((const char *)object + link_offset);

        return __atomic_load_n(word, __ATOMIC_RELAXED) ^ none_link_mask(word, key);
}

/* ---- a source of objects ---- */

struct none_slabs {
        uint64_t  link_offset;
        uint32_t  index;                /* of the cache in the pagemap */
        uint32_t  stride;               /* bytes from object to object */
        uint32_t  objects;              /* in a slab */
        uint32_t  slab_bytes;
        uint32_t  min_partial;          /* with as many on the list, empty slabs are given back */
        const uint16_t *sequence;       /* random order: a permutation of the objects; or NULL */
        struct stook_lock lock STOOK_ALIGNED(STOOK_CACHELINE);  /* guards partial and list */
        uint32_t  partial;              /* slabs on the list; read racily as a hint */
        struct stook_list list;
        uint64_t  slabs;                /* atomic: live ones */
};

/* In the span's descriptor. */
struct none_slab {
        uint64_t  word;
        uint64_t  key;                  /* of links; drawn anew for each life of a slab */
        struct none_slabs *slabs;
};
_Static_assert(sizeof(struct none_slab) <= STOOK_SPAN_SLAB_BYTES, "it lives in its span's");
_Static_assert(offsetof(struct stook_span, slab) + offsetof(struct none_slab, slabs) ==
               STOOK_CACHELINE, "word and key are in the first line, with start, link and list");

STOOK_INLINE struct none_slab *none_slab_of(struct stook_span *span)
{
        return (struct none_slab *)(void *)span->slab;
}

STOOK_INLINE struct stook_span *none_slab_span(const struct none_slab *slab)
{
        char (*in_span)[STOOK_SPAN_SLAB_BYTES] = (char (*)[STOOK_SPAN_SLAB_BYTES])(uintptr_t)slab;

        return stook_container_of(in_span, struct stook_span, slab);
}

STOOK_INLINE struct none_slab *none_slab_on_list(struct stook_list *e)
{
        return none_slab_of(stook_container_of(e, struct stook_span, list));
}

STOOK_INLINE char *none_slab_base(const struct none_slab *slab)
{
        return (char *)none_slab_span(slab)->start;
}

STOOK_INLINE void *none_object_at(const struct none_slab *slab, uint64_t place)
{
        return none_slab_base(slab) + (place << NONE_PLACE_SHIFT);
}

STOOK_INLINE uint64_t none_place_of(const struct none_slab *slab, const void *object)
{
        return (uint64_t)((const char *)object - none_slab_base(slab)) >> NONE_PLACE_SHIFT;
}

STOOK_INLINE uint64_t none_next_of(const struct none_slab *slab, uint64_t place)
{
        return none_link_read(none_object_at(slab, place), slab->slabs->link_offset, slab->key);
}

/* ---- the word ---- */

#define NONE_LISTED (UINT64_C(1) << 48)
#define NONE_FROZEN (UINT64_C(1) << 49)
#define NONE_FLAGS  (NONE_LISTED | NONE_FROZEN)

STOOK_INLINE uint32_t none_word_head(uint64_t word)    { return word & 0xffff; }
STOOK_INLINE uint32_t none_word_inuse(uint64_t word)   { return word >> 16 & 0xffff; }
STOOK_INLINE uint32_t none_word_objects(uint64_t word) { return word >> 32 & 0xffff; }

STOOK_INLINE uint64_t none_word(uint64_t head, uint32_t inuse, uint32_t objects, uint64_t flags)
{
        return flags | (uint64_t)objects << 32 | (uint64_t)inuse << 16 | head;
}

STOOK_INLINE uint64_t none_slab_word(const struct none_slab *slab)
{
        return __atomic_load_n(&slab->word, __ATOMIC_ACQUIRE);
}

STOOK_INLINE bool none_slab_cas(struct none_slab *slab, uint64_t *old, uint64_t new)
{
        return STOOK_LIKELY(__atomic_compare_exchange_n(&slab->word, old, new, false,
                                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

/* Frozen: all of the slab's list, or NONE. It stays frozen. */
STOOK_INLINE uint64_t none_slab_take_list(struct none_slab *slab)
{
        uint64_t w = none_slab_word(slab), new;

        do {
                if (none_word_head(w) == NONE_PLACE_NONE)
                        return NONE_PLACE_NONE;
                new = none_word(NONE_PLACE_NONE, none_word_objects(w), none_word_objects(w),
                                w & NONE_FLAGS);
        } while (!none_slab_cas(slab, &w, new));
        return none_word_head(w);
}

/* Frozen, and its CPU is done with it. False: objects came back meanwhile, it is frozen still. */
STOOK_INLINE bool none_slab_thaw_full(struct none_slab *slab)
{
        uint64_t w = none_slab_word(slab);

        while (none_word_head(w) == NONE_PLACE_NONE)
                if (none_slab_cas(slab, &w, w & ~NONE_FROZEN))
                        return true;
        return false;
}

enum none_free_answer {
        NONE_FREED,                     /* the slab is not to be touched any more */
        NONE_FREED_FROZEN,              /* it was full; now the caller has it frozen (N2) */
        NONE_FREE_TOO_MANY,             /* fewer objects are out; nothing changed */
};

/* @count objects, linked from the one at place @first to @last, whose link is written here. */
enum none_free_answer none_slab_free(struct none_slab *slab, uint64_t first, void *last,
                                     uint32_t count);

/* ---- none_slab.c ---- */

/* A new slab, frozen; the list of its objects, from *@first on, is the caller's. NULL: refused. */
struct none_slab *none_slab_birth(struct none_slabs *slabs, uint64_t *first);

/* The caller's frozen slab to the node's list; or to the pages, if it is empty and surplus. */
void none_slab_to_node(struct none_slab *slab);

/*
 * Slabs of the node's list with @want free objects in all, or as many as there are, at most
 * NONE_BATCH. The fullest of those at the list's head come first. They are frozen and the caller's.
 * Return: how many.
 */
#define NONE_BATCH 8
int none_slabs_from_node(struct none_slabs *slabs, size_t want, struct none_slab **batch);

/* Gives empty slabs back. */
void none_slabs_shrink(struct none_slabs *slabs);

/* ---- none_check.c ---- */

/*
 * Quiescent, and no CPU has anything. Return: faults found in words, lists and the node's list, and
 * slabs with objects out. They are told on stderr.
 */
unsigned none_slabs_validate(struct none_slabs *slabs);

#endif
