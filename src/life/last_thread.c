/*
 * Purpose: what a process keeps falls when it has one thread again. Its other threads have ended,
 * and the one that is left may make no more calls: then nothing would give back what the slots, the
 * barns and the page layer keep for the next call.
 * Place: called at the end of each thread that had enrolled (slot/slot_enrol.c); calls slot, barn
 * and pages.
 *
 * How: threads are counted, but for the first that enrolled: main, as a rule. The end that leaves
 * only that one flushes the sheaves of the slot that it is on, and of all barns, and purges what
 * lies free. It does so at most once in a decay time; in an eighth of it, if little was there. It
 * does not where the last time was in vain, because the memory was taken again: a process that
 * makes threads anew for each step of its work. Nor where the maintenance thread runs.
 * Other slots could be emptied only with membarrier, which a sandbox may not allow by now. So each
 * end that leaves fewer threads than there are slots in use flushes the slot that it is on: at most
 * as many in a decay time as there are slots. What a thread left in a slot that it is not on at its
 * end, or the first thread in its slot, stays.
 * A thread whose calls all hit, in direct sections, does not enrol (direct/direct.c). It has
 * brought nothing to the slots, barns and pages that would have to be given back at its end. One
 * that has large objects alone enrols with the first (malloc/large.c).
 * Threads of the locked backend do not enrol, so their ends are noticed only where they had large
 * objects (malloc/large.c). A thread with an rseq
 * area of ours comes here before the area is unregistered: later it would be on a locked slot.
 *
 * Concurrency: a thread's end: no call of its own is under way, but for one that was jumped out of
 *  or cancelled; then nothing is done. Two ends at once may both leave one thread; the exchange of
 *  the time lets one of them through.
 * Failure: none. Without a key for thread ends nothing is done.
 */
#include "barn/barn.h"
#include "base/lock.h"
#include "base/thread.h"
#include "gate/gate.h"
#include "life/life.h"
#include "os/os.h"
#include "pages/purge.h"
#include "policy/constants.h"
#include "policy/dirty.h"
#include "slot/slot.h"

static uint32_t due_ms;                 /* atomic, relaxed: not before this */

/* Given by one look. Less, and the next one comes soon: as much as moves the allocation clock. */
#define LITTLE (STOOK_DIRTY_LEAST / STOOK_HIGH_WATER_PART)

/*
 * True for one thread; it says when the next one is due. A wait that is over wraps around. One that
 * is longer than the decay time is from before a shorter one.
 */
static bool is_due(uint32_t now, uint32_t decay)
{
        uint32_t due = __atomic_load_n(&due_ms, __ATOMIC_RELAXED);

        if (due - now <= decay)
                return false;
        return __atomic_compare_exchange_n(&due_ms, &due, now + decay / 8, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED);
}

static void give_back(void)
{
        uint32_t now = (uint32_t)stook_os_clock_ms(), decay = stook_pages_decay_ms();

        if (!is_due(now, decay) || stook_pages_rest_refaulted())
                return;
        stook_slot_give_own();
        stook_barns_give_all();
        if (stook_pages_purge_rest() >= LITTLE)
                __atomic_store_n(&due_ms, now + decay, __ATOMIC_RELAXED);
}

/* True for as many ends in a decay time as slots are in use. Racy: one more may be let through. */
static bool may_give_slot(uint32_t now)
{
        static uint32_t since_ms, ends;         /* atomic, relaxed */

        if (now - __atomic_load_n(&since_ms, __ATOMIC_RELAXED) >= stook_pages_decay_ms()) {
                __atomic_store_n(&since_ms, now, __ATOMIC_RELAXED);
                __atomic_store_n(&ends, 0, __ATOMIC_RELAXED);
        }
        return __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED) <
                       __atomic_load_n(&stook_barn_slots, __ATOMIC_RELAXED) &&
               !stook_pages_rest_refaulted();
}

void stook_last_thread_at_end(void *self)
{
        uint32_t others = __atomic_sub_fetch(&stook_threads_live, 1, __ATOMIC_RELAXED);

        (void)self;
        if (((int32_t)others > 0 &&
             others >= __atomic_load_n(&stook_barn_slots, __ATOMIC_RELAXED)) ||
            stook_dirty_is_threaded())
                return;
        stook_gate_check();
        if (stook_lock_may_not_wait())
                return;
        /* Below 0 in a child of fork, at the end of the thread that forked. */
        if ((int32_t)others <= 0)
                give_back();
        else if (may_give_slot((uint32_t)stook_os_clock_ms()))
                stook_slot_give_own();
}

void stook_last_thread_start(void)
{
        stook_slot_set_end(stook_last_thread_at_end);
}
