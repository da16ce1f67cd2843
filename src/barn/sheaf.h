/*
 * Purpose: the sheaf, an array of object pointers, and what its sole owner may do with it.
 * The array is all that the slot and barn layers share: the barn need not know where a sheaf was.
 *
 * States, one at a time: main of a slot (any size); spare of a slot (any size); in a barn's full
 * stack (size == capacity) or empty stack (size 0); in the hands of one thread; lent to a user;
 * rcu: open for frees by RCU, or waiting for a grace period; free memory in the pool.
 *
 * Invariants:
 *  I1 capacity and cache are fixed while the memory serves one cache; the memory is type-stable:
 *     a stale pointer to it may be read for ever, and `link` is at one offset in all sheaves.
 *  I2 pushes into the sheaf = size + pops - moved, where moved = objects its owners filled in minus
 *     those they flushed out. So the words of all sheaves of a cache give exact counts of pops and
 *     pushes.
 *  I3 the zero-capacity sheaf is read-only memory, empty for pop and full for push, never a spare,
 *     never in a barn.
 *  I4 a lent sheaf's `terms` point at itself, with the loan's terms in the low bits; no other
 *     sheaf's word there does.
 *  I5 an rcu sheaf (open or waiting) has STOOK_SHEAF_RCU where another sheaf has its bound. It was
 *     empty and its counts were folded when it became one. Its objects came by free_rcu, and count
 *     neither as pushed nor as filled in. While it waits, the RCU implementation owns the last two
 *     words of the header.
 *
 * The header by state. Each accessor below says for which states it is. The last two columns are
 * the last two words of the header:
 *   owned    bound: capacity      link                        moved_node
 *   lent     bound: capacity      terms (I4)                  moved_node
 *   open     rcu_node (I5)        link                        round
 *   waiting  rcu_node (I5)        link while deferred, then both are the implementation's head
 * Owned is every state but the other three: main, spare, in a barn, in the hands of one thread, in
 * the pool. Open is also a sheaf that was taken off its slot and is not submitted yet.
 * Concurrency: word: the one section that commits on the slot writes it, or the sole owner;
 *  statistics read it racily. Everything else: the sole owner.
 */
#ifndef STOOK_BARN_SHEAF_H
#define STOOK_BARN_SHEAF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stook/layout.h>
#include "barn/sheaf_word.h"
#include "base/compiler.h"
#include "base/tagged_stack.h"
#include "stat/counter.h"

struct stook_sheaf {
        uint64_t word;                  /* sheaf_word.h; see Concurrency */
        union {
                uint32_t bound;         /* owned, lent: the hot path pushes up to it: capacity */
                uint32_t rcu_node;      /* open, waiting: STOOK_SHEAF_RCU | node */
        };
        uint16_t cache_index;           /* const, I1; 0: free memory, or objects of many caches */
        uint16_t capacity;              /* const, I1 */
        union {
                struct {
                        struct stook_link link; /* barn, pool, or a list of its owner's */
                        int64_t moved_node;     /* owner; I2: moved << 8 | node */
                } owned;
                struct {
                        struct stook_link *terms;       /* atomic: I4 */
                        int64_t moved_node;             /* as while owned */
                } lent;
                struct {
                        struct stook_link link; /* once it was taken off its slot */
                        uint64_t round;         /* atomic: rcu's clock when it was opened */
                } open;
                union {
                        struct stook_link link; /* deferred: not with the implementation yet */
                        void *head[2];          /* the implementation's: struct stook_rcu_head */
                } waiting;
        };
        void    *objects[];
};

_Static_assert(offsetof(struct stook_sheaf, word) == STOOK_SHEAF_WORD, "layout v1");
_Static_assert(offsetof(struct stook_sheaf, bound) == STOOK_SHEAF_BOUND, "layout v1");
#define STOOK_SHEAF_CAPACITY 14         /* of `capacity`, for sections in assembly */
_Static_assert(offsetof(struct stook_sheaf, capacity) == STOOK_SHEAF_CAPACITY, "sections");
_Static_assert(offsetof(struct stook_sheaf, lent.terms) == STOOK_SHEAF_LENT, "layout v1");
_Static_assert(offsetof(struct stook_sheaf, objects) == STOOK_SHEAF_OBJECTS, "layout v1");
/* I1. */
#define STOOK_SHEAF_LINK offsetof(struct stook_sheaf, owned.link)
_Static_assert(offsetof(struct stook_sheaf, lent.terms) == STOOK_SHEAF_LINK &&
               offsetof(struct stook_sheaf, open.link) == STOOK_SHEAF_LINK &&
               offsetof(struct stook_sheaf, waiting.link) == STOOK_SHEAF_LINK &&
               offsetof(struct stook_sheaf, waiting.head) == STOOK_SHEAF_LINK,
               "a stale popper reads a link of any state");

