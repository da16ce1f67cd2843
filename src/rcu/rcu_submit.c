/*
 * Purpose: from objects that readers may still see to free objects. A sheaf, or the span of an
 * empty slab, is given to the RCU implementation, and is freed after the grace period. What waits
 * is bounded.
 *
 * Sheaves: the two words that the implementation wants (stook_rcu_head) are the last two of the
 * sheaf's header, which nothing else uses while the sheaf waits. Afterwards a full sheaf goes to
 * its barn as it is, to be allocated from. Another one is drained.
 *
 * Spans of type-stable caches (STOOK_CACHE_TYPESAFE_BY_RCU): a reader that found an object may look
 * at it after it was freed, and even after it became another object of the cache. So its memory
 * leaves the cache only after a grace period. Such a cache keeps its empty slabs until a shrink, a
 * trim or destroy. The span's `list` is the implementation's head.
 *
 * Deferred: a call that must not call the implementation leaves its sheaf or span on a stack. So
 * does the slab layer, whose caller may hold locks. Both stacks are submitted by the next ordinary
 * free that fills a sheaf, or by a barrier, stook_maintain, shrink, trim or destroy. A malloc that
 * takes empty slabs from caches before it fails leaves their spans deferred: the implementation may
 * be what called malloc, under a lock of its own that its `call` takes, too.
 *
 * The backlog is the bytes of objects that wait, without those in sheaves that are still open on a
 * slot: slots and caches bound their number. Above the limit a free waits for a while, and then
 * fails. A free looks at the count once for each sheaf, when it is about to fill it. So the count
 * may pass the limit by a sheaf for each thread.
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
 *  M2: a thread that unbooks then reads `waiters`. A thread that waits sets it and then looks at
 *  the bytes. Both have a fence between, so that one of the two sees the other. A wake that is
 *  missed all the same costs WAIT_NS. `waiters` is no count: the first thread that unbooks takes it
 *  down and wakes all waiting threads, which set it again. So a thread that ends while it waits, or
 *  is not in a child of a fork, costs one wake.
 * Failure: without an implementation spans stay deferred.
 */
#include "os/os.h"
#include "pages/pagemap.h"
#include "pages/purge.h"
#include "pages/span.h"
#include "rcu/rcu_inside.h"
#include "report/report.h"
#include "slot/slot.h"

