/*
 * Purpose: see lock.h.
 * Place: a waiter goes spin, then sleep, then away; whoever sleeps first marks the word 2, so that the
 * release wakes. A waiter that gives up leaves the 2 behind: one wake too many, never one too few.
 * Concurrency: locks_held is this thread's own. A handler leaves it as it found it, so plain arithmetic does;
 * the signal fences keep the compiler from moving it across the atomics (I3).
 */
#include <stddef.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/thread.h"

enum { FREE, HELD, HELD_WAITERS };

#define SPINS    100
#define SLEEPS   4                      /* so many of SLEEP_NS: about 1 ms in all (I2) */
#define SLEEP_NS 250000

uint32_t stook_lock_refuse_every;
static uint32_t calls;                  /* atomic; counted only while the hook is set */

static const struct stook_lock_sleep *sleep_by; /* atomic; release in set_sleep pairs with acquire in take */

void stook_lock_set_sleep(const struct stook_lock_sleep *sleep)
{
        __atomic_store_n(&sleep_by, sleep, __ATOMIC_RELEASE);
}

static bool refused(void)
{
        uint32_t every = __atomic_load_n(&stook_lock_refuse_every, __ATOMIC_RELAXED);

        if (STOOK_LIKELY(!every))
                return false;
        return (__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) + 1) % every == 0;
}

STOOK_INLINE void pause_briefly(void)
{
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb" ::: "memory"); /* `yield` is a no-op on most; this waits a few dozen cycles */
#endif
}

/* M1: acquires what the last holder's drop released. */
STOOK_INLINE bool acquire(struct stook_lock *lock)
{
        uint32_t word = FREE;

        return __atomic_load_n(&lock->word, __ATOMIC_RELAXED) == FREE &&
               __atomic_compare_exchange_n(&lock->word, &word, HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static STOOK_NOINLINE bool wait_for(struct stook_lock *lock)
{
        const struct stook_lock_sleep *sleep = __atomic_load_n(&sleep_by, __ATOMIC_ACQUIRE);

        for (unsigned i = 0; i < SPINS; i++) {
                pause_briefly();
                if (acquire(lock))
                        return true;
        }
        if (!sleep)
                return false;
        for (unsigned i = 0; i < SLEEPS; i++) {
                /* M1. Taken this way the word says 2: others may be asleep. */
                if (__atomic_exchange_n(&lock->word, HELD_WAITERS, __ATOMIC_ACQUIRE) == FREE)
                        return true;
                sleep->wait(&lock->word, HELD_WAITERS, SLEEP_NS);
        }
        return __atomic_exchange_n(&lock->word, HELD_WAITERS, __ATOMIC_ACQUIRE) == FREE;
}

static bool take(struct stook_lock *lock, bool may_wait)
{
        bool taken;

        if (refused())
                return false;
        may_wait = may_wait && !stook_self->locks_held;                 /* I1 */
        stook_self->locks_held++;                                       /* I3 */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        taken = acquire(lock) || (may_wait && wait_for(lock));
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (!taken)
                stook_self->locks_held--;
        return taken;
}

bool stook_lock_take(struct stook_lock *lock)
{
        return take(lock, true);
}

bool stook_lock_try(struct stook_lock *lock)
{
        return take(lock, false);
}

void stook_lock_drop(struct stook_lock *lock)
{
        /* M1. After a 2 the sleeper is woken while locks_held still counts: a handler here only tries. */
        if (__atomic_exchange_n(&lock->word, FREE, __ATOMIC_RELEASE) == HELD_WAITERS) {
                const struct stook_lock_sleep *sleep = __atomic_load_n(&sleep_by, __ATOMIC_ACQUIRE);

                if (sleep)
                        sleep->wake(&lock->word);
        }
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stook_self->locks_held--;                                       /* I3 */
}

void stook_lock_reset(struct stook_lock *lock)
{
        __atomic_store_n(&lock->word, FREE, __ATOMIC_RELAXED);
}
