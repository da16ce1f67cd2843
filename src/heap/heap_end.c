/*
 * Purpose: a heap is emptied: as far as it goes (shrink), of all objects (reset), for good
 * (destroy).
 * Place: API; calls cache to close and give up caches, rcu, heap_drop.c.
 * Invariants:
 *  I1 the caches of a heap are all closed before a slab is dropped. If one of them cannot be, all
 *     are opened again, and the heap is as it was.
 * Concurrency: registry mutex.
 */
#include <errno.h>

#include "cache/cache_watch.h"
#include "gate/gate.h"
#include "heap/heaps.h"
#include "rcu/rcu.h"
#include "report/report.h"

static void set_state(struct stook_heap *heap, enum stook_heap_state state)
{
        __atomic_store_n(&heap->state, state, __ATOMIC_RELAXED);
}

/* Until its line is set again, the hot path misses, and finds that the heap is not live. */
static void leave_line(struct stook_heap *heap, unsigned class)
{
        __atomic_store_n(&heap->line[class], stook_slots_first_line(STOOK_PRECHARGE_LINE),
                         __ATOMIC_RELEASE);
}

/* The first half of a destroy. False: slots or barns are not empty. *@had: it may have sheaves. */
static bool close_cache(struct stook_cache *cache, bool *had)
{
        bool closed;

        __atomic_store_n(&cache->state, STOOK_CACHE_DYING, __ATOMIC_RELAXED);
        __atomic_store_n(&cache->slabs.reserved, 0, __ATOMIC_RELAXED);
        *had = !(stook_cache_forbid_installs(cache) & 1);
        closed = stook_barns_close(&cache->barns);
        if (cache->watch)
                stook_watch_duties.end(cache);
        return closed && stook_cache_empty(cache);
}

static void open_cache(struct stook_cache *cache, bool sheaves)
{
        stook_barns_open(&cache->barns);
        stook_cache_allow_installs(cache, cache->front.config - sheaves);
        __atomic_store_n(&cache->state, STOOK_CACHE_LIVE, __ATOMIC_RELEASE);
}

/*
 * False: a thread is inside one of the caches, or sheaves of it are lent. Those of the classes
 * below @end are closed; @sheaves[class]: it may have sheaves.
 */
static bool close_all(struct stook_heap *heap, unsigned *end, bool *sheaves)
{
        bool all = true;

        for (*end = 0; all && *end < STOOK_CLASSES; ++*end) {
                struct stook_cache *cache = stook_heap_class(heap, *end);

                if (!cache)
                        continue;
                leave_line(heap, *end);
                all = close_cache(cache, &sheaves[*end]) && !stook_cache_has_lent(cache);
        }
        return all;
}

static void reopen(struct stook_heap *heap, unsigned end, const bool *sheaves)
{
        for (unsigned class = 0; class < end; class++) {
                struct stook_cache *cache = stook_heap_class(heap, class);

                if (!cache)
                        continue;
                open_cache(cache, sheaves[class]);
                stook_heap_set_class(heap, class, cache);
        }
        set_state(heap, STOOK_HEAP_LIVE);
}

/* ---- watched caches: what watches them sees each object freed ---- */

static void free_live(void *object, void *slab, void *data)
{
        struct stook_cache *cache = data;

        (void)slab;
        if (stook_watch_duties.usable(cache, object) != STOOK_NO_OBJECT)
                stook_free_slow(cache, object, 0);
}

/* All slabs stay while they are walked over: see walk/walk.c. */
static void free_watched(struct stook_cache *cache)
{
        __atomic_store_n(&cache->slabs.reserved, UINT32_MAX, __ATOMIC_RELAXED);
        stook_slabs_for_each_out(&cache->slabs, free_live, cache);
        __atomic_store_n(&cache->slabs.reserved, 0, __ATOMIC_RELAXED);
        stook_watch_duties.end(cache);
}

/* ---- the calls ---- */

