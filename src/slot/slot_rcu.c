/*
 * Purpose: see slot_rcu.h.
 * Two counts, and newcomers raise the one that the last waiter did not look at: so who waits is not kept by a
 * stream of newcomers, and still has seen both counts zero once after it began.
 *
 * Concurrency: M1: who raises a count does so before he takes a sheaf by a releasing read-modify-write; who waits
 *  has looked for the sheaf there, acquiring, before he looks at the counts. So if the sheaf was gone he sees the
 *  count. M2: the release of a count pairs with the waiter's acquire: the submission is over.
 */
#include <stdint.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "os/os.h"
#include "slot/slot_rcu.h"

#define WAIT_NS 1000000

static uint32_t phase;                  /* atomic, a hint: which count newcomers raise */
static uint32_t in_transit[2] STOOK_ALIGNED(STOOK_CACHELINE);   /* M1, M2 */

/* The thread's own share of a count, for the child of a fork in a handler. */
static unsigned mine(unsigned at)
{
        return stook_self->barred >> (at ? STOOK_SELF_TRANSIT1_SHIFT : STOOK_SELF_TRANSIT0_SHIFT) & STOOK_SELF_TRANSIT_MASK;
}

static uint8_t one(unsigned at)
{
        return (uint8_t)(1 << (at ? STOOK_SELF_TRANSIT1_SHIFT : STOOK_SELF_TRANSIT0_SHIFT));
}

int stook_transit_enter(void)
{
        unsigned at = __atomic_load_n(&phase, __ATOMIC_RELAXED);

        if (STOOK_UNLIKELY(mine(at) == STOOK_SELF_TRANSIT_MASK))
                return -1;
        stook_self->barred = (uint8_t)(stook_self->barred + one(at));
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        __atomic_fetch_add(&in_transit[at], 1, __ATOMIC_SEQ_CST);       /* M1 */
        return (int)at;
}

void stook_transit_leave(int ticket)
{
        __atomic_fetch_sub(&in_transit[ticket], 1, __ATOMIC_RELEASE);   /* M2 */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stook_self->barred = (uint8_t)(stook_self->barred - one((unsigned)ticket));
}

bool stook_transit_wait(void)
{
        if (mine(0) || mine(1))
                return false;
        for (unsigned at = 0; at < 2; at++) {
                uint32_t n;

                __atomic_store_n(&phase, !at, __ATOMIC_RELAXED);
                while ((n = __atomic_load_n(&in_transit[at], __ATOMIC_SEQ_CST)))
                        stook_os_futex_wait(&in_transit[at], n, WAIT_NS);
        }
        return true;
}

void stook_transit_fork_child(void)
{
        in_transit[0] = mine(0);
        in_transit[1] = mine(1);
}
