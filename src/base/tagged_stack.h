/*
 * Purpose: a lock-free stack of type-stable elements, with a count.
 * The head is a pair {first element, tag 48 | count 16}. Every change bumps the tag. So the
 * compare-and-swap rejects a stale `next` that was read from an element popped meanwhile.
 * Invariants:
 *  I1 the memory of an element stays readable for ever (sheaf and metadata memory is never
 *     unmapped; it may be purged to zeros, which the tag rejects as well).
 *  I2 count is exact in each pair, up to 65,535. All callers have limits far below, except
 *     metadata, which does not read the count.
 * Concurrency: any thread, any instruction. M1: push releases (its element's fields) to pop's
 *  acquire, except while the process has one thread (base/alone.h).
 * Source: R. K. Treiber, "Coping with Parallelism", 1986; tag after the IBM System/370 "free-list"
 * scheme.
 */
#ifndef STOOK_TAGGED_STACK_H
#define STOOK_TAGGED_STACK_H

#include "base/alone.h"

/*
 * What a lost compare-and-swap does besides trying again: nothing; bench/counted/barn.cc counts
 * here.
 */
#ifndef STOOK_TAGGED_STACK_RETRY
#define STOOK_TAGGED_STACK_RETRY() ((void)0)
#endif

struct stook_link {
        struct stook_link *next;        /* atomic; written by the element's owner before its push */
};

/* Of an element that a late pop of a tagged stack may read, in vain. */
STOOK_INLINE void stook_link_set_next(struct stook_link *link, struct stook_link *next)
{
        __atomic_store_n(&link->next, next, __ATOMIC_RELAXED);
}

struct stook_tagged_stack {
        struct stook_pair head;         /* M1; {struct stook_link *, tag << 16 | count} */
};

STOOK_INLINE unsigned stook_tagged_stack_count_racy(struct stook_tagged_stack *s)
{
        return (unsigned)(__atomic_load_n(&s->head.hi, __ATOMIC_RELAXED) & 0xffff);
}

STOOK_INLINE void stook_tagged_stack_push(struct stook_tagged_stack *s, struct stook_link *e)
{
        struct stook_pair old = stook_pair_read(&s->head), new;

        for (;;) {
                /*
                 * Atomic because a popper with a stale head may read it, which is harmless: see
                 * above.
                 */
                stook_link_set_next(e, (struct stook_link *)old.lo);
                new.lo = (uintptr_t)e;
                new.hi = old.hi + (1u << 16) + 1;
                if (stook_two_words_cas(&s->head, &old, new))
                        return;
                STOOK_TAGGED_STACK_RETRY();
        }
}

/* NULL: the stack was empty. */
STOOK_INLINE struct stook_link *stook_tagged_stack_pop(struct stook_tagged_stack *s)
{
        struct stook_pair old = stook_pair_read(&s->head), new;

        for (;;) {
                if (!old.lo)
                        return NULL;
                new.lo = (uintptr_t)__atomic_load_n(&((struct stook_link *)old.lo)->next,
                                                    __ATOMIC_RELAXED);
                new.hi = old.hi + (1u << 16) - 1;
                if (stook_two_words_cas(&s->head, &old, new))
                        return (struct stook_link *)old.lo;
                STOOK_TAGGED_STACK_RETRY();
        }
}

#endif
