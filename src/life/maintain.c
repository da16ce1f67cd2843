/*
 * Purpose: a round of maintenance, for processes that idle, and for slots on which no thread runs.
 * It does what the slow calls of a busy program do step by step, and what they cannot do.
 * Place: API, and maintain_thread.c; calls slot, pages, os. Nothing needs it for correctness.
 *
 * A round reaps this thread's slot and the barns; other nodes' barns; every slot from which nothing
 * was taken for a decay time, or on which no thread can run any more; free pages older than a decay
 * time. Under memory pressure it gives back everything, as stook_trim(0) does.
 */
#include "cache/cache.h"
#include "evacuate/evacuate.h"
#include "gate/gate.h"
#include "life/maintain.h"
#include "pages/purge.h"
#include "process/process.h"
#include "slot/slot.h"
#include <stook/control.h>

/*
 * Steps of the slot's idle reaper: each is bounded, and reads the clock once in sixteen. A busy
 * program makes more of them in a second.
 */
#define ROUND_STEPS 64

unsigned stook_maintain_round(void)
{
        unsigned work;

        if (stook_process_pressure()) {
                stook_trim_now(0);
                return 1;
        }
        for (unsigned i = 0; i < ROUND_STEPS; i++)
                stook_slot_reap_idle();
        work = stook_evacuate_idle(stook_pages_decay_ms());
        return work + stook_pages_age();
}

STOOK_API int stook_maintain(void)
{
        if (!stook_gate_open())
                return 0;
        stook_gate_check();
        stook_maintenance_revive();
        stook_maintain_round();
        /* Not in the thread: an RCU implementation may know only threads that registered. */
        stook_rcu_maintain();
        return 0;
}
