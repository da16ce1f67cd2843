/*
 * Purpose: what waits for readers is bounded: bytes of submitted objects are counted, and above the limit a free
 * waits for a while, and then fails. Objects in open sheaves are not counted: there are as many as slots and caches
 * have places.
 * The count is looked at once for each sheaf, when it is about to be filled, so it may pass the limit by a sheaf for
 * each thread.
 *
 * Place: called by cache_rcu.c and cache_rcu_submit.c.
 * Concurrency: M1: who unbooks then reads `waiters`, who waits raises it and then looks at the bytes: fences between,
 *  so that one of the two sees the other. A wake that is missed all the same costs WAIT_NS.
 * Failure: false.
 */
#include "base/thread.h"
#include "cache/cache_rcu.h"
#include "os/os.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "report/report.h"

#define WAIT_MS 1000
/* Of the memory there is: what may wait for readers. Arbitrary. */
#define MEMORY_SHARE 8
#define WAIT_NS (10 * 1000 * 1000)

static uint64_t booked STOOK_ALIGNED(STOOK_CACHELINE);          /* M1 */
static uint32_t waiters;                /* M1 */
static uint32_t passed;                 /* atomic: changes when something was unbooked and there are waiters */
static uint64_t limit;                  /* atomic; 0: by_default */
static uint64_t by_default;             /* atomic; 0: not known yet: there was no implementation either */
static uint32_t wait_ms = WAIT_MS;      /* atomic */
static uint32_t told;                   /* atomic */

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

size_t stook_rcu_bytes_of(const struct stook_sheaf *sheaf)
{
        unsigned size = stook_sheaf_size(sheaf);
        size_t bytes = 0;

        if (sheaf->cache_index)
                return (size_t)size * stook_cache_at(sheaf->cache_index)->slabs.slot_size;
        for (unsigned i = 0; i < size; i++) {
                uint64_t entry = stook_pagemap_get((uintptr_t)sheaf->objects[i]);
                unsigned index = stook_entry_cache(entry);
                const struct stook_span *span = index || !entry ? NULL : stook_span_large_at((uintptr_t)sheaf->objects[i]);

                bytes += index ? stook_cache_at(index)->slabs.slot_size : span ? span->bytes : 0;
        }
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
        if (__atomic_load_n(&waiters, __ATOMIC_RELAXED)) {
                __atomic_fetch_add(&passed, 1, __ATOMIC_RELAXED);
                stook_os_futex_wake(&passed);
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

        __atomic_fetch_add(&waiters, 1, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M1 */
        for (;;) {
                uint32_t seen = __atomic_load_n(&passed, __ATOMIC_RELAXED);

                over = is_over();
                if (!over || stook_os_clock_ms() >= end)
                        break;
                stook_os_futex_wait(&passed, seen, WAIT_NS);
        }
        __atomic_fetch_sub(&waiters, 1, __ATOMIC_RELAXED);
        return !over;
}

/* Once: where nothing can be refused, more waits than should. */
static STOOK_COLD void tell(const struct stook_cache *cache)
{
        if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
                stook_report_found(STOOK_FAULT_RCU, NULL, cache->name, NULL, 0,
                                   "more waits for readers than the limit; frees of this cache cannot be refused");
}

bool stook_rcu_has_room(struct stook_cache *or_null, bool nolock)
{
        const struct stook_rcu *rcu;

        if (STOOK_LIKELY(!is_over()))
                return true;
        if (!nolock && !stook_self->locks_held)
                stook_rcu_hand_in();            /* what handlers have put by is counted, and on nobody's way yet */
        rcu = stook_rcu_look(or_null);
        if (!nolock && !stook_self->locks_held && rcu && stook_rcu_may_wait(rcu, 2) && wait_for_room())
                return true;
        if (!or_null || !(or_null->flags & STOOK_RCU))
                return false;
        tell(or_null);
        return true;
}
