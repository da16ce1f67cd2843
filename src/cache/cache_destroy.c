/*
 * Purpose: empty a cache: for good (destroy), or as far as it goes (shrink).
 * Place: API; calls slot, barn and slab from above, in the order in which objects go down.
 * Invariants:
 *  I1 a cache is given up only when no object is out of its slabs and no sheaf of it is left, lent
 *     ones included. Until then it is whole and usable.
 * Concurrency: registry mutex; alloc and free of the cache may go on during a shrink.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cache/cache_watch.h"
#include "evacuate/evacuate.h"
#include "gate/gate.h"
#include "pages/span.h"
#include "report/report.h"
#include "stat/gone.h"

/* Objects named one by one in the report of a destroy. */
#define LEFT_NAMED 16

bool stook_cache_empty(struct stook_cache *cache)
{
        bool submitted = stook_rcu_cache_evacuate(&cache->rcu);
        bool evacuated = stook_evacuate_cache(&cache->front) && submitted;

        stook_barn_empty_all(&cache->barns);
        stook_slabs_shrink(&cache->slabs);
        return evacuated;
}

/*
 * Lent sheaves whose objects are told from those that users hold. If more are lent, the report
 * names no object.
 */
#define LENT_KNOWN 32

struct left {
        const struct stook_cache *cache;
        const struct stook_sheaf *lent[LENT_KNOWN];
        size_t sheaves, named;
};

static void note_lent(struct stook_sheaf *sheaf, void *data)
{
        struct left *left = data;

        if (!stook_sheaf_is_lent(sheaf))
                return;
        if (left->sheaves < LENT_KNOWN)
                left->lent[left->sheaves] = sheaf;
        left->sheaves++;
}

static bool is_in_lent(const struct left *left, const void *object)
{
        for (size_t i = 0; i < left->sheaves; i++)
                for (unsigned k = 0; k < stook_sheaf_size(left->lent[i]); k++)
                        if (left->lent[i]->objects[k] == object)
                                return true;
        return false;
}

static void name_left(void *object, void *slab, void *data)
{
        struct stook_report_about about;
        struct left *left = data;

        if (left->named == LEFT_NAMED || is_in_lent(left, object))
                return;
        left->named++;
        about = (struct stook_report_about){
                .fault = STOOK_FAULT_OBJECTS_LEFT, .object = object,
                .cache_name = stook_cache_name(left->cache), .slab = slab,
                .offset = (uintptr_t)object - (uintptr_t)slab,
        };
        if (left->cache->watch)
                stook_watch_duties.describe(left->cache, object, &about);
        stook_report_about_found(&about);
}

struct lent {
        size_t sheaves, objects;
};

static void count_lent(struct stook_sheaf *sheaf, void *data)
{
        struct lent *lent = data;

        if (stook_sheaf_is_lent(sheaf)) {
                lent->sheaves++;
                lent->objects += stook_sheaf_size(sheaf);
        }
}

/* Of a cache that was emptied. Most times there is no sheaf left that could be lent. */
static struct lent lent_sheaves(const struct stook_cache *cache)
{
        struct lent lent = { 0 };

        if (stook_counted(&cache->counters, STOOK_STAT_sheaf_alloc) !=
            stook_counted(&cache->counters, STOOK_STAT_sheaf_free))
                stook_sheaf_for_each(cache->index, count_lent, &lent);
        return lent;
}

bool stook_cache_has_lent(const struct stook_cache *cache)
{
        return lent_sheaves(cache).sheaves;
}

static void report_lent(const struct stook_cache *cache, struct lent lent)
{
        char detail[112];

        stook_report_format(detail, sizeof(detail),
                            lent.sheaves == 1 ?
                            "%u prefilled sheaf not returned at destroy, %u objects in it" :
                            "%u prefilled sheaves not returned at destroy, %u objects in them",
                            (uint64_t)lent.sheaves, (uint64_t)lent.objects);
        stook_report_found(STOOK_FAULT_OBJECTS_LEFT, NULL, stook_cache_name(cache), NULL, 0,
                           detail);
}

