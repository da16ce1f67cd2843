/*
 * bench/aspace/spin_stack.h - the barn's stacks under a spinning lock: a rival
 *
 * Purpose: in place of base/tagged_stack.h where the barn's sources are compiled for aspace-spin.
 * The kernel's barn was a list under a spinlock; when all caches came to have sheaves, page faults
 * lost a tenth, most of it in that lock. Here the same can come up, so that its absence with the
 * lock-free stacks means something. A word of the head's tag is the lock, and the count is kept as
 * the original keeps it, so that readers of the count work unchanged.
 * Concurrency: a spin is counted as a retry (counted/count_retries.h); after some, the thread
 * yields, for the holder may have been preempted, which the kernel does not allow.
 */
#ifndef STOOK_TAGGED_STACK_H
#define STOOK_TAGGED_STACK_H

#include <sched.h>
#include "base/alone.h"

#define SPIN_TURNS 1000                 /* arbitrary: longer than any hold */

struct stook_link {
        struct stook_link *next;
};

STOOK_INLINE void stook_link_set_next(struct stook_link *link, struct stook_link *next)
{
        link->next = next;
}

/* lo: the first element. hi: lock << 63 | count. */
struct stook_tagged_stack {
        struct stook_pair head;
};

STOOK_INLINE unsigned stook_tagged_stack_count_racy(struct stook_tagged_stack *s)
{
        return (unsigned)(__atomic_load_n(&s->head.hi, __ATOMIC_RELAXED) & 0xffff);
}

#define SPIN_LOCKED (UINT64_C(1) << 63)

STOOK_INLINE void spin_lock(struct stook_tagged_stack *s)
{
        for (unsigned turn = 1; __atomic_fetch_or(&s->head.hi, SPIN_LOCKED, __ATOMIC_ACQUIRE) &
                                SPIN_LOCKED; turn++) {
                STOOK_TAGGED_STACK_RETRY();
                while (__atomic_load_n(&s->head.hi, __ATOMIC_RELAXED) & SPIN_LOCKED)
                        if (turn++ % SPIN_TURNS == 0)
                                sched_yield();
        }
}

/* @count: what the lock is dropped with. */
STOOK_INLINE void spin_unlock(struct stook_tagged_stack *s, uint64_t count)
{
        __atomic_store_n(&s->head.hi, count, __ATOMIC_RELEASE);
}

STOOK_INLINE void stook_tagged_stack_push(struct stook_tagged_stack *s, struct stook_link *e)
{
        spin_lock(s);
        e->next = (struct stook_link *)s->head.lo;
        s->head.lo = (uintptr_t)e;
        spin_unlock(s, stook_tagged_stack_count_racy(s) + 1);
}

STOOK_INLINE struct stook_link *stook_tagged_stack_pop(struct stook_tagged_stack *s)
{
        struct stook_link *e;

        spin_lock(s);
        e = (struct stook_link *)s->head.lo;
        if (e)
                s->head.lo = (uintptr_t)e->next;
        spin_unlock(s, stook_tagged_stack_count_racy(s) - (e != NULL));
        return e;
}

#endif
