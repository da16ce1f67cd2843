/*
 * Purpose: memory is given back: at once, in a round of maintenance, and by a thread that runs
 * rounds for programs that do not call stook_maintain themselves.
 * Place: API; the thread is started by a call, or by the constructor (STOOK_MAINTENANCE=1), never
 * inside an allocation: creating a thread allocates. Calls cache, slot, pages, os. Nothing needs
 * any of it for correctness.
 *
 * A round is for processes that idle, and for slots on which no thread runs. It does what the slow
 * calls of a busy program do step by step, and what they cannot do: it reaps this thread's slot and
 * the barns; other nodes' barns; every slot from which nothing was taken for a decay time, or on
 * which no thread can run any more; free pages older than a decay time. Under memory pressure it
 * gives back everything, as stook_trim(0) does.
 *
 * The thread blocks all signals, and ends by itself when no thread of the program is left
 * (process/own_thread.c). While it runs, the page layer leaves to it what would otherwise be purged
 * at once, in case that no further call comes (pages/purge.h). A child of fork has no such thread.
 * The next call of stook_maintain, stook_trim or stook_maintenance_thread starts one there; a child
 * that only allocates has none.
 *
 * Invariants:
 *  I1 at most one thread in a process: stook_maintenance_process is its process id, taken by a
 *     compare-and-swap before the thread is created.
 * Concurrency: `wanted` and stook_maintenance_process are atomic; M1: its release of 0 when the
 *  thread ends pairs with the acquire of the thread that waits for its end.
 * Failure: -EAGAIN, -ENOMEM: no thread could be created; nothing changed.
 */
#include <errno.h>

#include "cache/cache.h"
#include "harden/harden.h"
#include "limit/cache_limit.h"
#include "evacuate/evacuate.h"
#include "gate/gate.h"
#include "life/life.h"
#include "life/root.h"
#include "os/os.h"
#include "pages/purge.h"
#include "policy/dirty.h"
#include "process/process.h"
#include "slot/slot.h"
#include "watch/watch.h"
#include <stook/control.h>

/* ---- what caches keep, and what the page layer keeps free ---- */

size_t stook_trim_now(size_t keep_bytes)
{
        struct stook_cache *cache = NULL;

        if (!stook_registry_lock(STOOK_REFUSED("stook_trim")))
                return 0;
        stook_watch_give_delayed();
        stook_guards_open_all();
        while ((cache = stook_registry_next(cache))) {
                stook_reclaim_from(cache, SIZE_MAX);
                stook_cache_empty(cache);
        }
        stook_registry_unlock();
        stook_rcu_submit_deferred();
        return stook_pages_purge(keep_bytes);
}

STOOK_API size_t stook_trim(size_t keep_bytes)
{
        if (!stook_gate_start())
                return 0;
        stook_gate_check();
        stook_maintenance_revive();
        return stook_trim_now(keep_bytes);
}

/* ---- a round ---- */

/*
 * Steps of the slot's idle reaper: each is bounded, and reads the clock once in sixteen. A busy
 * program makes more of them in a second.
 */
#define ROUND_STEPS 64

/* M2: the release that stores `call` pairs with the acquire of a round, which finds its `data`. */
static struct {
        void (*call)(void *data);
        void  *data;
} on_pressure;

STOOK_API void stook_on_pressure(void (*callback)(void *data), void *data)
{
        on_pressure.data = data;
        __atomic_store_n(&on_pressure.call, callback, __ATOMIC_RELEASE);
}

unsigned stook_maintain_round(void)
{
        unsigned work;

        if (stook_process_pressure()) {
                void (*call)(void *data) = __atomic_load_n(&on_pressure.call, __ATOMIC_ACQUIRE);

                if (call)
                        call(on_pressure.data);
                stook_trim_now(0);
                return 1;
        }
        for (unsigned i = 0; i < ROUND_STEPS; i++)
                stook_slot_reap_idle();
        work = stook_evacuate_idle(stook_pages_decay_ms());
        return work + stook_pages_age();
}

STOOK_API void stook_maintain(void)
{
        if (!stook_gate_start())
                return;
        stook_gate_check();
        stook_maintenance_revive();
        stook_maintain_round();
        /* Not in the thread: an RCU implementation may know only threads that registered. */
        stook_rcu_maintain();
}

