/*
 * Purpose: see cache_slow.h.
 * Failure: an allocation that fails changes nothing. A free never fails; misuse is reported.
 */
#include "cache/cache_slow.h"

#include "home/home.h"
#include "os/os.h"
#include "slot/slot_trip.h"

/* ---- the edges ---- */

static STOOK_COLD void *alloc_gone(struct stook_cache *cache, uint64_t how)
{
        stook_cache_report_destroyed(cache);
        return stook_slow_answer(how, NULL, 0);
}

static STOOK_COLD bool alloc_bulk_gone(struct stook_cache *cache, size_t n, void **objects,
                                       uint64_t how)
{
        (void)n, (void)objects, (void)how;
        stook_cache_report_destroyed(cache);
        return false;
}

static const struct stook_edge_calls gone_edge = {
        alloc_gone, stook_free_plain, alloc_bulk_gone, stook_free_bulk_plain,
};

static const struct stook_edge_calls *const edges[] = {
        [STOOK_EDGE_ACCOUNT] = &stook_account_edge,
        [STOOK_EDGE_WATCH] = &stook_watch_edge,
        [STOOK_EDGE_GONE] = &gone_edge,
};

void *stook_alloc_slow(struct stook_cache *cache, uint64_t how)
{
        return STOOK_UNLIKELY(cache->edge) ? edges[cache->edge]->alloc(cache, how)
                                           : stook_alloc_plain(cache, how);
}

void stook_free_slow(struct stook_cache *cache, void *object, uint64_t how)
{
        if (STOOK_UNLIKELY(cache->edge))
                edges[cache->edge]->free(cache, object, how);
        else
                stook_free_plain(cache, object, how);
}

bool stook_alloc_bulk_slow(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        return STOOK_UNLIKELY(cache->edge) ? edges[cache->edge]->alloc_bulk(cache, n, objects, how)
                                           : stook_alloc_bulk_plain(cache, n, objects, how);
}

void stook_free_bulk_slow(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        if (STOOK_UNLIKELY(cache->edge))
                edges[cache->edge]->free_bulk(cache, n, objects, how);
        else
                stook_free_bulk_plain(cache, n, objects, how);
}

/* ---- allocations ---- */

/* The node that @how names. */
static STOOK_NOINLINE unsigned node_of(uint64_t how)
{
        int named = stook_how_node(how);

        return named < 0 ? stook_os_node_home(stook_slot_node()) : (unsigned)named;
}

/* Many that slot and barn did not have; all or none. */
static size_t alloc_from_slabs(struct stook_cache *cache, size_t n, void **objects)
{
        size_t got = stook_slab_fill(&cache->slabs, stook_slot_node(), n, objects,
                                     STOOK_FILL_ASCENDING);

        if (STOOK_LIKELY(got == n)) {
                stook_count(&cache->counters, STOOK_STAT_alloc_slowpath, n);
                stook_slot_sample_from_slabs(&cache->front, n);
                return n;
        }
        /* These objects are not counted as allocated yet, because no user had them. */
        stook_slab_drain(&cache->slabs, got, objects);
        return 0;
}

static size_t alloc_of_node(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        unsigned node = node_of(how);
        size_t got = 0;

        while (got < n && (objects[got] = stook_home_get(&cache->front, node,
                                                         how & STOOK_HOW_THISNODE)))
                got++;
        return got;
}

/*
 * What the hot sections do not have: the one way of allocations into the layers below. Returns how
 * many there were. A slot that is asked for one object gets a sheaf. It is not asked for many: it
 * has given all of its own. Inlined, with @n known, for the depth of the stack. *@how then says if
 * objects were asked back: a word of its own would make a frame of the deepest path larger.
 */
STOOK_INLINE size_t alloc_below(struct stook_cache *cache, size_t n, void **objects, uint64_t *how)
{
        size_t got = 0;

        do {
                stook_slow_begin(*how);
                if (STOOK_UNLIKELY(*how & STOOK_HOW_NODE) && stook_slots_by_node)
                        got += alloc_of_node(cache, n - got, objects + got, *how);
                else if (n > 1)
                        got = alloc_from_slabs(cache, n, objects);
                else
                        got = (objects[0] = stook_slot_get(&cache->front, true)) != NULL;
                stook_slow_end(*how);
                if (STOOK_UNLIKELY(got < n) && cache->slabs.run_asks)
                        got += stook_limit_duties.memory(cache, n - got, objects + got, *how);
        } while (STOOK_UNLIKELY(got < n) && stook_slow_reclaim(cache, n - got, *how) &&
                 (*how |= STOOK_HOW_ASKED));
        return got;
}

/*
 * The straight line is the usual miss; what is left over goes the same way once more, with all that
 * may help.
 */
void *stook_alloc_plain(struct stook_cache *cache, uint64_t how)
{
        void *object = NULL;

        if (STOOK_LIKELY(!(how & (STOOK_HOW_NODE | STOOK_HOW_NOLOCK)))) {
                stook_gate_check();
                /* Malloc's calls say a size while there are samples, which may be spans. */
                object = stook_slot_get(&cache->front, !stook_how_has_size(how));
                if (STOOK_UNLIKELY(object == STOOK_SLOT_SAMPLE) &&
                    (object = stook_sample_duties.take(cache, how)))
                        return object;
        }
        if (STOOK_UNLIKELY(!object))
                alloc_below(cache, 1, &object, &how);   /* none: NULL */
        return stook_slow_answer(how, object, stook_slow_bytes(cache));
}

/* ---- frees ---- */

/*
 * What the hot sections do not take: the one way of frees into the layers below. As above, a slot
 * that is given one object gets a sheaf with room, and many go to the slabs.
 */
STOOK_INLINE void free_below(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        stook_slow_begin(how);
        if (n > 1) {
                stook_count(&cache->counters, STOOK_STAT_free_slowpath, n);
                stook_slab_drain(&cache->slabs, n, objects);
        } else {
                stook_slot_put(&cache->front, objects[0], stook_cache_free_double);
        }
        stook_slow_end(how);
}

/* The usual call ends by the slot's. */
STOOK_NOINLINE void stook_free_plain(struct stook_cache *cache, void *object, uint64_t how)
{
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK)) {
                free_below(cache, 1, &object, how);
                return;
        }
        stook_gate_check();
        stook_slot_put(&cache->front, object, stook_cache_free_double);
}

/* ---- many ---- */

void stook_free_bulk_plain(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        size_t pushed;

        if (STOOK_UNLIKELY(stook_slots_by_node))
                n = stook_home_sort(&cache->front, n, objects);
        pushed = stook_slot_free_bulk(&cache->front, n, objects);
        if (pushed < n)
                free_below(cache, n - pushed, objects + pushed, how);
}

/* All or none. */
static bool alloc_all(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        size_t got = 0;

        if (STOOK_UNLIKELY(how & STOOK_HOW_THISNODE) && stook_slots_by_node)
                how = stook_how_with_node(how, -1);
        else
                got = stook_slot_alloc_bulk(&cache->front, n, objects);
        if (got == n)
                return true;
        got += alloc_below(cache, n - got, objects + got, &how);
        if (got < n)
                stook_free_bulk_plain(cache, got, objects, how);
        return got == n;
}

bool stook_alloc_bulk_plain(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        bool all;

        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK))
                stook_lock_raise(0);
        all = alloc_all(cache, n, objects, how);
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK))
                stook_lock_lower();
        for (size_t i = 0; all && (how & STOOK_HOW_ZERO) && i < n; i++)
                memset(objects[i], 0, stook_slow_bytes(cache));
        return all;
}