/* I3. Its pointer is passed on without const. */
extern const struct stook_sheaf stook_sheaf_zero;

STOOK_INLINE unsigned stook_sheaf_size(const struct stook_sheaf *s)
{
        return (unsigned)(__atomic_load_n(&s->word, __ATOMIC_RELAXED) & 0xffff);
}

/* Atomic: a miss reads it of sheaves that may go to another cache meanwhile (slot_pair.h). */
STOOK_INLINE unsigned stook_sheaf_capacity(const struct stook_sheaf *s)
{
        return __atomic_load_n(&s->capacity, __ATOMIC_RELAXED);
}

STOOK_INLINE bool stook_sheaf_full(const struct stook_sheaf *s)
{
        return stook_sheaf_size(s) == stook_sheaf_capacity(s);
}

/* ---- owned, or lent ---- */

#define STOOK_SHEAF_NODE_BITS 8         /* of moved_node */
#define STOOK_SHEAF_NODE_MASK ((1 << STOOK_SHEAF_NODE_BITS) - 1)

STOOK_INLINE int64_t stook_sheaf_moved(const struct stook_sheaf *s)
{
        return __atomic_load_n(&s->owned.moved_node, __ATOMIC_RELAXED) >> STOOK_SHEAF_NODE_BITS;
}

/* The node it was made for. */
STOOK_INLINE unsigned stook_sheaf_node(const struct stook_sheaf *s)
{
        return (unsigned)(__atomic_load_n(&s->owned.moved_node, __ATOMIC_RELAXED) &
                          STOOK_SHEAF_NODE_MASK);
}

/* Sole owner: @moved objects were moved (I2), and it was made for @node. */
STOOK_INLINE void stook_sheaf_set_moved(struct stook_sheaf *s, int64_t moved, unsigned node)
{
        __atomic_store_n(&s->owned.moved_node, moved * (1 << STOOK_SHEAF_NODE_BITS) | node,
                         __ATOMIC_RELAXED);
}

/* Sole owner: the size becomes @size; objects were filled in (or flushed out) by the owner. */
STOOK_INLINE void stook_sheaf_set_size(struct stook_sheaf *s, unsigned size)
{
        int64_t moved = (int64_t)size - (int64_t)stook_sheaf_size(s);

        __atomic_store_n(&s->owned.moved_node,
                         s->owned.moved_node + moved * (1 << STOOK_SHEAF_NODE_BITS),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&s->word, (s->word & ~UINT64_C(0xffff)) | size, __ATOMIC_RELAXED);
}

/* ---- open for frees by RCU, or waiting: I5 ---- */

#define STOOK_SHEAF_RCU 0x80000000u

/* In any state: is it an rcu sheaf? Racy, but for the sole owner. */
STOOK_INLINE bool stook_sheaf_is_rcu(const struct stook_sheaf *s)
{
        return __atomic_load_n(&s->rcu_node, __ATOMIC_RELAXED) & STOOK_SHEAF_RCU;
}

/* Open only. The sole owner, before the sheaf is on a slot. */
STOOK_INLINE void stook_sheaf_set_round(struct stook_sheaf *s, uint64_t round)
{
        __atomic_store_n(&s->open.round, round, __ATOMIC_RELAXED);
}

/*
 * Open only. Racy: sheaf memory is type-stable, so the round of a sheaf that has just been taken
 * off is only wrong.
 */
STOOK_INLINE uint64_t stook_sheaf_round(const struct stook_sheaf *s)
{
        return __atomic_load_n(&s->open.round, __ATOMIC_RELAXED);
}

/* Waiting only: the two words that the RCU implementation gets; and back. */
STOOK_INLINE void *stook_sheaf_head(struct stook_sheaf *s)
{
        return s->waiting.head;
}

STOOK_INLINE struct stook_sheaf *stook_sheaf_of_head(void *head)
{
        return (struct stook_sheaf *)(void *)((char *)head - STOOK_SHEAF_LINK);
}

/* ---- lent to a user: I4. Atomic, for stale poppers of a stack may read the link. ---- */

/* The library must see each object that is taken. Layout v1: the inlined call tests it. */
#define STOOK_LOAN_LIBRARY 1u
#define STOOK_LOAN_ZERO    2u           /* to zero them; with STOOK_LOAN_LIBRARY */
#define STOOK_LOAN_TERMS   7u

