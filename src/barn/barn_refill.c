/*
 * Purpose: sheaves filled from the slabs and flushed into them.
 * Place: called by barn.c and barn_room.c; by prefill, home and evacuate, and by cache and limit
 *  (destroy, tuning, shrink); calls slab and the page layer's step. Every busy program comes this
 *  way now and then, with no lock held. So it is also the clock of the page layer's ageing.
 * Invariants:
 *  I1 a refill that gets less than it asked for gives all of it back: nothing is lost.
 * Concurrency: works on sheaves that the caller owns; no lock held.
 */
#include "barn/barn_inside.h"
#include "base/probe.h"
#include "os/os.h"
#include "pages/purge.h"
#include "stat/counter.h"

void stook_barn_step(void)
{
        stook_pages_step();
        stook_stats_page_tick();
}

/*
 * For a sheaf that no caller brought: as small as what goes into it. So is a cache's first one on a
 * slot. One of full size for each class that a short program uses once is more than its objects.
 * They go when they are empty, like all sheaves that are not of the cache's capacity (barn.h).
 */
static unsigned capacity_for(const struct stook_barns *barns, unsigned most)
{
        unsigned capacity = stook_barns_capacity(barns), small;

        if (STOOK_LIKELY(most >= capacity))
                return capacity;
        small = stook_sheaf_round_capacity(most);
        return small < capacity ? small : capacity;
}

struct stook_sheaf *stook_barn_refill(struct stook_barns *barns, unsigned node,
                                      struct stook_sheaf *empty, unsigned most)
{
        struct stook_sheaf *sheaf = empty;
        unsigned size;
        size_t   want, got;

        /* A tuner ended the cache's sheaves: one without an object would not be full. */
        if (STOOK_UNLIKELY(!most))
                return NULL;
        if (!sheaf)
                sheaf = stook_sheaf_new(barns->cache_index, capacity_for(barns, most), node,
                                        barns->slabs->counters);
        if (!sheaf)
                return NULL;
        size = stook_sheaf_size(sheaf);
        want = sheaf->capacity - size;
        if (want > most)
                want = most;
        got = stook_slab_fill(barns->slabs, node, want, sheaf->objects + size,
                              STOOK_FILL_FOR_SHEAF);
        if (got < want) {
                if (got)
                        stook_slab_drain(barns->slabs, got, sheaf->objects + size);
                if (!empty)
                        stook_sheaf_delete(sheaf, barns->slabs->counters);
                return NULL;
        }
        stook_sheaf_set_size(sheaf, size + (unsigned)want);
        stook_count(barns->slabs->counters, STOOK_STAT_sheaf_refill, want);
        STOOK_PROBE3(sheaf_refill, barns->cache_index, want, node);
        stook_barn_step();
        return sheaf;
}

void stook_barn_fill(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf)
{
        unsigned size = stook_sheaf_size(sheaf);
        size_t   got = stook_slab_fill(barns->slabs, node, sheaf->capacity - size,
                                       sheaf->objects + size, STOOK_FILL_FOR_SHEAF);

        stook_sheaf_set_size(sheaf, size + (unsigned)got);
        stook_count(barns->slabs->counters, STOOK_STAT_sheaf_refill, got);
        STOOK_PROBE3(sheaf_refill, barns->cache_index, got, node);
        stook_barn_step();
}

void stook_barn_fill_for_put(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf)
{
        if (stook_barn_has_room(barns, node))
                stook_barn_fill(barns, node, sheaf);
}

void stook_barn_flush(struct stook_barns *barns, struct stook_sheaf *sheaf)
{
        stook_barn_drain(barns, sheaf);
        stook_barn_step();
}

void stook_barn_discard(struct stook_barns *barns, struct stook_sheaf *sheaf)
{
        stook_barn_flush(barns, sheaf);
        stook_sheaf_delete(sheaf, barns->slabs->counters);
}

bool stook_barn_evict(struct stook_barns *barns, unsigned node)
{
        struct stook_sheaf *full = stook_barn_pop_full(barns, node);

        if (!full)
                return false;
        stook_barn_drain(barns, full);
        stook_sheaf_delete(full, barns->slabs->counters);
        return true;
}

void stook_barn_empty_all(struct stook_barns *barns)
{
        for (unsigned node = 0; node < stook_os_node_count(); node++) {
                struct stook_sheaf *empty;

                while (stook_barn_evict(barns, node))
                        ;
                while ((empty = stook_barn_pop_empty(barns, node)))
                        stook_sheaf_delete(empty, barns->slabs->counters);
        }
}