#define WAIT_MS 1000
/* One part in so many of the memory there is may wait for readers. Arbitrary. */
#define MEMORY_SHARE 8
#define WAIT_NS (10 * 1000 * 1000)

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
        stook_sheaf_end_rcu(sheaf, cache->front->barns->slabs->counters);
        stook_barns_returned(cache->front->barns, stook_sheaf_node(sheaf),
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
        if (nolock || stook_self_is_inside(STOOK_INSIDE_RCU_CALL))
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

        if (stook_self_is_inside(STOOK_INSIDE_RCU_CALL))
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

/* ---- the backlog ---- */

static uint64_t booked STOOK_ALIGNED(STOOK_CACHELINE);          /* M2 */
uint32_t stook_rcu_waiters;             /* M2: threads may be waiting */
static uint32_t passed;                 /* atomic: changes when threads are to look again */
static uint64_t limit;                  /* atomic; 0: by_default */
static uint64_t by_default;             /* atomic; 0: there was no implementation yet */
static uint32_t wait_ms = WAIT_MS;      /* atomic */
static uint32_t told;                   /* atomic: the report was made */

STOOK_API void stook_rcu_set_limit(uint64_t limit_bytes, unsigned milliseconds)
{
        __atomic_store_n(&limit, limit_bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&wait_ms, milliseconds, __ATOMIC_RELAXED);
}

uint64_t stook_rcu_limit_bytes(void)
{
        uint64_t bytes = __atomic_load_n(&limit, __ATOMIC_RELAXED);

        return bytes ? bytes : __atomic_load_n(&by_default, __ATOMIC_RELAXED);
}

void stook_rcu_set_default_limit(uint64_t bytes)
{
        __atomic_store_n(&by_default, bytes, __ATOMIC_RELAXED);
}

void stook_rcu_find_default_limit(void)
{
        uint64_t memory, address;

        if (STOOK_LIKELY(__atomic_load_n(&by_default, __ATOMIC_RELAXED)))
                return;
        memory = stook_os_memory_bytes();
        address = stook_os_address_limit();
        memory = (memory < address ? memory : address) / MEMORY_SHARE;
        __atomic_store_n(&by_default, memory ? memory : 1, __ATOMIC_RELAXED);
}

STOOK_API uint64_t stook_rcu_backlog(void)
{
        return __atomic_load_n(&booked, __ATOMIC_RELAXED);
}

static size_t bytes_each(unsigned cache_index)
{
        return stook_rcu_cache_at(cache_index)->front->barns->slabs->stride;
}

/* An object in a mixed sheaf. */
static size_t bytes_of_any(uintptr_t address)
{
        uint64_t entry = stook_pagemap_get(address);
        unsigned index = stook_entry_cache(entry);
        const struct stook_span *span;

        if (index)
                return bytes_each(index);
        span = entry ? stook_span_large_at(address) : NULL;
        return span ? span->bytes : 0;
}

size_t stook_rcu_bytes_of(const struct stook_sheaf *sheaf)
{
        unsigned size = stook_sheaf_size(sheaf);
        size_t bytes = 0;

        if (sheaf->cache_index)
                return size * bytes_each(sheaf->cache_index);
        for (unsigned i = 0; i < size; i++)
                bytes += bytes_of_any((uintptr_t)sheaf->objects[i]);
        return bytes;
}

void stook_rcu_book(size_t bytes)
{
        __atomic_fetch_add(&booked, bytes, __ATOMIC_RELAXED);
}

void stook_rcu_unbook(size_t bytes)
{
        __atomic_fetch_sub(&booked, bytes, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M2 */
        if (__atomic_load_n(&stook_rcu_waiters, __ATOMIC_RELAXED)) {
                __atomic_store_n(&stook_rcu_waiters, 0, __ATOMIC_RELAXED);
                __atomic_fetch_add(&passed, 1, __ATOMIC_RELEASE);
                stook_os_futex_wake_all(&passed);
        }
}

static bool is_over(void)
{
        uint64_t most = stook_rcu_limit_bytes();

        return most && stook_rcu_backlog() >= most;
}

static bool wait_for_room(void)
{
        uint64_t end = stook_os_clock_ms() + __atomic_load_n(&wait_ms, __ATOMIC_RELAXED);
        bool over;

        for (;;) {
                uint32_t seen = __atomic_load_n(&passed, __ATOMIC_ACQUIRE);

                __atomic_store_n(&stook_rcu_waiters, 1, __ATOMIC_RELAXED);
                __atomic_thread_fence(__ATOMIC_SEQ_CST);        /* M2 */
                over = is_over();
                if (!over || stook_os_clock_ms() >= end)
                        break;
                stook_os_futex_wait(&passed, seen, WAIT_NS);
        }
        return !over;
}

/* Once: frees cannot be refused, so more waits than the limit allows. */
static STOOK_COLD void tell(const struct stook_rcu_cache *cache)
{
        if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
                stook_report_found(STOOK_FAULT_RCU, NULL, stook_rcu_name(cache), NULL, 0,
                                   "more waits for readers than the limit; "
                                   "frees of this cache cannot be refused");
}

bool stook_rcu_has_room(struct stook_rcu_cache *or_null, bool nolock)
{
        bool may_call = !nolock && !stook_self->locks_held;
        const struct stook_rcu *rcu;

        if (STOOK_LIKELY(!is_over()))
                return true;
        /* Deferred sheaves are booked, and no other call need come to submit them. */
        if (may_call)
                stook_rcu_submit_deferred();
        rcu = stook_rcu_peek(or_null);
        if (may_call && rcu && stook_rcu_may_wait(rcu, 2) && wait_for_room())
                return true;
        if (!or_null || !or_null->hidden_offset)
                return false;
        tell(or_null);
        return true;
}
