/*
 * Purpose: bring the layers up, in their order, once.
 * Place: the constructor, or the first call that finds the library not started (an early call of another
 * library's constructor, a malloc before main).
 * Invariants:
 *  I1 nobody uses a layer before stook_started is 2, but for the thread that starts it.
 * Concurrency: M1: the release of 2 pairs with the acquire in stook_start. One thread starts; the others wait
 *  for it, at most START_WAITS milliseconds: then their call fails, and the next one tries again.
 * Failure: without any memory at all the state stays 3: all allocation is NULL.
 */
#include <stdint.h>

#include "base/lock.h"
#include "base/thread.h"
#include "cache/cache.h"
#include "life/fork.h"
#include "life/life.h"
#include "life/options.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "pages/span.h"
#include "slot/slot.h"
#include <stook/control.h>

enum { NOT_STARTED, STARTING, STARTED, FAILED };

#define START_WAITS 2000
#define WAIT_NS 1000000

uint32_t stook_started;
static void *starter;                   /* atomic: stook_self of the thread that starts; only it compares equal */

static bool bring_up(void)
{
        static const struct stook_lock_sleep sleep = { stook_os_futex_wait, stook_os_futex_wake };

        stook_lock_set_sleep(&sleep);
        stook_os_topology_detect();
        stook_options_read();
        stook_os_rseq_detect();
        if (!stook_pages_start())
                return false;
        stook_options_set_budget();
        if (!stook_caches_start(STOOK_STOCK_LINE) || !stook_slots_start() || !stook_fork_start())
                return false;
        stook_malloc_start();
        stook_options_start_group();
        return true;
}

static bool wait_for_starter(void)
{
        uint32_t state;

        /* A handler on top of the starting thread: waiting would be for ever. */
        if (__atomic_load_n(&starter, __ATOMIC_RELAXED) == stook_self)
                return false;
        for (unsigned waits = 0; waits < START_WAITS; waits++) {
                state = __atomic_load_n(&stook_started, __ATOMIC_ACQUIRE);
                if (state != STARTING)
                        return state == STARTED;
                stook_os_futex_wait(&stook_started, STARTING, WAIT_NS);
        }
        return false;
}

STOOK_COLD bool stook_start_slow(void)
{
        uint32_t state = NOT_STARTED;
        bool up;

        if (!__atomic_compare_exchange_n(&stook_started, &state, STARTING, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_ACQUIRE))
                return state == STARTED || (state == STARTING && wait_for_starter());
        __atomic_store_n(&starter, stook_self, __ATOMIC_RELAXED);
        up = bring_up();
        __atomic_store_n(&starter, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&stook_started, up ? STARTED : FAILED, __ATOMIC_RELEASE);
        stook_os_futex_wake(&stook_started);
        return up;
}

/* Early among constructors: later ones fork and allocate. Registering with libc may allocate, so not in bring_up. */
__attribute__((constructor(101))) static void construct(void)
{
        bool up = stook_start();

        stook_fork_register();
        if (up && stook_options_maintenance())
                stook_maintenance_thread(1);
}