static int report_busy(struct stook_heap *heap, const char *detail)
{
        stook_report_about_found(&(struct stook_report_about){
                .fault = STOOK_FAULT_OBJECTS_LEFT, .object = heap, .heap_name = heap->name,
                .detail = detail });
        return -EBUSY;
}

/* Registry mutex held. Not inline: its stack is free again afterwards. */
static STOOK_NOINLINE int empty(struct stook_heap *heap, bool for_good)
{
        bool sheaves[STOOK_CLASSES] = { false };
        unsigned end;

        set_state(heap, STOOK_HEAP_ENDING);
        if (!close_all(heap, &end, sheaves)) {
                reopen(heap, end, sheaves);
                return report_busy(heap, "a heap's slots or barns not emptied: a thread is inside, "
                                   "membarrier is refused, or a sheaf is lent");
        }
        for (unsigned class = 0; class < STOOK_CLASSES; class++) {
                struct stook_cache *cache = stook_heap_class(heap, class);

                if (cache && STOOK_UNLIKELY(cache->watch))
                        free_watched(cache);
        }
        if (!stook_heap_drop(heap))
                return report_busy(heap, "a heap's slabs not given back: a thread frees there");
        if (!for_good) {
                reopen(heap, STOOK_CLASSES, sheaves);
                return 0;
        }
        for (unsigned class = 0; class < STOOK_CLASSES; class++) {
                struct stook_cache *cache = stook_heap_class(heap, class);

                stook_heap_set_class(heap, class, NULL);
                if (cache)
                        stook_cache_give_up(cache);
        }
        stook_heap_give(heap);
        return 0;
}

/* What waits for readers. A cache that is made meanwhile has nothing there. */
static void wait_for_readers(struct stook_heap *heap)
{
        for (unsigned class = 0; class < STOOK_CLASSES; class++) {
                struct stook_cache *cache = stook_heap_class(heap, class);

                if (cache)
                        stook_rcu_barrier_of(&cache->rcu);
        }
}

static STOOK_COLD int refuse_destroyed(struct stook_heap *heap)
{
        stook_report_about(&(struct stook_report_about){
                .fault = STOOK_FAULT_DOUBLE_FREE, .object = heap, .heap_name = heap->name,
                .detail = "a heap that was destroyed before" });
        return -EINVAL;
}

STOOK_API int stook_heap_destroy(struct stook_heap *heap)
{
        bool gone;
        int error = 0;

        if (!heap)
                return 0;
        stook_gate_check();
        if (!stook_registry_may_wait(STOOK_REFUSED("stook_heap_destroy")))
                return -EDEADLK;
        wait_for_readers(heap);
        stook_registry_wait();
        gone = heap->state == STOOK_HEAP_FREE;
        if (!gone)
                error = empty(heap, true);
        stook_registry_unlock();
        if (gone)
                return refuse_destroyed(heap);
        stook_rcu_submit_deferred();
        return error;
}

STOOK_API int stook_heap_reset(struct stook_heap *heap)
{
        int error;

        if (!heap)
                return -EINVAL;
        stook_gate_check();
        if (!stook_registry_may_wait(STOOK_REFUSED("stook_heap_reset")))
                return -EDEADLK;
        wait_for_readers(heap);
        error = stook_heap_lock(heap, STOOK_REFUSED("stook_heap_reset"));
        if (error)
                return error;
        error = empty(heap, false);
        stook_registry_unlock();
        stook_rcu_submit_deferred();
        return error;
}

STOOK_API int stook_heap_shrink(struct stook_heap *heap)
{
        bool all = true;
        int error;

        if (!heap)
                return -EINVAL;
        error = stook_heap_lock(heap, STOOK_REFUSED("stook_heap_shrink"));
        if (error)
                return error;
        for (unsigned class = 0; class < STOOK_CLASSES; class++) {
                struct stook_cache *cache = stook_heap_class(heap, class);

                if (cache)
                        all &= stook_cache_empty(cache);
        }
        stook_registry_unlock();
        stook_rcu_submit_deferred();
        return all ? 0 : -EBUSY;
}
