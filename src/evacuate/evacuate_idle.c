/*
 * Purpose: a round over all slots, from outside, that gives back what idle ones keep. It is for
 * programs that ask for it: a slot whose threads run reaps its own idle sheaves (slot/slot_idle.c).
 * Place: called by life (maintain); calls the clients of evacuate.h, and barn.
 * Invariants:
 *  I1 a cache is looked at within a visit of its barns, so that a destroy waits for the round.
 * Concurrency: any number of threads may be in a round. Only one of them asks which CPUs are
 *  allowed; the others take no slot for gone.
 * Failure: none.
 */
#include <limits.h>

#include "barn/barn.h"
#include "evacuate/evacuate.h"
#include "home/home.h"
#include "os/os.h"
#include "pages/purge.h"
#include "policy/ledger.h"
#include "process/process.h"
#include "slot/slot_regions.h"

/*
 * By concurrency id, indices are small numbers, below the number of CPUs that the process may use.
 * Else an index is a CPU. Linux 6.12 may keep index 1 for a thread that is tied to one CPU. What
 * that slot keeps is then given back early.
 */
bool stook_evacuate_is_gone(unsigned slot, const struct stook_idle_look *look)
{
        const struct stook_cpus *allowed = look->allowed;

        if (slot >= stook_regions.rseq_slots || !allowed || !allowed->count)
                return false;
        if (stook_regions.index_offset == STOOK_RSEQ_MM_CID)
                return slot >= allowed->count;
        return slot < STOOK_CPUS_MAX && !(allowed->mask[slot / 64] >> slot % 64 & 1);
}

/* Barns of nodes on which no thread may be to reap them. */
static bool reap_barns(struct stook_barns *barns, struct stook_idle *idle)
{
        idle->work = UINT_MAX;
        for (unsigned node = 0; node < stook_regions.nodes; node++)
                stook_barn_reap_idle(barns, node, idle);
        return idle->work != UINT_MAX;
}

/* Sheaves of other nodes' objects, of all slots, or of those that are gone. */
static bool reap_remote(struct stook_barns *barns, const struct stook_idle_look *look)
{
        uint32_t *looked_ms = &barns->remote->looked_ms;
        bool due = look->now_ms - __atomic_load_n(looked_ms, __ATOMIC_RELAXED) >= look->after_ms;
        unsigned given = 0;

        if (due)
                __atomic_store_n(looked_ms, look->now_ms, __ATOMIC_RELAXED);
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                bool gone = stook_evacuate_is_gone(slot, look);

                if ((due || gone) && stook_slots_head(slot))
                        given += stook_home_reap(barns, slot, gone ? STOOK_LOOK_AT_ALL
                                                                   : STOOK_LOOK_OF_ROUND, UINT_MAX);
        }
        return given;
}

/* True: something of the cache was given back. */
static bool reap_cache(struct stook_barns *barns, const struct stook_idle_look *look,
                       struct stook_idle *idle)
{
        bool given = stook_evacuate_idle_pairs(barns, look);

        if (barns->remote) {
                given |= reap_remote(barns, look);
                given |= reap_barns(barns, idle);
        }
        return given;
}

/* Atomic: a thread is in a round. Its exchange acquires what the store at the end releases. */
uint32_t stook_evacuate_looking;

unsigned stook_evacuate_idle(uint32_t after_ms)
{
        /* Of the round under way: too large for the stack */
        static struct stook_cpus allowed STOOK_MOSTLY_UNUSED;
        bool alone = !__atomic_exchange_n(&stook_evacuate_looking, 1, __ATOMIC_ACQUIRE);
        struct stook_idle_look look = { .now_ms = (uint32_t)stook_os_clock_ms(),
                                        .after_ms = after_ms, .allowed = alone ? &allowed : NULL };
        struct stook_idle idle = { .now_ms = look.now_ms,
                                   .after_ms = stook_pages_decay_ms() / 8 + 1,
                                   .takes = stook_fresh_clean() +
                                            stook_fresh_dirty() };
        unsigned given = 0;

        if (alone)
                stook_process_allowed_cpus(&allowed);
        for (struct stook_barns *at = stook_barns_first(); at; at = at->next) {
                if (!stook_barns_visit_begin(at))
                        continue;
                if (at->line_index < stook_regions_lines())
                        given += reap_cache(at, &look, &idle);
                stook_barns_visit_end(at);
        }
        if (alone)
                __atomic_store_n(&stook_evacuate_looking, 0, __ATOMIC_RELEASE);
        return given;
}
