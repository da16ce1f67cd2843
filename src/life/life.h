/*
 * Purpose: start, options, fork. The only place that knows the order in which layers come up.
 * Concurrency: start runs once, from the constructor or from whichever call comes first (the hot path of a
 * thread that has not enrolled goes to the library, which starts itself).
 */
#ifndef STOOK_LIFE_H
#define STOOK_LIFE_H

#include <stdbool.h>
#include "base/compiler.h"

extern uint32_t stook_started;          /* atomic: 0 not, 1 starting, 2 started, 3 failed (all allocation is NULL) */

bool stook_start_slow(void);

/* True: the library is up. A handler on top of the thread that is starting it gets false. */
STOOK_INLINE bool stook_start(void)
{
        if (STOOK_LIKELY(__atomic_load_n(&stook_started, __ATOMIC_ACQUIRE) == 2))
                return true;
        return stook_start_slow();
}

/* Called by slow paths with no lock held: a child of _Fork or a raw clone repairs the heap here. */
void stook_fork_check(void);

#endif
