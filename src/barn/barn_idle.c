/*
 * Purpose: take from barns what nobody needs: a few objects each of many slabs, in sheaves that lie at the bottom of
 * the stack, pin all those slabs, whose other objects have long been freed.
 *
 * Place: called by slot/slot_idle.c from slow paths, with no lock held; calls slab.
 * The full stack's low-water mark says what was not needed: sheaves below it would have been missed by nobody since
 * the last look (as the thread caches in S. Ghemawat, P. Menage, "TCMalloc"). A cache whose objects are only freed any
 * more, never allocated, has its mark at the count: it goes on giving what arrives to its slabs.
 *
 * Concurrency: any thread, any instruction. All hints are relaxed; a wrong one costs a flush or a refill.
 */
#include "barn/barn.h"
#include "os/os.h"
#include "pages/span.h"

static bool asked_for(struct stook_barn *barn)
{
        if (!(__atomic_load_n(&barn->traded, __ATOMIC_RELAXED) & STOOK_BARN_RESTED))
                return false;
        __atomic_fetch_and(&barn->traded, ~STOOK_BARN_RESTED, __ATOMIC_RELAXED);
        return true;
}

static bool is_young(struct stook_barn *barn, const struct stook_idle *idle)
{
        return idle->now_ms - __atomic_load_n(&barn->seen_ms, __ATOMIC_RELAXED) < idle->after_ms &&
               idle->growths == __atomic_load_n(&barn->seen_growths, __ATOMIC_RELAXED);
}

void stook_barn_rest(struct stook_barns *barns, unsigned node, struct stook_idle *idle)
{
        struct stook_barn *barn = barns->node + node;
        uint32_t unneeded = __atomic_load_n(&barn->low, __ATOMIC_RELAXED);
        bool evicted = false;

        if (is_young(barn, idle))
                return;
        for (; unneeded && idle->work && stook_barn_evict(barns, node); unneeded--, idle->work--)
                evicted = true;
        if (!idle->work) {
                __atomic_store_n(&barn->low, unneeded, __ATOMIC_RELAXED);       /* the next step goes on */
                return;
        }
        __atomic_store_n(&barn->low, stook_tagged_stack_count_racy(&barn->full), __ATOMIC_RELAXED);
        __atomic_store_n(&barn->seen_ms, idle->now_ms, __ATOMIC_RELAXED);
        __atomic_store_n(&barn->seen_growths, idle->growths, __ATOMIC_RELAXED);
        if (asked_for(barn)) {
                __atomic_store_n(&barn->bare, 0, __ATOMIC_RELAXED);
                return;
        }
        stook_barns_shrink(barns);
        if (evicted || !__atomic_load_n(&barn->bare, __ATOMIC_RELAXED)) {
                stook_slabs_give_kept(barns->below, node);
                __atomic_store_n(&barn->bare, 1, __ATOMIC_RELAXED);
        }
}

void stook_barns_stir(struct stook_barns *barns)
{
        for (unsigned node = 0; node < stook_os_node_count(); node++)
                __atomic_store_n(&barns->node[node].bare, 0, __ATOMIC_RELAXED);
}

void stook_barn_retire(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf)
{
        unsigned size = stook_sheaf_size(sheaf);

        if (size) {
                stook_slab_drain(barns->below, size, sheaf->objects);
                stook_sheaf_set_size(sheaf, 0);
                stook_count(barns->counters, STOOK_STAT_sheaf_flush, size);
                __atomic_store_n(&barns->node[node].bare, 0, __ATOMIC_RELAXED);
        }
        if (!stook_barn_put_empty(barns, node, sheaf))
                stook_sheaf_delete(sheaf, barns->counters);
}
