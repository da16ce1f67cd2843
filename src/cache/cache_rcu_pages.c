/*
 * Purpose: type-stable caches (STOOK_TYPESAFE_BY_RCU): a reader that found an object may look at it after it was freed,
 * and even after it became another object of the cache. So its memory leaves the cache only after a grace period.
 * Such a cache keeps its empty slabs until a shrink, trim or destroy. What those give up waits on a stack, as the
 * caller may hold locks, for the next ordinary call that submits; the span's `list` is the implementation's head.
 *
 * Place: called by slab (release), cache_rcu_submit.c, and by the implementation; calls pages.
 * Concurrency: a stack that is taken whole (base/pending_stack.h). The cache may be gone by then: nothing here looks at it.
 * Failure: without an RCU the spans stay on the stack.
 */
#include "base/thread.h"
#include "cache/cache_rcu.h"
#include "life/life.h"
#include "pages/span.h"

static struct stook_pending_stack spans;

_Static_assert(sizeof(struct stook_list) >= sizeof(struct stook_rcu_head), "a head fits into the span's list");

/* In the span's user part, where the slab was. */
static const struct stook_rcu **rcu_of(struct stook_span *span)
{
        return (const struct stook_rcu **)span->user;
}

void stook_rcu_give_later(struct stook_slabs *slabs, struct stook_span *span)
{
        *rcu_of(span) = stook_container_of(slabs, struct stook_cache, slabs)->rcu;
        stook_pending_stack_push(&spans, &span->link);
}

static void done(struct stook_rcu_head *head)
{
        struct stook_list *list = (struct stook_list *)head;

        stook_self->barred |= STOOK_SELF_RCU_CALLBACK;
        stook_fork_check();
        stook_span_give(stook_container_of(list, struct stook_span, list));
        stook_pages_step();
        stook_self->barred &= (uint8_t)~STOOK_SELF_RCU_CALLBACK;
}

void stook_rcu_submit_spans(void)
{
        struct stook_link *at = stook_pending_stack_take_all(&spans);

        while (at) {
                struct stook_span *span = stook_container_of(at, struct stook_span, link);
                const struct stook_rcu *rcu = *rcu_of(span) ? *rcu_of(span) : stook_rcu_of(NULL);

                at = at->next;
                if (rcu)
                        stook_rcu_call(rcu, (struct stook_rcu_head *)&span->list, done);
                else
                        stook_pending_stack_push(&spans, &span->link);
        }
}
