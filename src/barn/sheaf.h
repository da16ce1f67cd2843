/*
 * Purpose: the sheaf, an array of object pointers; and what its sole owner may do with it.
 * The array is the only thing slot and barn layers share: the barn need not know where a sheaf was.
 *
 * States, one at a time: main of a slot (any size); spare of a slot (any size); in a barn's full stack
 * (size == capacity) or empty stack (size 0); in the hands of one thread; lent to a user; rcu: open
 * for frees by RCU, or waiting for a grace period; free memory in the pool.
 *
 * Invariants:
 *  I1 capacity and cache are fixed while the memory serves one cache; the memory is type-stable: stale
 *     pointers to it may be read for ever, and `link` is at one offset in all sheaves.
 *  I2 pushes into the sheaf = size + pops - moved, where moved = objects its owners filled in minus those they
 *     flushed out. So the words of all sheaves of a cache give exact counts of pops and pushes.
 *  I3 the zero-capacity sheaf is read-only memory, empty for pop and full for push, never a spare, never in a barn.
 *  I4 a lent sheaf's link points at itself, with the loan's terms in the low bits; no other sheaf's does.
 *  I5 on machines of several nodes bound is 0: the sections that are inlined, which cannot tell on which node an
 *     object lies, push nowhere. The library's own look at the node first, and push up to the capacity.
 *  I6 a sheaf that is rcu says so in bound. It was empty and had its counts folded when it became one; what is in it
 *     came by free_rcu, and counts neither as pushed nor as filled in. link and moved_node are the implementation's.
 * Concurrency: word: the one section that commits on the slot, or the sole owner; read racily by statistics.
 *  Everything else: sole owner.
 */
#ifndef STOOK_BARN_SHEAF_H
#define STOOK_BARN_SHEAF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stook/layout.h>
#include "base/compiler.h"
#include "base/tagged_stack.h"
#include "stat/counter.h"

struct stook_sheaf {
        uint64_t word;                  /* size | pops << 16; see Concurrency */
        uint32_t bound;                 /* const: up to where the hot path pushes: capacity; I5. rcu: I6 */
        uint16_t cache_index;           /* const, I1; 0: free memory in the pool, or objects of many caches */
        uint16_t capacity;              /* const, I1 */
        struct stook_link link;         /* barn and pool; lent: I4 */
        int64_t  moved_node;            /* owner; I2: moved << 8 | node */
        void    *objects[];
};

_Static_assert(offsetof(struct stook_sheaf, word) == STOOK_SHEAF_WORD, "layout v1");
_Static_assert(offsetof(struct stook_sheaf, bound) == STOOK_SHEAF_CAPACITY, "layout v1");
#define STOOK_SHEAF_ROOM 14             /* of `capacity`, for sections in assembly */
_Static_assert(offsetof(struct stook_sheaf, capacity) == STOOK_SHEAF_ROOM, "sections");
_Static_assert(offsetof(struct stook_sheaf, link.next) == STOOK_SHEAF_LENT, "layout v1");
_Static_assert(offsetof(struct stook_sheaf, objects) == STOOK_SHEAF_OBJECTS, "layout v1");

extern const struct stook_sheaf stook_sheaf_zero;       /* I3; the pointer is passed around without const */

STOOK_INLINE unsigned stook_sheaf_size(const struct stook_sheaf *s)
{
        return (unsigned)(__atomic_load_n(&s->word, __ATOMIC_RELAXED) & 0xffff);
}

/* Atomic, for those who look at a sheaf that may go to another cache meanwhile (slot_miss.c). */
STOOK_INLINE unsigned stook_sheaf_capacity(const struct stook_sheaf *s)
{
        return __atomic_load_n(&s->capacity, __ATOMIC_RELAXED);
}

STOOK_INLINE bool stook_sheaf_full(const struct stook_sheaf *s)
{
        return stook_sheaf_size(s) == stook_sheaf_capacity(s);
}

STOOK_INLINE int64_t stook_sheaf_moved(const struct stook_sheaf *s)
{
        return __atomic_load_n(&s->moved_node, __ATOMIC_RELAXED) >> 8;
}

/* The node it was made for. */
STOOK_INLINE unsigned stook_sheaf_node(const struct stook_sheaf *s)
{
        return (unsigned)(__atomic_load_n(&s->moved_node, __ATOMIC_RELAXED) & 0xff);
}

/* I6: in bound, with the node. */
#define STOOK_SHEAF_RCU 0x80000000u

