/*
 * Purpose: a round of what the slow paths of a busy program do by the way, and of what they cannot: for processes that
 * idle, and for slots on which nothing runs.
 * Place: API, and maintain_thread.c; calls slot, pages, os. Nothing needs it for correctness.
 *
 * A round: the hand of this thread's slot and of the barns; other nodes' barns; every slot from which nothing was taken for a decay time,
 * or on which no thread can run any more; free pages older than that. Under memory pressure: everything, as by
 * stook_trim(0).
 */
#include "cache/cache.h"
#include "life/life.h"
#include "life/maintain.h"
#include "os/os.h"
#include "pages/span.h"
#include "slot/slot.h"
#include <stook/control.h>

/* Steps of the slot's hand: each is bounded, and looks at the clock once in sixteen. A busy program's second has more. */
#define ROUND_STEPS 64

unsigned stook_maintain_round(void)
{
        unsigned work;

        if (stook_os_pressure()) {
                stook_trim_now(0);
                return 1;
        }
        for (unsigned i = 0; i < ROUND_STEPS; i++)
                stook_slot_rest();
        work = stook_slots_rest(stook_pages_decay_ms());
        return work + stook_pages_age();
}

STOOK_API int stook_maintain(void)
{
        if (!stook_start())
                return 0;
        stook_fork_check();
        stook_maintenance_revive();
        stook_maintain_round();
        /* Here, not in the thread: an RCU implementation may know threads that registered with it, and no others. */
        stook_rcu_step();
        return 0;
}
