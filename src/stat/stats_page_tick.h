/*
 * Purpose: the slow calls' tick for the publisher of the heap's figures (inspect/stats_page.c).
 * Place: called by slow calls of slot, cache and malloc with no lock held. The function to call is
 * handed in at start, so no layer includes one above it. Without STOOK_STATS a tick is one load and
 * a branch that is never taken.
 * Concurrency: any thread, any instruction. The hook is written at start and at the end of the
 * process, and is a function or NULL at all times; a call that began before the end may still run
 * after it.
 */
#ifndef STOOK_STATS_PAGE_TICK_H
#define STOOK_STATS_PAGE_TICK_H

#include "base/compiler.h"
#include "base/lock.h"

/* Atomic, relaxed: what it reads was there before it was set. */
extern void (*stook_stats_page_hook)(void);

STOOK_INLINE void stook_stats_page_tick(void)
{
        void (*hook)(void) = __atomic_load_n(&stook_stats_page_hook, __ATOMIC_RELAXED);

        if (STOOK_UNLIKELY(hook != NULL) && !stook_lock_may_not_wait())
                hook();
}

#endif
