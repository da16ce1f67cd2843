/*
 * Purpose: sheaves filled from the slabs and flushed into them.
 * Place: called by slot's misses and drains, and by cache (destroy, shrink); calls slab. Being the slow path that
 * every busy program takes now and then, with no lock held, it is also the clock of the page layer's ageing.
 * Invariants:
 *  I1 a refill that gets less than a full sheaf gives all of it back: nothing is lost with the sheaf.
 * Concurrency: works on sheaves that the caller owns; no lock held.
 */
#include "barn/barn.h"
#include "os/os.h"
#include "pages/span.h"
#include "stat/stats_page_tick.h"

struct stook_sheaf *stook_barn_refill(struct stook_barns *barns, unsigned node, struct stook_sheaf *empty,
                                      unsigned flags)
{
        struct stook_sheaf *sheaf = empty;
        unsigned size;
        size_t   want, got;

        if (!sheaf)
                sheaf = stook_sheaf_new(barns->cache_index, stook_barns_capacity(barns), node, barns->counters);
        if (!sheaf)
                return NULL;
        size = stook_sheaf_size(sheaf);
        want = sheaf->capacity - size;
        got = stook_slab_fill(barns->below, node, want, sheaf->objects + size, flags | STOOK_FILL_FOR_SHEAF);
        if (got < want) {
                if (got)
                        stook_slab_drain(barns->below, got, sheaf->objects + size);
                if (!empty)
                        stook_sheaf_delete(sheaf, barns->counters);
                return NULL;
        }
        stook_sheaf_set_size(sheaf, sheaf->capacity);
        stook_count(barns->counters, STOOK_STAT_sheaf_refill, want);
        stook_barns_refilled(barns);
        stook_pages_step();
        stook_stats_page_tick();
        return sheaf;
}

void stook_barn_fill(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf)
{
        unsigned size = stook_sheaf_size(sheaf);
        size_t   got = stook_slab_fill(barns->below, node, sheaf->capacity - size, sheaf->objects + size,
                                       STOOK_FILL_FOR_SHEAF);

        stook_sheaf_set_size(sheaf, size + (unsigned)got);
        stook_count(barns->counters, STOOK_STAT_sheaf_refill, got);
        stook_pages_step();
        stook_stats_page_tick();
}

static void flush(struct stook_barns *barns, struct stook_sheaf *sheaf)
{
        unsigned size = stook_sheaf_size(sheaf);

        if (!size)
                return;
        stook_slab_drain(barns->below, size, sheaf->objects);
        stook_sheaf_set_size(sheaf, 0);
        stook_count(barns->counters, STOOK_STAT_sheaf_flush, size);
}

void stook_barn_flush(struct stook_barns *barns, struct stook_sheaf *sheaf)
{
        flush(barns, sheaf);
        stook_barn_lend(barns, stook_sheaf_node(sheaf));
        stook_pages_step();
        stook_stats_page_tick();
}

void stook_barn_dispose(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf)
{
        if (stook_sheaf_size(sheaf)) {
                if (stook_sheaf_full(sheaf) && stook_barn_put_full(barns, node, sheaf))
                        return;
                flush(barns, sheaf);
                stook_barns_flushed(barns);
        }
        if (!stook_barn_put_empty(barns, node, sheaf))
                stook_sheaf_delete(sheaf, barns->counters);
}

bool stook_barn_evict(struct stook_barns *barns, unsigned node)
{
        struct stook_sheaf *full = stook_barn_get_full(barns, node);

        if (!full)
                return false;
        flush(barns, full);
        stook_sheaf_delete(full, barns->counters);
        return true;
}

void stook_barn_empty_all(struct stook_barns *barns)
{
        for (unsigned node = 0; node < stook_os_node_count(); node++) {
                struct stook_sheaf *empty;

                while (stook_barn_evict(barns, node))
                        ;
                while ((empty = stook_barn_get_empty(barns, node)))
                        stook_sheaf_delete(empty, barns->counters);
        }
}
