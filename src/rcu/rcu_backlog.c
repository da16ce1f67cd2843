/*
 * Purpose: bounds what waits for readers. The backlog is the bytes of objects that wait, without
 * those in sheaves that are still open on a slot: slots and caches bound their number. Above the
 * limit a free waits for a while, and then fails. A free looks at the count once for each sheaf,
 * when it is about to fill it. So the count may pass the limit by a sheaf for each thread.
 *
 * Place: called by rcu_free.c, rcu_submit.c and rcu_chain.c; calls pages and os.
 * Concurrency: M1: a thread that unbooks then reads `waiters`. A thread that waits sets it and then
 *  looks at the bytes. Both have a fence between, so that one of the two sees the other. A wake
 *  that is missed all the same costs WAIT_NS. `waiters` is no count: the first thread that unbooks
 *  takes it down and wakes all waiting threads, which set it again. So a thread that ends while it
 *  waits, or is not in a child of a fork, costs one wake.
 */
#include "os/os.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "rcu/rcu_submit.h"
#include "report/report.h"

#define WAIT_MS 1000
/* One part in so many of the memory there is may wait for readers. Arbitrary. */
#define MEMORY_SHARE 8
#define WAIT_NS (10 * 1000 * 1000)

static uint64_t booked STOOK_ALIGNED(STOOK_CACHELINE);          /* M1 */
uint32_t stook_rcu_waiters;             /* M1: threads may be waiting */
static uint32_t passed;                 /* atomic: changes when threads are to look again */
static uint64_t limit;                  /* atomic; 0: by_default */
static uint64_t by_default;             /* atomic; 0: there was no implementation yet */
static uint32_t wait_ms = WAIT_MS;      /* atomic */
static uint32_t told;                   /* atomic: the report was made */

STOOK_API int stook_rcu_limit(uint64_t bytes, unsigned milliseconds)
{
        __atomic_store_n(&limit, bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&wait_ms, milliseconds, __ATOMIC_RELAXED);
        return 0;
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
        return stook_rcu_cache_at(cache_index)->front->below->below->stride;
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
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M1 */
        if (__atomic_load_n(&stook_rcu_waiters, __ATOMIC_RELAXED)) {
                __atomic_store_n(&stook_rcu_waiters, 0, __ATOMIC_RELAXED);
                __atomic_fetch_add(&passed, 1, __ATOMIC_RELEASE);
                stook_os_futex_wake_all(&passed);
        }
}

static bool is_over(void)
{
        uint64_t most = __atomic_load_n(&limit, __ATOMIC_RELAXED);

        if (!most)
                most = __atomic_load_n(&by_default, __ATOMIC_RELAXED);
        return most && stook_rcu_backlog() >= most;
}

static bool wait_for_room(void)
{
        uint64_t end = stook_os_clock_ms() + __atomic_load_n(&wait_ms, __ATOMIC_RELAXED);
        bool over;

        for (;;) {
                uint32_t seen = __atomic_load_n(&passed, __ATOMIC_ACQUIRE);

                __atomic_store_n(&stook_rcu_waiters, 1, __ATOMIC_RELAXED);
                __atomic_thread_fence(__ATOMIC_SEQ_CST);        /* M1 */
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
