/*
 * Purpose: a heap that is whole in a child, whatever other threads were doing at the fork, and
 * whichever call made the child.
 *
 * The memory of a child is a consistent cut of its parent's stores, so slots, barns, sheaf words
 * and slab words are sound in it. Not sound are locks (their holders are gone), lists that were
 * being changed under them, and what vanished threads had in their hands. For each such thread the
 * objects of a call are lost, and slabs or spans that were being made or given back. Claims and
 * evacuated slots are not lost.
 *  - in a process of one thread: no thread vanishes. What is half done is this thread's, below a
 *    handler that forks, and goes on in the child. Nothing is locked, nothing repaired.
 *  - fork() beside other threads: prepare takes all locks; then nothing is half done and the child
 *    only drops them.
 *  - _Fork, a raw clone, or a prepare that could not take every lock: the child resets lock words
 *    and rebuilds lists from what the lock-free words say, before its first slow call.
 * A page with MADV_WIPEONFORK tells a child from its parent: it reads zero in a child until the
 * repair. It is made so by the first slow call beside a second thread, before that call holds
 * anything (`marked`). Until then nothing can be lost, and a fork does nothing at all. Where the
 * kernel refuses, libc's handler notices fork(), and nothing notices other ways to make a child.
 *
 * Concurrency: prepare never waits for a lock while the thread holds another one (base/lock.h I1):
 *  it tries, pauses and tries again, boundedly. Called on top of a lock holder (a handler that
 *  forks), it takes nothing. A child that was forked on top of a lock holder leaves the repair
 *  until that lock is dropped: what the lock guards is this thread's own half-done work.
 */
#include <stdint.h>

#include "base/alone.h"
#include "base/lock.h"
#include "base/pair.h"
#include "base/thread.h"
#include "direct/direct.h"
#include "epoch/epoch.h"
#include "gate/gate.h"
#include "group/group.h"
#include "life/life.h"
#include "life/root.h"
#include "limit/cache_limit.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/span.h"
#include "process/process.h"
#include "slot/slot.h"
#include "evacuate/evacuate.h"

/* Tries for each lock; with the pauses about 20 ms, many times what any holder needs. */
#define TRIES 200
#define PAUSE_NS 100000

/* Atomic, set once: a slow call was made beside another thread. */
static bool marked;
/* Atomic, set before `marked`: the kernel clears the page of stook_gate_heap in children. */
static bool wiped;

/*
 * Prepare has all locks, and parent or child has not yet dropped them. It is valid for the thread
 * that holds the registry mutex. A child of another thread's fork finds it set, too, and must not
 * believe it.
 */
static bool prepared;
static void *repairer;                  /* atomic: stook_self of the thread that repairs */
/* This is a child of fork(2), forked on top of a lock holder: its repair is still to come. */
static bool late;

void stook_fork_start(void)
{
        stook_gate_heap = stook_meta_last_page();
        *stook_gate_heap = STOOK_HEAP_ALONE;
        stook_pair_set_lock(stook_gate_heap + STOOK_CACHELINE / sizeof(*stook_gate_heap));
}

bool stook_fork_is_marked(void)
{
        return __atomic_load_n(&marked, __ATOMIC_RELAXED);
}

/*
 * Threads that come at once do the same. In the child of a handler on top of it the word is ALONE
 * as before, or wiped: then the exchange fails.
 */