/* Sole owner: the size becomes @size; objects were filled in (or flushed out) by the owner. */
STOOK_INLINE void stook_sheaf_set_size(struct stook_sheaf *s, unsigned size)
{
        int64_t moved = (int64_t)size - (int64_t)stook_sheaf_size(s);

        __atomic_store_n(&s->moved_node, s->moved_node + moved * 256, __ATOMIC_RELAXED);
        __atomic_store_n(&s->word, (s->word & ~UINT64_C(0xffff)) | size, __ATOMIC_RELAXED);
}

/* ---- lent to a user: I4. Atomic, for stale poppers of a stack may read the link. ---- */

#define STOOK_LOAN_LIBRARY 1u           /* the library must see each object taken; layout v1: the inlined call looks at it */
#define STOOK_LOAN_ZERO    2u           /* for this: with STOOK_LOAN_LIBRARY */
#define STOOK_LOAN_TERMS   7u

STOOK_INLINE void stook_sheaf_lend(struct stook_sheaf *s, unsigned terms)
{
        __atomic_store_n(&s->link.next, (struct stook_link *)((uintptr_t)&s->link | terms), __ATOMIC_RELAXED);
}

STOOK_INLINE unsigned stook_sheaf_loan_terms(const struct stook_sheaf *s)
{
        return (unsigned)(uintptr_t)__atomic_load_n(&s->link.next, __ATOMIC_RELAXED) & STOOK_LOAN_TERMS;
}

STOOK_INLINE bool stook_sheaf_is_lent(const struct stook_sheaf *s)
{
        uintptr_t next = (uintptr_t)__atomic_load_n(&s->link.next, __ATOMIC_RELAXED);

        return (next & ~(uintptr_t)STOOK_LOAN_TERMS) == (uintptr_t)&s->link;
}

/* False: it was not lent, or somebody else took it back. */
STOOK_INLINE bool stook_sheaf_take_back(struct stook_sheaf *s)
{
        struct stook_link *next = __atomic_load_n(&s->link.next, __ATOMIC_RELAXED);

        return stook_sheaf_is_lent(s) &&
               __atomic_compare_exchange_n(&s->link.next, &next, NULL, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* ---- sheaf_pool.c: memory of sheaves, by power-of-two size, shared by all caches ---- */

/* An empty sheaf for a cache. NULL: no memory. Counts sheaf_alloc. */
struct stook_sheaf *stook_sheaf_new(unsigned cache_index, unsigned capacity, unsigned node, struct stook_counters *counters);
/* Back to the pool: must be empty; its counts are folded into @counters. Counts sheaf_free. */
void stook_sheaf_delete(struct stook_sheaf *sheaf, struct stook_counters *counters);

/*
 * Sole owner: an empty sheaf becomes an rcu sheaf; and after the grace period an ordinary one, whose objects count
 * free_rcu_sheaf.
 */
void stook_sheaf_begin_rcu(struct stook_sheaf *sheaf, struct stook_counters *counters);
void stook_sheaf_end_rcu(struct stook_sheaf *sheaf, struct stook_counters *counters);
/* A sheaf of objects that belong to many caches, or to none: it is nobody's in all statistics. NULL: no memory. */
struct stook_sheaf *stook_sheaf_new_mixed(unsigned capacity);
/* Its objects have gone. */
void stook_sheaf_end_mixed(struct stook_sheaf *sheaf);

struct stook_sheaf_sums {
        uint64_t pops, pushes;          /* without what was folded */
        uint64_t rcu;                   /* objects in rcu sheaves */
        uint64_t objects;               /* in all sheaves of the cache */
        uint64_t sheaves;
};
/* Sums over all sheaf memory that belongs to a cache. Exact when quiescent. */
void stook_sheaf_sum(unsigned cache_index, struct stook_sheaf_sums *sums);
/* The same for all caches in one walk: sums[index]. */
void stook_sheaf_sum_all(struct stook_sheaf_sums *sums, unsigned count);
/* Every sheaf of a cache (quiescent): fork child, validation. */
void stook_sheaf_for_each(unsigned cache_index, void (*each)(struct stook_sheaf *sheaf, void *data), void *data);

/* Most objects a sheaf may hold so that its memory is a power of two and it holds at least @wanted. */
unsigned stook_sheaf_round_capacity(unsigned wanted);

/* Test hook: every n-th stook_sheaf_new fails; 0: none. */
extern uint32_t stook_sheaf_fail_every;

#endif
