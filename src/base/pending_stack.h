/*
 * Purpose: a lock-free stack that is only pushed to and taken whole. It needs no tag, and its
 * elements need not be type-stable. By it a thread that may not wait for a lock hands work to the
 * lock's holder.
 * Concurrency: any thread, any instruction. M1: push releases to take_all's acquire.
 */
#ifndef STOOK_PENDING_STACK_H
#define STOOK_PENDING_STACK_H

#include <stdbool.h>
#include "base/tagged_stack.h"

struct stook_pending_stack {
        struct stook_link *first;       /* M1 */
};

/* Pushes the chain @first..@last, linked through next. */
STOOK_INLINE void stook_pending_stack_push_chain(struct stook_pending_stack *s,
                                                 struct stook_link *first, struct stook_link *last)
{
        struct stook_link *old = __atomic_load_n(&s->first, __ATOMIC_RELAXED);

        do {
                stook_link_set_next(last, old);
        } while (!__atomic_compare_exchange_n(&s->first, &old, first, true, __ATOMIC_RELEASE,
                                              __ATOMIC_RELAXED));
}

STOOK_INLINE void stook_pending_stack_push(struct stook_pending_stack *s, struct stook_link *e)
{
        stook_pending_stack_push_chain(s, e, e);
}

STOOK_INLINE bool stook_pending_stack_empty_racy(struct stook_pending_stack *s)
{
        return !__atomic_load_n(&s->first, __ATOMIC_RELAXED);
}

/* All elements, last pushed first, linked through next; NULL: none. */
STOOK_INLINE struct stook_link *stook_pending_stack_take_all(struct stook_pending_stack *s)
{
        if (stook_pending_stack_empty_racy(s))
                return NULL;
        return __atomic_exchange_n(&s->first, NULL, __ATOMIC_ACQUIRE);
}

/* The same; the first of them is stored at @place before they leave the stack. */
STOOK_INLINE struct stook_link *stook_pending_stack_move_all(struct stook_pending_stack *s,
                                                             struct stook_link **place)
{
        struct stook_link *first = __atomic_load_n(&s->first, __ATOMIC_RELAXED);

        do
                __atomic_store_n(place, first, __ATOMIC_RELAXED);
        while (first && !__atomic_compare_exchange_n(&s->first, &first, NULL, false,
                                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
        return first;
}

/*
 * Elements that a thread took, and has no use for, from @first on. They may be many, and while they
 * are in its hands no other thread finds them. So it does not walk along them, but along what was
 * pushed meanwhile.
 */
STOOK_INLINE void stook_pending_stack_put_back(struct stook_pending_stack *s,
                                               struct stook_link *first)
{
        struct stook_link *none = NULL;

        while (first && !__atomic_compare_exchange_n(&s->first, &none, first, false,
                                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
                struct stook_link *later = stook_pending_stack_take_all(s), *last = later;

                while (last && last->next)
                        last = last->next;
                if (last) {
                        stook_link_set_next(last, first);
                        first = later;
                }
                none = NULL;
        }
}

#endif
