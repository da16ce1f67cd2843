/*
 * Purpose: stook_pair_cas where no instruction does it (RISC-V): under one lock for all pairs.
 * Place: pair.h and alone.h, on such machines alone. It asks the system by itself, as no other file
 *  but those of os does, for pairs are used below os.
 * Invariants:
 *  I1 no code of this thread runs on top of a holder, and none jumps out of it: all signals are
 *     blocked while the lock is held, also those that libc keeps for itself (cancellation). So the
 *     system is asked twice for each call.
 *  I2 a waiter takes signals.
 *  I3 the words change after `step` says how, so a child of fork can finish what a vanished holder
 *     left half done. The lock then lies in a page that the kernel clears in a child (life/fork.c),
 *     and `step` does not. A child's first holder, or its repair, finishes the step. A pair of
 *     which both words are stored is left as it is: plain stores may have changed it since.
 *  I4 lo is stored before hi. A reader that has seen the new hi sees the new lo, too, as
 *     slab_state.h wants where bits are read first. A pair that is read the other way may be torn,
 *     as on every machine (stook_pair_read).
 * Concurrency: M1: the release of the lock pairs with the acquire of the next holder. Changes of
 *  half a pair (stook_pair_half_cas) take the lock, too; plain stores are for words that no other
 *  thread changes then.
 * Failure: a holder that is stopped, or a child of vfork that is killed there, stops all others:
 *  what is lock-free elsewhere is not so here. docs/SUPPORT.md says so.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/pair.h"

#define SPINS    100
#define SLEEP_NS 100000                 /* no release wakes a waiter */

static uint32_t first_lock;             /* atomic, M1; until the start */
static uint32_t *lock_at = &first_lock; /* atomic; changes once, while the old lock is held */

static const uint64_t all_signals = UINT64_MAX;

/* Guarded. What its holder is about to store; pair NULL: nothing. */
static struct {
        struct stook_pair *pair;
        struct stook_pair half;         /* how it looks in between: lo is new, hi is old */
        uintptr_t hi;                   /* the new one */
} step;

static void set_signals(const uint64_t *blocked, uint64_t *before)
{
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, blocked, before, sizeof *blocked);
}

/* NULL: another thread has it. */
static uint32_t *try(void)
{
        uint32_t *lock = __atomic_load_n(&lock_at, __ATOMIC_ACQUIRE), is_free = 0;

        if (!__atomic_compare_exchange_n(lock, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
                return NULL;
        if (lock == __atomic_load_n(&lock_at, __ATOMIC_ACQUIRE))
                return lock;
        __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
        return NULL;
}

/* Does nothing but in a child. */
static void finish_step(void)
{
        struct stook_pair *pair = __atomic_load_n(&step.pair, __ATOMIC_ACQUIRE), seen;

        if (!pair)
                return;
        seen = stook_pair_read(pair);
        if (seen.lo == step.half.lo && seen.hi == step.half.hi)
                __atomic_store_n(&pair->hi, step.hi, __ATOMIC_RELEASE);
        __atomic_store_n(&step.pair, NULL, __ATOMIC_RELEASE);
}

static void change(struct stook_pair *pair, struct stook_pair from, struct stook_pair to)
{
        step.half = (struct stook_pair){ .lo = to.lo, .hi = from.hi };
        step.hi = to.hi;
        __atomic_store_n(&step.pair, pair, __ATOMIC_RELEASE);                   /* I3 */
        __atomic_store_n(&pair->lo, to.lo, __ATOMIC_RELEASE);                   /* I4 */
        __atomic_store_n(&pair->hi, to.hi, __ATOMIC_RELEASE);
        __atomic_store_n(&step.pair, NULL, __ATOMIC_RELEASE);
}

static void wait_a_while(unsigned tries)
{
        const struct stook_lock_sleep *sleep = stook_lock_sleep();

        if (tries > SPINS && sleep)
                sleep->wait(__atomic_load_n(&lock_at, __ATOMIC_RELAXED), 1, SLEEP_NS);
}

/* The lock; *@signals is for leave. */
static uint32_t *enter(uint64_t *signals)
{
        uint32_t *lock;

        for (unsigned tries = 0;; tries++) {
                set_signals(&all_signals, signals);                             /* I1 */
                lock = try();
                if (lock)
                        break;
                set_signals(signals, NULL);                                     /* I2 */
                wait_a_while(tries);
        }
        finish_step();
        return lock;
}

/* A full fence, as where one instruction does it all. */
static void leave(uint32_t *lock, const uint64_t *signals)
{
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        __atomic_store_n(lock, 0, __ATOMIC_RELEASE);                            /* M1 */
        set_signals(signals, NULL);
}

bool stook_pair_cas(struct stook_pair *p, struct stook_pair *expected, struct stook_pair desired)
{
        uint64_t signals;
        uint32_t *lock = enter(&signals);
        struct stook_pair seen = stook_pair_read(p);
        bool done = seen.lo == expected->lo && seen.hi == expected->hi;

        if (done)
                change(p, seen, desired);
        leave(lock, &signals);
        *expected = seen;
        return done;
}

bool stook_pair_half_cas(uint64_t *half, uint64_t expected, uint64_t desired)
{
        uint64_t signals;
        uint32_t *lock = enter(&signals);
        bool done = __atomic_load_n(half, __ATOMIC_ACQUIRE) == expected;

        if (done)
                __atomic_store_n(half, desired, __ATOMIC_RELEASE);
        leave(lock, &signals);
        return done;
}

void stook_pair_set_lock(uint32_t *lock)
{
        uint64_t signals;
        uint32_t *old = enter(&signals);

        __atomic_store_n(&lock_at, lock, __ATOMIC_RELEASE);
        leave(old, &signals);
}

/* I1: a handler in between would begin a step of its own. */
void stook_pair_fork_child(void)
{
        uint64_t signals;

        set_signals(&all_signals, &signals);
        finish_step();
        leave(__atomic_load_n(&lock_at, __ATOMIC_RELAXED), &signals);
}