static STOOK_NOINLINE void report_left(struct stook_cache *cache, size_t objects)
{
        struct left left = { .cache = cache };
        char detail[64];

        stook_report_format(detail, sizeof(detail), "%u still allocated at destroy",
                            (uint64_t)objects);
        stook_report_found(STOOK_FAULT_OBJECTS_LEFT, NULL, stook_cache_name(cache), NULL, 0,
                           detail);
        stook_sheaf_for_each(cache->index, note_lent, &left);
        if (left.sheaves <= LENT_KNOWN)
                stook_slabs_for_each_out(&cache->slabs, name_left, &left);
}

/* Registry mutex held. DYING: a child forked beside a destroy may finish it. */
static bool is_known(const struct stook_cache *cache)
{
        return cache->state == STOOK_CACHE_LIVE || cache->state == STOOK_CACHE_DYING;
}

static STOOK_COLD void report_destroyed(enum stook_fault fault, const struct stook_cache *cache)
{
        stook_report_fault(fault, cache, stook_cache_name(cache), NULL, 0,
                           "a cache that was destroyed before");
}

void stook_cache_report_destroyed(const struct stook_cache *cache)
{
        report_destroyed(STOOK_FAULT_NOT_LIVE, cache);
}

int stook_cache_lock(struct stook_cache *cache, const char *refusal)
{
        if (!stook_registry_lock(refusal))
                return -EDEADLK;
        if (STOOK_LIKELY(is_known(cache)))
                return 0;
        stook_registry_unlock();
        stook_cache_report_destroyed(cache);
        return -EINVAL;
}

/* Its sheaves are gone, so the counters have everything (stat/counter.h). */
static void remember(const struct stook_cache *cache)
{
        struct stook_gone gone = {
                .object_size = stook_cache_object_size(cache),
                .stride = cache->slabs.stride,
                .objects_per_slab = cache->slabs.objects,
                .slab_bytes = cache->slabs.slab_bytes,
                .slabs_peak = __atomic_load_n(&cache->slabs.slabs_peak, __ATOMIC_RELAXED),
                .objects_peak = __atomic_load_n(&cache->slabs.objects_peak, __ATOMIC_RELAXED),
        };

        if (!stook_counted(&cache->counters, STOOK_STAT_alloc_slab))
                return;
        for (unsigned i = 0; i < STOOK_STAT_COUNT; i++)
                gone.counted[i] = stook_counted(&cache->counters, i);
        strcpy(gone.name, stook_cache_name(cache));
        stook_gone_add(&gone);
}

/* A cache that a destroy makes ready to go, and what keeps it from going. */
struct ending {
        struct stook_cache *cache;
        uint32_t generation, reserved;  /* as they were, for a cache that stays */
        bool closed, evacuated;         /* false: another thread is inside */
        size_t objects;                 /* out of their slabs, those in lent sheaves included */
        struct lent lent;
};

/* Registry mutex held. From here on the cache is DYING, and no other thread puts sheaves there. */
static void begin_end(struct ending *e)
{
        struct stook_cache *cache = e->cache;

        __atomic_store_n(&cache->state, STOOK_CACHE_DYING, __ATOMIC_RELAXED);
        e->reserved = __atomic_exchange_n(&cache->slabs.reserved, 0, __ATOMIC_RELAXED);
        e->generation = stook_cache_forbid_installs(cache);
        e->closed = stook_barns_close(&cache->barns);
        if (cache->watch)
                stook_watch_duties.end(cache);
        e->evacuated = e->closed && stook_cache_empty(cache);
        if (e->evacuated) {
                e->objects = stook_slabs_objects_out(&cache->slabs);
                e->lent = lent_sheaves(cache);
        }
}

/* I1 */
static bool may_go(const struct ending *e)
{
        return e->evacuated && !e->objects && !e->lent.sheaves;
}