/* ---- the thread ---- */

/*
 * Between rounds: an eighth of the decay time, as slow calls have it; up to eight times as long
 * while there is nothing to do.
 */
#define PAUSE_MS_LEAST 10
#define PAUSE_MS_MOST  1000
#define BACK_OFF       8
/*
 * While there is nothing to do, the thread looks this often for requests (root.h), and whether
 * it is to end.
 */
#define LOOK_MS 500
/* For the thread's end: a round is milliseconds, unless it trims a large heap. */
#define STOP_WAITS 10000
#define MS UINT64_C(1000000)

static uint32_t wanted;                 /* atomic; a futex the thread sleeps on */
uint32_t stook_maintenance_process;     /* atomic: I1, M1; 0: none */

static uint64_t pause_ms(void)
{
        uint64_t ms = stook_pages_decay_ms() / 8;

        return ms < PAUSE_MS_LEAST ? PAUSE_MS_LEAST : ms > PAUSE_MS_MOST ? PAUSE_MS_MOST : ms;
}

/* Until the next round is due. Requests are answered meanwhile. False: the thread is to end. */
static bool sleep_ms(uint64_t ms)
{
        while (ms) {
                uint64_t step = ms < LOOK_MS ? ms : LOOK_MS;

                if (!__atomic_load_n(&wanted, __ATOMIC_RELAXED) || stook_own_threads_are_alone())
                        return false;
                stook_os_futex_wait(&wanted, 1, step * MS);
                stook_request_answer();
                ms -= step;
        }
        return true;
}

static void run(void)
{
        unsigned idle_rounds = 1;

        stook_gate_check();
        while (sleep_ms(pause_ms() * idle_rounds)) {
                if (stook_maintain_round())
                        idle_rounds = 1;
                else if (idle_rounds < BACK_OFF)
                        idle_rounds *= 2;
        }
        stook_dirty_set_threaded(false);        /* before M1: the next thread sets it again */
        __atomic_store_n(&stook_maintenance_process, 0, __ATOMIC_RELEASE);
        stook_os_futex_wake(&stook_maintenance_process);
}

static struct stook_own_thread thread = { .run = run, .name = STOOK_MAINTENANCE_THREAD };

/* Starts it if this process has none. */
static int start(void)
{
        uint32_t self = stook_process_id();
        uint32_t seen = __atomic_load_n(&stook_maintenance_process, __ATOMIC_ACQUIRE);
        int error;

        if (seen == self ||
            !__atomic_compare_exchange_n(&stook_maintenance_process, &seen, self, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return 0;
        stook_dirty_set_threaded(true);
        error = stook_own_thread_start(&thread);
        if (error) {
                stook_dirty_set_threaded(false);
                __atomic_store_n(&stook_maintenance_process, 0, __ATOMIC_RELEASE);
        }
        return error;
}

void stook_maintenance_revive(void)
{
        if (STOOK_UNLIKELY(__atomic_load_n(&wanted, __ATOMIC_RELAXED)))
                start();
}

static void stop(void)
{
        uint32_t self = stook_process_id();

        __atomic_store_n(&wanted, 0, __ATOMIC_RELAXED);
        stook_os_futex_wake(&wanted);
        for (unsigned waits = 0; waits < STOP_WAITS; waits++) {
                if (__atomic_load_n(&stook_maintenance_process, __ATOMIC_ACQUIRE) != self ||
                    __atomic_load_n(&wanted, __ATOMIC_RELAXED))         /* by a later call */
                        break;
                stook_os_futex_wait(&stook_maintenance_process, self, MS);
                stook_os_futex_wake(&wanted);
        }
}

STOOK_API int stook_maintenance_thread(int on)
{
        int error, before;

        if (on != 0 && on != 1)
                return -EINVAL;
        if (!stook_gate_start())
                return -ENOMEM;
        stook_gate_check();
        before = errno;
        if (!on) {
                stop();
                return 0;
        }
        /*
         * A thread that is about to end may see this in time. If not, the start below makes another
         * one, or the next call does.
         */
        __atomic_store_n(&wanted, 1, __ATOMIC_RELAXED);
        error = start();
        if (error)
                __atomic_store_n(&wanted, 0, __ATOMIC_RELAXED);
        errno = before;
        return error;
}
