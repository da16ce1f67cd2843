/*
 * Purpose: the allocation clock: it moves when much memory was taken from the pages. Memory goes
 * from one use to another then, or what the layers above keep idle is missed; each move lets them
 * look for it (slot/slot_idle.c, barn/barn_idle.c).
 * Place: span.c tells of each span that is handed out.
 * How: clean memory is taken when no dirty span fits. Each part of it moves the clock: a look costs
 *  some microseconds, the pages hundreds. Dirty memory costs nothing, so it moves the clock once in
 *  a part of the decay time, and only barns are looked at. A program whose objects stay in its
 *  sheaves takes hardly any, and then only time lets them go.
 * Concurrency: relaxed words. Two threads may count one move together, or lose some bytes.
 */
#ifndef STOOK_FRESH_H
#define STOOK_FRESH_H

#include "policy/ledger.h"

extern struct stook_fresh {
        uint32_t clean, dirty;          /* atomic, relaxed: moves */
} stook_fresh STOOK_HIDDEN;

STOOK_INLINE uint32_t stook_fresh_clean(void)
{
        return __atomic_load_n(&stook_fresh.clean, __ATOMIC_RELAXED);
}

STOOK_INLINE uint32_t stook_fresh_dirty(void)
{
        return __atomic_load_n(&stook_fresh.dirty, __ATOMIC_RELAXED);
}

/* @bytes are handed out: without content, pages that the system has to find; or with. */
void stook_fresh_take(struct stook_ledger *ledger, size_t bytes, bool clean, uint32_t decay_ms);

#endif
