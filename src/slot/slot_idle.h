/*
 * Purpose: is a step of the idle reaper due on this slot? Inlined: each way to the barn asks.
 * Place: slot layer only; the step is in slot_idle.c.
 */
#ifndef STOOK_SLOT_IDLE_H
#define STOOK_SLOT_IDLE_H

#include "pages/purge.h"
#include "policy/constants.h"
#include "policy/ledger.h"
#include "slot/slot.h"

/* Takes a step of a round, and of the page layer; nothing on top of a lock's holder. */
void stook_slot_reap_now(struct stook_slot_head *own);

/* The page layer has counted a take since this slot's last round began. */
STOOK_INLINE bool stook_slot_took(const struct stook_slot_head *own)
{
        return __atomic_load_n(&own->reap_clean_takes, __ATOMIC_RELAXED) !=
                       stook_fresh_clean() ||
               __atomic_load_n(&own->reap_dirty_takes, __ATOMIC_RELAXED) !=
                       stook_fresh_dirty();
}

/*
 * What most calls find: the clock is not asked, no round is under way, and no take begins one. The
 * clock is asked by every STOOK_TICK_CALLS-th call.
 */
STOOK_INLINE void stook_slot_reap_if_due(struct stook_slot_head *own)
{
        uint16_t calls = (uint16_t)(__atomic_load_n(&own->reap_calls, __ATOMIC_RELAXED) + 1);

        __atomic_store_n(&own->reap_calls, calls, __ATOMIC_RELAXED);
        if (STOOK_UNLIKELY(!(calls % STOOK_TICK_CALLS) ||
                           __atomic_load_n(&own->reap_at, __ATOMIC_RELAXED) ||
                           __atomic_load_n(&stook_ledger_halved, __ATOMIC_RELAXED) ||
                           !__atomic_load_n(&own->used, __ATOMIC_RELAXED) ||
                           stook_slot_took(own)))
                stook_slot_reap_now(own);
}

#endif