/*
 * Stale calls find nothing, though the cache's indices may be another cache's next: one of them
 * that one's second index, whose struct stays this one.
 */
static void leave_lines(struct stook_cache *cache)
{
        cache->front.line = stook_slots_first_line(STOOK_PRECHARGE_LINE);
        cache->front.offset = 0;
}

/* Not inline: its stack is not needed while the slots are evacuated. */
STOOK_NOINLINE void stook_cache_give_up(struct stook_cache *cache)
{
        unsigned second;

        cache->edge = STOOK_EDGE_GONE;
        leave_lines(cache);
        stook_rcu_cache_end(&cache->rcu);
        stook_barns_end(&cache->barns);
        remember(cache);
        stook_registry_withdraw(cache);         /* its barns stay closed until the next use */
        /*
         * Forgotten first: the child of a fork in between loses it. Else it would find a cache that
         * may be destroyed again, and give that index twice.
         */
        second = cache->second_index;
        __atomic_store_n(&cache->second_index, 0, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        if (second)
                stook_registry_give(stook_cache_at(second));
        stook_registry_give(cache);
}

/* I1: the cache is usable as before. */
static void let_live(const struct ending *e)
{
        struct stook_cache *cache = e->cache;

        stook_barns_open(&cache->barns);
        __atomic_store_n(&cache->slabs.reserved, e->reserved, __ATOMIC_RELAXED);
        stook_cache_allow_installs(cache, e->generation);
        __atomic_store_n(&cache->state, STOOK_CACHE_LIVE, __ATOMIC_RELEASE);
}

/* Not inline: as above. */
static STOOK_NOINLINE void report_why_it_lives(const struct ending *e)
{
        if (!e->evacuated)
                stook_report_found(STOOK_FAULT_OBJECTS_LEFT, NULL, stook_cache_name(e->cache), NULL,
                                   0, e->closed ?
                                   "slots not emptied at destroy: membarrier is refused, "
                                   "or a thread is stopped in one" :
                                   "barns not emptied at destroy: another thread is inside");
        if (e->lent.sheaves)
                report_lent(e->cache, e->lent);
        if (e->objects > e->lent.objects)
                report_left(e->cache, e->objects - e->lent.objects);
}

/* Registry mutex held. Return: 0; -EBUSY: the cache lives on, and what keeps it was reported. */
static int end_or_let_live(struct stook_cache *cache)
{
        struct ending e = { .cache = cache };

        begin_end(&e);
        if (may_go(&e)) {
                stook_cache_give_up(cache);
                return 0;
        }
        let_live(&e);
        report_why_it_lives(&e);
        return -EBUSY;
}

STOOK_API int stook_cache_destroy(struct stook_cache *cache)
{
        int error;

        if (!cache)
                return 0;
        if (stook_registry_is_class(cache))
                return -EINVAL;
        stook_gate_check();
        if (!stook_registry_may_wait(STOOK_REFUSED("stook_cache_destroy")))
                return -EDEADLK;
        stook_rcu_barrier_of(&cache->rcu);
        stook_registry_wait();
        if (!is_known(cache)) {
                stook_registry_unlock();
                report_destroyed(STOOK_FAULT_DOUBLE_FREE, cache);
                return -EINVAL;
        }
        if (cache->references > 1) {
                cache->references--;
                stook_registry_unlock();
                return 0;
        }
        error = end_or_let_live(cache);
        stook_registry_unlock();
        if (!error)
                stook_rcu_submit_deferred();
        return error;
}

STOOK_API int stook_cache_shrink(struct stook_cache *cache)
{
        size_t slabs;
        int error;

        if (!cache)
                return -EINVAL;
        error = stook_cache_lock(cache, STOOK_REFUSED("stook_cache_shrink"));
        if (error)
                return error;
        stook_cache_empty(cache);
        slabs = stook_slabs_count(&cache->slabs);
        stook_registry_unlock();
        stook_rcu_submit_deferred();
        return slabs < INT_MAX ? (int)slabs : INT_MAX;
}