STOOK_INLINE void stook_sheaf_lend(struct stook_sheaf *s, unsigned terms)
{
        __atomic_store_n(&s->lent.terms, (struct stook_link *)((uintptr_t)&s->lent | terms),
                         __ATOMIC_RELAXED);
}

STOOK_INLINE unsigned stook_sheaf_loan_terms(const struct stook_sheaf *s)
{
        return (unsigned)(uintptr_t)__atomic_load_n(&s->lent.terms, __ATOMIC_RELAXED) &
               STOOK_LOAN_TERMS;
}

STOOK_INLINE bool stook_sheaf_is_lent(const struct stook_sheaf *s)
{
        uintptr_t terms = (uintptr_t)__atomic_load_n(&s->lent.terms, __ATOMIC_RELAXED);

        return (terms & ~(uintptr_t)STOOK_LOAN_TERMS) == (uintptr_t)&s->lent;
}

/* False: it was not lent, or another thread took it back. */
STOOK_INLINE bool stook_sheaf_take_back(struct stook_sheaf *s)
{
        struct stook_link *terms = __atomic_load_n(&s->lent.terms, __ATOMIC_RELAXED);

        return stook_sheaf_is_lent(s) &&
               __atomic_compare_exchange_n(&s->lent.terms, &terms, NULL, false, __ATOMIC_ACQ_REL,
                                           __ATOMIC_RELAXED);
}

/* ---- sheaf_pool.c: memory of sheaves, by power-of-two size, shared by all caches ---- */

/*
 * An empty sheaf for a cache, from the memory of a node. @capacity: objects, 1 to
 * STOOK_SHEAF_CAPACITY_MAX. NULL: no memory. Counts sheaf_alloc.
 */
struct stook_sheaf *stook_sheaf_new(unsigned cache_index, unsigned capacity, unsigned node,
                                    struct stook_counters *counters);
/* An empty sheaf back to the pool; its counts are folded into @counters. Counts sheaf_free. */
void stook_sheaf_delete(struct stook_sheaf *sheaf, struct stook_counters *counters);

/*
 * Sole owner: an empty sheaf becomes an rcu sheaf. After the grace period it becomes an ordinary
 * one again, and its objects count free_rcu_sheaf.
 */
void stook_sheaf_begin_rcu(struct stook_sheaf *sheaf, struct stook_counters *counters);
void stook_sheaf_end_rcu(struct stook_sheaf *sheaf, struct stook_counters *counters);
/*
 * A sheaf of objects that belong to many caches, or to none. It belongs to no cache in all
 * statistics. NULL: no memory.
 */
struct stook_sheaf *stook_sheaf_new_mixed(unsigned capacity);
/* After its objects were freed: back to the pool. */
void stook_sheaf_end_mixed(struct stook_sheaf *sheaf);

struct stook_sheaf_sums {
        uint64_t pops, pushes;          /* without what was folded */
        uint64_t rcu;                   /* objects in rcu sheaves */
        uint64_t objects;               /* in all sheaves of the cache */
        uint64_t sheaves;
};
/* Sums over all sheaf memory that belongs to a cache. Exact when quiescent. */
void stook_sheaf_sum(unsigned cache_index, struct stook_sheaf_sums *sums);
/* One sheaf's share of the sums. @sums: struct stook_sheaf_sums. */
void stook_sheaf_sum_in(struct stook_sheaf *sheaf, void *sums);
/* Every sheaf that serves a cache. */
void stook_sheaf_walk(void (*each)(struct stook_sheaf *sheaf, unsigned cache_index, void *data),
                      void *data);
/* Every sheaf of a cache (quiescent): fork child, validation. */
void stook_sheaf_for_each(unsigned cache_index,
                          void (*each)(struct stook_sheaf *sheaf, void *data), void *data);

/* Sheaves that were carved together. For readers outside the process (life/root.h), too. */
struct stook_sheaf_run {
        struct stook_sheaf_run *next;   /* const once listed */
        char    *memory;                /* the first sheaf */
        uint32_t stride;                /* bytes from sheaf to sheaf */
        uint32_t sheaves;
};
/* Atomic: sheaf_pool.c M1. Runs are only ever added, at the head. */
extern struct stook_sheaf_run *stook_sheaf_runs STOOK_HIDDEN;

/*
 * A capacity of at least @wanted objects (STOOK_SHEAF_CAPACITY_MAX at most) that wastes no memory:
 * a power of two.
 */
unsigned stook_sheaf_round_capacity(unsigned wanted);

#endif
