/*
 * Purpose: reap idle sheaves of barns. Sheaves at the bottom of the stack that no thread needs hold
 * a few objects each of many slabs. So they pin slabs whose other objects have long been freed.
 *
 * Place: called by slot/slot_idle.c from slow calls, and by evacuate/evacuate_idle.c, with no lock
 * held; calls slab. The full stack's low-water mark says what was not needed: no thread would have
 * missed the sheaves below it since the last reap (as the thread caches in S. Ghemawat, P. Menage,
 * "TCMalloc"). A cache whose objects are freed and no more allocated has its mark at the count. It
 * goes on giving what arrives to its slabs.
 *
 * Concurrency: any thread, any instruction. All hints are relaxed; a wrong one costs a flush or a
 *  refill.
 */
#include "barn/barn_inside.h"
#include "os/os.h"
#include "pages/span.h"

static bool was_asked(struct stook_barn *barn)
{
        if (!__atomic_load_n(&barn->asked, __ATOMIC_RELAXED))
                return false;
        __atomic_store_n(&barn->asked, 0, __ATOMIC_RELAXED);
        return true;
}

static bool is_too_soon(struct stook_barn *barn, const struct stook_idle *idle)
{
        return idle->now_ms - __atomic_load_n(&barn->seen_ms, __ATOMIC_RELAXED) < idle->after_ms &&
               idle->takes == __atomic_load_n(&barn->seen_takes, __ATOMIC_RELAXED);
}

void stook_barn_reap_idle(struct stook_barns *barns, unsigned node, struct stook_idle *idle)
{
        struct stook_barn *barn = barns->node + node;
        uint32_t unneeded = __atomic_load_n(&barn->low, __ATOMIC_RELAXED);
        bool evicted = false;

        if (is_too_soon(barn, idle))
                return;
        for (; unneeded && idle->work && stook_barn_evict(barns, node); unneeded--, idle->work--)
                evicted = true;
        if (!idle->work) {
                /* The next step goes on. */
                __atomic_store_n(&barn->low, unneeded, __ATOMIC_RELAXED);
                return;
        }
        __atomic_store_n(&barn->low, stook_tagged_stack_count_racy(&barn->full), __ATOMIC_RELAXED);
        /* The next look at slots comes here, too. */
        if (!idle->barns_only)
                __atomic_store_n(&barn->seen_ms, idle->now_ms, __ATOMIC_RELAXED);
        __atomic_store_n(&barn->seen_takes, idle->takes, __ATOMIC_RELAXED);
        if (was_asked(barn)) {
                __atomic_store_n(&barn->slabs_given, 0, __ATOMIC_RELAXED);
                return;
        }
        if (!stook_barns_was_used(barns))
                stook_barns_shrink(barns);
        /* Without sheaves nothing is asked of the barn: what its slabs got is not known. */
        if (evicted || !stook_barns_capacity(barns) ||
            !__atomic_load_n(&barn->slabs_given, __ATOMIC_RELAXED)) {
                stook_slabs_give_kept(barns->below, node);
                stook_slabs_give_pages(barns->below, node, STOOK_TICK_SLABS);
                __atomic_store_n(&barn->slabs_given, 1, __ATOMIC_RELAXED);
        }
}

/* What other threads put meanwhile stays: one that only frees would keep this one here. */
static void give_all_of(struct stook_barns *barns)
{
        for (unsigned node = 0; node < stook_os_node_count(); node++) {
                uint32_t left = stook_tagged_stack_count_racy(&barns->node[node].full);

                while (left-- && stook_barn_evict(barns, node))
                        ;
                stook_slabs_give_kept(barns->below, node);
        }
}

void stook_barns_give_all(void)
{
        for (struct stook_barns *at = stook_barns_first(); at; at = at->next) {
                if (!stook_barns_visit_begin(at))
                        continue;
                stook_barns_shrink(at);
                give_all_of(at);
                stook_barns_visit_end(at);
        }
}

void stook_barns_slabs_changed(struct stook_barns *barns)
{
        for (unsigned node = 0; node < stook_os_node_count(); node++)
                __atomic_store_n(&barns->node[node].slabs_given, 0, __ATOMIC_RELAXED);
}

void stook_barn_retire(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf)
{
        if (stook_sheaf_size(sheaf)) {
                stook_barn_drain(barns, sheaf);
                __atomic_store_n(&barns->node[node].slabs_given, 0, __ATOMIC_RELAXED);
        }
        if (!stook_barn_push_empty(barns, node, sheaf))
                stook_sheaf_delete(sheaf, barns->below->counters);
}