static STOOK_COLD void mark(void)
{
        uint32_t seen = STOOK_HEAP_ALONE;

        if (stook_os_advise(stook_gate_heap, stook_os_page_bytes(), STOOK_OS_WIPEONFORK))
                __atomic_store_n(&wiped, true, __ATOMIC_RELAXED);
        __atomic_store_n(&marked, true, __ATOMIC_RELAXED);
        __atomic_compare_exchange_n(stook_gate_heap, &seen, STOOK_HEAP_WHOLE, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static bool take_slabs(struct stook_slabs *slabs)
{
        for (unsigned i = 0; i < TRIES; i++) {
                if (stook_slabs_fork_prepare(slabs))
                        return true;
                stook_os_pause(PAUSE_NS);
        }
        return false;
}

static bool take_pages(void)
{
        for (unsigned i = 0; i < TRIES; i++) {
                if (stook_pages_fork_prepare())
                        return true;
                stook_os_pause(PAUSE_NS);
        }
        return false;
}

static void drop_slabs_before(struct stook_cache *end)
{
        struct stook_cache *cache = NULL;

        while ((cache = stook_registry_next(cache)) != end)
                stook_slabs_fork_parent(&cache->slabs);
}

/*
 * Order: callbacks of the RCU, registry, the slabs of each cache by age, pages. That may be more
 * locks than the count of held ones reaches to (255, base/lock.h). It began at none, so it ends at
 * none.
 */
static void prepare(void)
{
        struct stook_cache *cache = NULL;

        if (!stook_gate_is_open())
                return;
        stook_gate_check();
        if (!stook_fork_is_marked() || stook_self->locks_held)
                return;
        stook_epoch_fork_prepare();
        if (!stook_registry_fork_prepare())
                return;
        while ((cache = stook_registry_next(cache)))
                if (!take_slabs(&cache->slabs))
                        break;
        if (!cache && take_pages()) {
                stook_lock_keep();      /* libc and other handlers may allocate before the drop */
                prepared = true;
                return;
        }
        drop_slabs_before(cache);
        stook_registry_unlock();
        stook_lock_hold_none();
}

static bool prepared_by_me(void)
{
        return __atomic_load_n(&prepared, __ATOMIC_RELAXED) && stook_registry_is_mine();
}

static void parent(void)
{
        if (!stook_fork_is_marked())
                return;
        if (prepared_by_me()) {
                prepared = false;
                stook_pages_fork_parent();
                drop_slabs_before(NULL);
                stook_registry_unlock();
                stook_lock_hold_none();
        }
        stook_epoch_fork_parent();
}

/* The child's only thread. @whole: prepare had all locks. */
static void repair(bool whole)
{
        prepared = false;
        stook_pair_fork_child();
        stook_slots_fork_child();
        stook_evacuate_fork_child();
        stook_epoch_fork_child(late);
        late = false;
        stook_rcu_fork_child();
        stook_group_fork_child();
        stook_no_memory_fork_child();
        stook_pages_fork_child(whole);
        for (unsigned i = 1; i < stook_caches_bound(); i++) {
                struct stook_cache *cache = stook_cache_at(i);

                if (cache->state != STOOK_CACHE_LIVE && cache->state != STOOK_CACHE_DYING)
                        continue;
                /*
                 * A living cache is closed while it is validated: by this thread, below a handler,
                 * or by none.
                 */
                stook_barns_fork_child(&cache->barns, cache->state == STOOK_CACHE_LIVE &&
                                                      !stook_registry_is_mine());
                stook_slabs_fork_child(&cache->slabs, whole);
                stook_reclaim_fork_child(cache);
        }
        stook_slabs_fork_mend(whole);
        if (whole)
                drop_slabs_before(NULL);
        stook_registry_fork_child(whole);
        stook_evacuate_fork_mend();
}

static void repair_after_fork(void)
{
        if (prepared_by_me()) {
                repair(true);
                stook_lock_hold_none();
                __atomic_store_n(stook_gate_heap, STOOK_HEAP_WHOLE, __ATOMIC_RELEASE);
                return;
        }
        /*
         * Without the page nothing else marks the child. With it, a call of an earlier handler may
         * have repaired the heap already.
         */
        if (!__atomic_load_n(&wiped, __ATOMIC_RELAXED))
                __atomic_store_n(stook_gate_heap, STOOK_HEAP_FORKED, __ATOMIC_RELAXED);
        stook_gate_check();
}

static void child(void)
{
        if (!stook_gate_is_open())
                return;
        stook_direct_fork_child();
        if (!stook_fork_is_marked())
                return;
        repair_after_fork();
        if (!stook_self_is_inside(STOOK_INSIDE_ASK))    /* it looks at a heap that is still */
                stook_epoch_fork_revive(!stook_self->locks_held);
        late = __atomic_load_n(stook_gate_heap, __ATOMIC_RELAXED) != STOOK_HEAP_WHOLE;
}

/* Another thread of the child repairs; or this is a handler on top of the repair, and returns. */
static void wait_for_repair(uint32_t seen)
{
        for (unsigned i = 0; i < TRIES && seen == STOOK_HEAP_REPAIRING &&
                             __atomic_load_n(&repairer, __ATOMIC_RELAXED) != stook_self; i++) {
                stook_os_futex_wait(stook_gate_heap, STOOK_HEAP_REPAIRING, PAUSE_NS);
                seen = __atomic_load_n(stook_gate_heap, __ATOMIC_ACQUIRE);
        }
}

STOOK_COLD void stook_fork_repair(void)
{
        uint32_t seen = STOOK_HEAP_FORKED;
        uint64_t before;

        if (!stook_fork_is_marked() && !stook_has_one_thread())
                mark();
        if (stook_self->locks_held ||
            __atomic_load_n(stook_gate_heap, __ATOMIC_RELAXED) == STOOK_HEAP_WHOLE)
                return;
        /* What a handler would add to lists in between, the repair would take for a thread's. */
        before = stook_process_handlers_block();
        if (!__atomic_compare_exchange_n(stook_gate_heap, &seen, STOOK_HEAP_REPAIRING, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
                stook_process_handlers_allow(before);
                if (seen == STOOK_HEAP_ASKED)
                        stook_request_answer_in_call();
                else
                        wait_for_repair(seen);
                return;
        }
        __atomic_store_n(&repairer, stook_self, __ATOMIC_RELAXED);
        repair(false);
        __atomic_store_n(&repairer, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(stook_gate_heap, STOOK_HEAP_WHOLE, __ATOMIC_RELEASE);
        stook_process_handlers_allow(before);
}

void stook_fork_recover(void)
{
        stook_evacuate_recover();
        stook_registry_recover();
}

void stook_fork_register(stook_fork_registrar *registrar)
{
        registrar(prepare, parent, child);
}
