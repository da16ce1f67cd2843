/*
 * Purpose: from objects that readers may still see to free objects. A sheaf, or the span of an
 * empty slab, is given to the RCU implementation, and is freed after the grace period.
 *
 * Sheaves: the two words that the implementation wants (stook_rcu_head) are the last two of the
 * sheaf's header, which nothing else uses while the sheaf waits. Afterwards a full sheaf goes to
 * its barn as it is, to be allocated from. Another one is drained.
 *
 * Spans of type-stable caches (STOOK_TYPESAFE_BY_RCU): a reader that found an object may look at it
 * after it was freed, and even after it became another object of the cache. So its memory leaves
 * the cache only after a grace period. Such a cache keeps its empty slabs until a shrink, a trim or
 * destroy. The span's `list` is the implementation's head.
 *
 * Deferred: a call that must not call the implementation leaves its sheaf or span on a stack. So
 * does the slab layer, whose caller may hold locks. Both stacks are submitted by the next ordinary
 * free that fills a sheaf, or by a barrier, stook_maintain, shrink, trim or destroy. A malloc that
 * takes empty slabs from caches before it fails leaves their spans deferred: the implementation may
 * be what called malloc, under a lock of its own that its `call` takes, too.
 *
 * Place: called by the files of this layer; calls barn, slot, pages, and the implementation.
 * Invariants:
 *  I1 the implementation is never called by a nolock call, nor by a handler on top of a call of it.
 *  I2 a sheaf counts as rcu (its objects as freed by free_rcu) from before its first object until
 *     after the grace period: barn/sheaf.h.
 *  I3 a thread that takes deferred sheaves is in transit from before until they were submitted.
 *  I4 nothing here looks at the cache of a span, which may be destroyed by then.
 * Concurrency: M1: fence between raising the transit count and taking the deferred sheaves; pairs
 *  with the fence of a barrier between its own take and its look at the counts. Both stacks are
 *  taken whole (base/pending_stack.h).
 * Failure: without an implementation spans stay deferred.
 */
#include "pages/purge.h"
#include "pages/span.h"
#include "rcu/rcu_submit.h"
#include "rcu/rcu_transit.h"
#include "slot/slot.h"

static struct stook_pending_stack deferred_sheaves, deferred_spans;

/* ---- sheaves ---- */

_Static_assert(sizeof(((struct stook_sheaf *)0)->waiting.head) == sizeof(struct stook_rcu_head),
               "a waiting sheaf has room for a head");

static void free_mixed(struct stook_sheaf *sheaf)
{
        stook_rcu_duties.free_mixed(stook_sheaf_size(sheaf), sheaf->objects);
        stook_sheaf_end_mixed(sheaf);
}

static void recycle(struct stook_sheaf *sheaf)
{
        struct stook_rcu_cache *cache = stook_rcu_cache_at(sheaf->cache_index);

        if (cache->accounted)
                stook_rcu_duties.uncharge(cache, stook_sheaf_size(sheaf), sheaf->objects);
        if (STOOK_UNLIKELY(cache->watched))
                stook_rcu_duties.left(cache, stook_sheaf_size(sheaf), sheaf->objects);
        stook_sheaf_end_rcu(sheaf, cache->front->below->below->counters);
        stook_barns_returned(cache->front->below, stook_sheaf_node(sheaf),
                             stook_rcu_bytes_of(sheaf), stook_rcu_backlog());
        stook_slot_dispose(cache->front, (int)stook_sheaf_node(sheaf), sheaf);
}

static void free_sheaf(struct stook_sheaf *sheaf)
{
        if (sheaf->cache_index)
                recycle(sheaf);
        else
                free_mixed(sheaf);
}

static void sheaf_done(struct stook_rcu_head *head)
{
        struct stook_sheaf *sheaf = stook_sheaf_of_head(head);
        unsigned place;

        place = stook_rcu_callback_begin(__builtin_frame_address(0));
        stook_rcu_unbook(stook_rcu_bytes_of(sheaf));
        free_sheaf(sheaf);
        stook_rcu_callback_end(place);
}

static void submit_now(struct stook_sheaf *sheaf)
{
        unsigned index = sheaf->cache_index;
        struct stook_rcu_cache *or_null = index ? stook_rcu_cache_at(index) : NULL;

        stook_rcu_call(stook_rcu_pin(or_null), stook_sheaf_head(sheaf), sheaf_done);
}

void stook_rcu_submit_or_defer(struct stook_sheaf *sheaf, bool nolock)
{
        stook_rcu_book(stook_rcu_bytes_of(sheaf));
        if (nolock || stook_rcu_is_in_call())
                stook_pending_stack_push(&deferred_sheaves, &sheaf->waiting.link);
        else
                submit_now(sheaf);
}

void stook_rcu_submit_or_free(struct stook_sheaf *sheaf)
{
        if (stook_sheaf_size(sheaf))
                stook_rcu_submit_or_defer(sheaf, false);
        else
                free_sheaf(sheaf);
}

/* ---- spans ---- */

_Static_assert(sizeof(struct stook_list) >= sizeof(struct stook_rcu_head), "a head fits into list");

void stook_rcu_give_span(struct stook_rcu_cache *cache, struct stook_span *span)
{
        span->use.rcu = cache->own;
        stook_pending_stack_push(&deferred_spans, &span->link);
}

static void span_done(struct stook_rcu_head *head)
{
        struct stook_list *list = (struct stook_list *)head;
        unsigned place;

        place = stook_rcu_callback_begin(__builtin_frame_address(0));
        stook_span_give(stook_container_of(list, struct stook_span, list));
        stook_pages_step();
        stook_rcu_callback_end(place);
}

static void submit_spans(void)
{
        struct stook_link *at = stook_pending_stack_take_all(&deferred_spans);

        while (at) {
                struct stook_span *span = stook_container_of(at, struct stook_span, link);
                const struct stook_rcu *rcu = span->use.rcu ? span->use.rcu : stook_rcu_pin(NULL);

                at = at->next;
                if (rcu)
                        stook_rcu_call(rcu, (struct stook_rcu_head *)&span->list, span_done);
                else
                        stook_pending_stack_push(&deferred_spans, &span->link);
        }
}

/* ---- what was deferred ---- */

void stook_rcu_submit_deferred_in_transit(void)
{
        struct stook_link *at;

        if (stook_rcu_is_in_call())
                return;
        submit_spans();
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M1 */
        at = stook_pending_stack_take_all(&deferred_sheaves);
        while (at) {
                struct stook_sheaf *sheaf = stook_container_of(at, struct stook_sheaf,
                                                               waiting.link);

                at = at->next;
                submit_now(sheaf);
        }
}

void stook_rcu_submit_deferred(void)
{
        uint64_t ticket = stook_transit_begin();

        stook_rcu_submit_deferred_in_transit();
        stook_transit_end(ticket);
}
