/*
 * Purpose: a heap that is whole in a child, whatever other threads were doing, and however it was forked.
 *
 * The memory of a child is a consistent cut of its parent's stores, so slots, barns, sheaf words and slab
 * words are sound in it. What is not: locks (their holders are gone), lists that were being changed under
 * them, and what vanished threads had in their hands: the objects of one sheaf, or a slab or span that was being made
 * or given back, are lost for each such thread; claims, detached slabs and drained slots are not.
 *  - fork(): prepare takes all locks; then nothing is half done and the child only drops them.
 *  - _Fork, a raw clone, or a prepare that could not have every lock: the child resets lock words and rebuilds
 *    lists from what the lock-free words say, before its first slow path.
 * A page with MADV_WIPEONFORK tells a child from its parent: it reads zero in a child until it was dealt with.
 *
 * Concurrency: prepare never waits for a lock while the thread holds another one (base/lock.h I1): it tries,
 *  pauses and tries again, boundedly. Called on top of a lock holder (a handler that forks), it takes nothing.
 *  A child that was forked on top of a lock holder leaves the rebuilding until that lock is dropped: what the
 *  lock guards is this thread's own half-done work.
 */
#include <pthread.h>
#include <stdint.h>

#include "base/thread.h"
#include "cache/cache.h"
#include "group/group.h"
#include "life/fork.h"
#include "life/life.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/span.h"
#include "slot/slot.h"
#include "slot/slot_rcu.h"

enum { FORKED = 0, WHOLE = 1, REPAIRING = 2 };

/* Tries for each lock; with the pause in between about 20 ms, many times what any holder needs. */
#define TRIES 200
#define PAUSE_NS 100000

static uint32_t always_whole = WHOLE;
/* Where the page cannot be had (an old kernel, an emulator) only fork() is noticed: by the child handler. */
static uint32_t *mark = &always_whole;  /* atomic content; const after start */

/*
 * Prepare had everything, and parent or child have not yet undone it. Meant for the thread that holds the
 * registry mutex: the child of another thread's fork finds it set, too, and must not believe it.
 */
static bool prepared;
static void *repairer;                  /* atomic: stook_self of the thread that repairs */

bool stook_fork_start(void)
{
        size_t page = stook_os_page_bytes();
        void *p = stook_meta_bump(page, page);

        if (!p)
                return false;
        if (stook_os_advise(p, page, STOOK_OS_WIPEONFORK)) {
                mark = p;
                *mark = WHOLE;
        }
        return true;
}

static bool take_slabs(struct stook_slabs *slabs)
{
        static uint32_t never;

        for (unsigned i = 0; i < TRIES; i++) {
                if (stook_slabs_fork_prepare(slabs))
                        return true;
                stook_os_futex_wait(&never, 0, PAUSE_NS);
        }
        return false;
}

static bool take_pages(void)
{
        static uint32_t never;

        for (unsigned i = 0; i < TRIES; i++) {
                if (stook_pages_fork_prepare())
                        return true;
                stook_os_futex_wait(&never, 0, PAUSE_NS);
        }
        return false;
}

static void drop_slabs_before(struct stook_cache *end)
{
        struct stook_cache *cache = NULL;

        while ((cache = stook_registry_next(cache)) != end)
                stook_slabs_fork_parent(&cache->slabs);
}

/* Order: registry, the slabs of each cache by age, pages. */
static void prepare(void)
{
        struct stook_cache *cache = NULL;

        if (__atomic_load_n(&stook_started, __ATOMIC_ACQUIRE) != 2 || stook_self->locks_held || !stook_registry_fork_prepare())
                return;
        while ((cache = stook_registry_next(cache)))
                if (!take_slabs(&cache->slabs))
                        break;
        if (!cache && take_pages()) {
                prepared = true;
                return;
        }
        drop_slabs_before(cache);
        stook_registry_unlock();
}

static bool prepared_by_me(void)
{
        return __atomic_load_n(&prepared, __ATOMIC_RELAXED) && stook_registry_is_mine();
}

static void parent(void)
{
        if (!prepared_by_me())
                return;
        prepared = false;
        stook_pages_fork_parent();
        drop_slabs_before(NULL);
        stook_registry_unlock();
}

/* The child's only thread. @whole: prepare had all locks. */
static void repair(bool whole)
{
        prepared = false;
        stook_slots_fork_child();
        stook_transit_fork_child();
        stook_group_fork_child();
        stook_pages_fork_child(whole);
        for (unsigned i = 1; i < stook_caches_bound(); i++) {
                struct stook_cache *cache = stook_cache_at(i);

                if (cache->state != STOOK_CACHE_LIVE && cache->state != STOOK_CACHE_DYING)
                        continue;
                stook_barns_fork_child(&cache->barns);
                stook_slabs_fork_child(&cache->slabs, whole);
        }
        stook_slabs_fork_mend(whole);
        if (whole)
                drop_slabs_before(NULL);
        stook_registry_fork_child(whole);
        stook_slot_drain_fork_mend();
}

static void child(void)
{
        if (__atomic_load_n(&stook_started, __ATOMIC_ACQUIRE) != 2)
                return;
        if (prepared_by_me()) {
                repair(true);
                stook_self->locks_held = 0;
                __atomic_store_n(mark, WHOLE, __ATOMIC_RELEASE);
                return;
        }
        /* Without the page nothing else says so; with it, an earlier handler's call may have seen to it already. */
        if (mark == &always_whole)
                *mark = FORKED;
        stook_fork_check();
}

STOOK_COLD static void forked(void)
{
        uint32_t seen = FORKED;

        if (stook_self->locks_held)
                return;
        if (!__atomic_compare_exchange_n(mark, &seen, REPAIRING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
                /* A thread of the child that was quicker than the first slow path; or a handler on top of it. */
                for (unsigned i = 0; i < TRIES && __atomic_load_n(&repairer, __ATOMIC_RELAXED) != stook_self && seen == REPAIRING; i++) {
                        stook_os_futex_wait(mark, REPAIRING, PAUSE_NS);
                        seen = __atomic_load_n(mark, __ATOMIC_ACQUIRE);
                }
                return;
        }
        __atomic_store_n(&repairer, stook_self, __ATOMIC_RELAXED);
        repair(false);
        __atomic_store_n(&repairer, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(mark, WHOLE, __ATOMIC_RELEASE);
}

void stook_fork_check(void)
{
        if (STOOK_UNLIKELY(__atomic_load_n(mark, __ATOMIC_RELAXED) != WHOLE))
                forked();
}

void stook_fork_register(void)
{
        pthread_atfork(prepare, parent, child);
}
