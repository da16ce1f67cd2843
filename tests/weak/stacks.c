/*
 * Proves of base/pending_stack.h and base/tagged_stack.h, which barns, lists, descriptors and what
 * waits for readers go through: what was stored in an element before its push is seen by who takes
 * it; each element has one owner at a time, also where stacks are put back, and elements come back
 * while a pop is under way.
 */
#include "weak.h"
#include "base/pending_stack.h"

static struct element {
        struct stook_link link;
        _Alignas(64) unsigned content;  /* its owner's alone: any other access is a race */
} elements[3];
static struct stook_pending_stack pending;
static struct stook_tagged_stack tagged;

static void own(struct stook_link *link, unsigned least)
{
        struct element *e = (struct element *)(void *)link;

        weak_assert(e->content >= least);
        e->content++;
}

/* ---- pending ---- */

static void reset_pending(void)
{
        pending.first = NULL;
        for (unsigned i = 0; i < 3; i++)
                elements[i] = (struct element){ .content = 0 };
}

static void push(unsigned i)
{
        elements[i].content = 1;
        stook_pending_stack_push(&pending, &elements[i].link);
}

static void push_0(void) { push(0); }
static void push_1_2(void) { push(1), push(2); }

static void take_each(struct stook_link *at)
{
        while (at) {
                struct stook_link *next = __atomic_load_n(&at->next, __ATOMIC_RELAXED);

                own(at, 1);
                at = next;
        }
}

static void take_all(void)
{
        take_each(stook_pending_stack_take_all(&pending));
}

/* As a take that finds no use for what it took. */
static void put_back(void)
{
        struct stook_link *all = stook_pending_stack_take_all(&pending);

        if (all)
                own(all, 1);
        stook_pending_stack_put_back(&pending, all);
        take_all();
}

static struct stook_link *place;

static void move_all(void)
{
        struct stook_link *all = stook_pending_stack_move_all(&pending, &place);

        weak_assert(__atomic_load_n(&place, __ATOMIC_RELAXED) == all);
        take_each(all);
}

static void each_is_there(void)
{
        unsigned left = 0;

        for (struct stook_link *at = pending.first; at; at = at->next)
                left++;
        for (unsigned i = 0; i < 3; i++)
                left += elements[i].content > 1;
        weak_assert(left >= 3);
}

static const struct weak_program taken = {
        "pending, taken", reset_pending, { push_0, push_1_2, take_all }, each_is_there, 2, 2
};
static const struct weak_program taken_by_two = {
        "pending, taken by two", reset_pending, { push_0, take_all, push_1_2, take_all },
        each_is_there, 2, 1
};
static const struct weak_program back = {
        "pending, put back", reset_pending, { push_1_2, put_back, push_0 }, NULL, 2, 2
};
static const struct weak_program moved = {
        "pending, moved", reset_pending, { push_0, push_1_2, move_all }, each_is_there, 2, 2
};

/* ---- tagged ---- */

static void reset_tagged(void)
{
        tagged = (struct stook_tagged_stack){ .head = { 0, 0 } };
        for (unsigned i = 0; i < 3; i++) {
                elements[i] = (struct element){ .content = 1 };
                stook_tagged_stack_push(&tagged, &elements[i].link);
        }
}

static void pop_push(void)
{
        struct stook_link *one = stook_tagged_stack_pop(&tagged);

        if (!one)
                return;
        own(one, 1);
        stook_tagged_stack_push(&tagged, one);
}

static struct stook_link *popped[2];

static void pop(void)
{
        popped[0] = stook_tagged_stack_pop(&tagged);
        if (popped[0])
                own(popped[0], 1);
}

/* Two elements leave; the first of them comes back, with another one behind it. */
static void pop_two_push_one(void)
{
        struct stook_link *one = stook_tagged_stack_pop(&tagged), *two;

        if (!one)
                return;
        own(one, 1);
        two = stook_tagged_stack_pop(&tagged);
        if (two)
                own(two, 1);
        popped[1] = two;
        stook_tagged_stack_push(&tagged, one);
}

static void none_is_twice(void)
{
        bool seen[3] = { false };
        unsigned n = 0;

        for (unsigned i = 0; i < 2; i++)
                if (popped[i]) {
                        struct element *e = (struct element *)(void *)popped[i];

                        weak_assert(!seen[e - elements]);
                        seen[e - elements] = true;
                        n++;
                }
        for (struct stook_link *at = (struct stook_link *)tagged.head.lo; at; at = at->next) {
                struct element *e = (struct element *)(void *)at;

                weak_assert(!seen[e - elements]);
                seen[e - elements] = true;
                n++;
        }
        weak_assert(n == 3 && stook_tagged_stack_count_racy(&tagged) == n - !!popped[0] -
                                                                        !!popped[1]);
        popped[0] = popped[1] = NULL;
}

static const struct weak_program shared = {
        "tagged, shared", reset_tagged, { pop_push, pop_push, pop_push }, none_is_twice, 2, 1
};
static const struct weak_program overtaken = {
        "tagged, a pop that is overtaken", reset_tagged, { pop, pop_two_push_one }, none_is_twice,
        4, 2
};

/* ---- mistakes ---- */

/* The pending stack's push without its release. */
static void push_too_soon(void)
{
        struct stook_link *old = __atomic_load_n(&pending.first, __ATOMIC_RELAXED);

        elements[0].content = 1;
        do
                stook_link_set_next(&elements[0].link, old);
        while (!__atomic_compare_exchange_n(&pending.first, &old, &elements[0].link, true,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static const struct weak_program too_soon = {
        "pending, not released", reset_pending, { push_too_soon, take_all }, NULL, 2, 2
};

/* A pop that compares the first element alone. */
static void pop_without_tag(void)
{
        uintptr_t old = __atomic_load_n(&tagged.head.lo, __ATOMIC_ACQUIRE), next;

        do {
                if (!old)
                        return;
                next = (uintptr_t)__atomic_load_n(&((struct stook_link *)old)->next,
                                                  __ATOMIC_RELAXED);
        } while (!__atomic_compare_exchange_n(&tagged.head.lo, &old, next, false,
                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
        popped[0] = (struct stook_link *)old;
        own(popped[0], 1);
}

static const struct weak_program untagged = {
        "tagged, no tag", reset_tagged, { pop_without_tag, pop_two_push_one }, none_is_twice, 4, 2
};

int main(void)
{
        weak_hold(&taken);
        weak_hold(&taken_by_two);
        weak_hold(&back);
        weak_hold(&moved);
        weak_hold(&shared);
        weak_hold(&overtaken);
        weak_break(&too_soon);
        weak_break(&untagged);
        return 0;
}
