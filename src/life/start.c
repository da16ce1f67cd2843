/*
 * Purpose: bring the layers up, in their order, once; tell how this process and this thread run,
 * and on which release, which need not be the one that a program was compiled against.
 * Place: the constructor, or the first call that finds the library not started (an early call of
 * another library's constructor, a malloc before main).
 * Invariants:
 *  I1 no thread uses a layer before the gate is open, but for the thread that starts it.
 * Concurrency: M1: the release of OPEN pairs with the acquire in stook_gate_is_open. One thread
 *  starts; the others wait for it, at most START_WAITS milliseconds. Then their call fails, and the
 *  next one tries again.
 * Failure: without any memory at all the state stays FAILED: all allocations are NULL.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/pair.h"
#include "base/thread.h"
#include "cache/cache.h"
#include "debug/debug_modes.h"
#include "direct/direct.h"
#include "gate/gate.h"
#include "inspect/inspect.h"
#include "life/life.h"
#include "life/root.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "pages/span.h"
#include "report/report.h"
#include "slab/slab.h"
#include "slot/slot.h"
#include "slot/slot_regions.h"
#include "stack/stack.h"
#include "watch/watch.h"
#include <stook/control.h>
#include <stook/debug.h>
#include <stook/version.h>

#define START_WAITS 2000
#define WAIT_NS 1000000

static void *starter;                   /* atomic: stook_self of the thread that starts */
/* Atomic, relaxed: 1 once a thread waits. Seen late, it costs that thread one WAIT_NS. */
static uint32_t waiters;

static bool bring_up(void)
{
        static const struct stook_lock_sleep sleep = { stook_os_futex_wait, stook_os_futex_wake };

#if STOOK_LOCK_RANKS
        stook_rank_set_report(stook_report_rank);
#endif
        stook_lock_set_sleep(&sleep);
        stook_lock_set_same_stack(stook_os_same_stack);
        stook_options_gather();
        stook_os_topology_detect();
        stook_options_read();
        stook_os_rseq_detect();
        if (!stook_pages_start())
                return false;
        stook_options_set_budget();
        if (!stook_caches_start(STOOK_PRECHARGE_LINE) || !stook_slots_start())
                return false;
        stook_fork_start();
        stook_last_thread_start();
        stook_observe_start();
        stook_malloc_start();
        stook_watch_start();
        if (stook_sealed_most)
                stook_direct_seal();
        stook_options_start_group();
        stook_root_start();
        return true;
}

static bool wait_for_starter(void)
{
        uint32_t state;

        /* A handler on top of the starting thread: waiting would be for ever. */
        if (__atomic_load_n(&starter, __ATOMIC_RELAXED) == stook_self)
                return false;
        for (unsigned waits = 0; waits < START_WAITS; waits++) {
                state = __atomic_load_n(&stook_gate_state, __ATOMIC_ACQUIRE);
                if (state != STOOK_GATE_STARTING)
                        return state == STOOK_GATE_OPEN;
                __atomic_store_n(&waiters, 1, __ATOMIC_RELAXED);
                stook_os_futex_wait(&stook_gate_state, STOOK_GATE_STARTING, WAIT_NS);
        }
        return false;
}

STOOK_COLD static bool start(void)
{
        uint32_t state = STOOK_GATE_CLOSED;
        bool up;

        if (!__atomic_compare_exchange_n(&stook_gate_state, &state, STOOK_GATE_STARTING, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
                return state == STOOK_GATE_OPEN ||
                       (state == STOOK_GATE_STARTING && wait_for_starter());
        __atomic_store_n(&starter, stook_self, __ATOMIC_RELAXED);
        up = bring_up();
        __atomic_store_n(&starter, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&stook_gate_state, up ? STOOK_GATE_OPEN : STOOK_GATE_FAILED,
                         __ATOMIC_RELEASE);
        if (__atomic_load_n(&waiters, __ATOMIC_RELAXED))
                stook_os_futex_wake(&stook_gate_state);
        return up;
}

const struct stook_gate_duties stook_gate_duties = { start, stook_fork_recover, stook_fork_repair };

/*
 * Early among constructors: later ones fork and allocate. Registering with libc may allocate, so it
 * is not part of bring_up.
 */
__attribute__((constructor(101))) static void construct(void)
{
        bool up = stook_gate_start();

        /* The unwinder allocates while it is loaded. Tracks before this have no stacks. */
        if (up && (stook_debug_is_asked() || stook_fail_is_asked()))
                stook_stack_start();
        if (!&stook_fork_registers_late)
                stook_fork_register(pthread_atfork);
        if (up && stook_options_maintenance())
                stook_maintenance_thread(1);
}

/* Nothing else names these files: inspect/inspect.h. */
static void (*const linked[])(void) __attribute__((used)) = {
        stook_check_end, stook_leak_end, stook_print_end, stook_stats_page_unload,
};

__attribute__((destructor)) static void end(void)
{
        stook_debug_tell_unused();
        stook_fail_tell_unused();
}

/* ---- how the process runs ---- */

static const char *registration(void)
{
        if (!stook_slot_enrol())
                return "none";
        return stook_os_rseq_owner() == STOOK_RSEQ_OWN ? "own" : "libc";
}

/* stook_set_output(): the function and what it gets; 0: none. */
static struct stook_pair output;

static bool program_takes(const char *text, size_t bytes)
{
        struct stook_pair to = stook_pair_read(&output);
        int before = errno;

        /* Exchanging the pair for itself reads it whole. */
        while (!stook_pair_cas(&output, &to, to))
                ;
        if (to.lo)
                ((void (*)(const char *, size_t, void *))to.lo)(text, bytes, (void *)to.hi);
        errno = before;
        return to.lo;
}

STOOK_API void stook_set_output(void (*write)(const char *text, size_t bytes, void *data),
                                void *data)
{
        struct stook_pair now = stook_pair_read(&output);

        while (!stook_pair_cas(&output, &now,
                               (struct stook_pair){ (uintptr_t)write, (uintptr_t)data }))
                ;
        __atomic_store_n(&stook_os_output, program_takes, __ATOMIC_RELAXED);
}

STOOK_API int stook_get_mode(struct stook_mode *mode)
{
        if (!mode || !stook_report_size_is(mode->mode_size, sizeof(*mode), "mode_size"))
                return -EINVAL;
        if (!stook_gate_start())
                return -ENOMEM;
        mode->registration = registration();
        mode->backend = stook_slots_backend_name();
        mode->index = stook_slots_index_name();
        mode->thp = stook_options_thp();
        mode->nodes = stook_os_node_count();
        mode->slots = stook_slots_count();
        mode->slots_ready = stook_slots_ready();
        mode->page_bytes = (uint32_t)stook_os_page_bytes();
        return 0;
}

STOOK_PUBLIC const char *stook_version(void)
{
        return STOOK_VERSION;
}
