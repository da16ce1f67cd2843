/*
 * Purpose: see gate.h. The two words that slow calls look at, and the check of the second one.
 */
#include "gate/gate.h"

#include "base/alone.h"
#include "base/lock.h"

static uint32_t always_whole = STOOK_HEAP_WHOLE;

/*
 * Among the variables that are not zero at first: the loader has written to their page, so the
 * start's first look is no page fault.
 */
uint32_t stook_gate_state __attribute__((section(".data")));
/* This one until the start. */
uint32_t *stook_gate_heap = &always_whole;

void stook_gate_check(void)
{
        if (STOOK_UNLIKELY(stook_lock_may_not_wait()) && stook_lock_heal())
                stook_gate_duties.recover();

        uint32_t heap = __atomic_load_n(stook_gate_heap, __ATOMIC_RELAXED);

        if (STOOK_UNLIKELY(heap != STOOK_HEAP_WHOLE &&
                           (heap != STOOK_HEAP_ALONE || !stook_has_one_thread())))
                stook_gate_duties.repair();
}
