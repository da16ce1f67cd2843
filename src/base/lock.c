/*
 * Purpose: see lock.h.
 * Place: a waiter goes spin, then sleep, then away. A waiter that sleeps first flags the word, so
 * that the release wakes. A waiter that gives up leaves its flag behind: one wake too many, never
 * one too few.
 * Concurrency: locks_held and its address are this thread's own. A handler leaves them as it found
 * them, so plain arithmetic does; the signal fences keep the compiler from moving it across the
 * atomics (I3).
 */
#include <stddef.h>

#include "base/compiler.h"
#include "base/inject.h"
#include "base/lock.h"
#include "base/thread.h"

/*
 * Below the address of the holder's record, which is aligned to 64, in a held lock's word: flags,
 * and how often threads slept for it. With SLEPT_MOST the lock is stuck, too: waiters may be jumped
 * out of as holders are.
 */
enum { FREE = 0, WAITERS = 1, STUCK = 2, SLEPT = 4, SLEPT_MOST = 15 * SLEPT, FLAGS = 63 };

#define SPINS    100
#define SLEEPS      4                   /* of SLEEP_NS for one holder: about 1 ms (I2) */
#define SLEEPS_MOST 16                  /* for several holders: about 4 ms */
#define SLEEP_NS    250000
/* Stacks are seldom larger; what is recorded is unique within 256 MiB. */
#define FAR      ((uintptr_t)16 << 20)

/* atomic; release in set_sleep pairs with acquire in take. */
static const struct stook_lock_sleep *sleep_by;

void stook_lock_set_sleep(const struct stook_lock_sleep *sleep)
{
        __atomic_store_n(&sleep_by, sleep, __ATOMIC_RELEASE);
}

const struct stook_lock_sleep *stook_lock_sleep(void)
{
        return __atomic_load_n(&sleep_by, __ATOMIC_ACQUIRE);
}

STOOK_INLINE enum stook_rank rank_of(const struct stook_lock *lock)
{
#if STOOK_LOCK_RANKS
        return lock->rank;
#else
        (void)lock;
        return STOOK_RANK_LOCK;
#endif
}

STOOK_INLINE void pause_briefly(void)
{
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        /* `yield` is a no-op on most; this waits a few dozen cycles. */
        __asm__ volatile("isb" ::: "memory");
#else
        /* `pause` of RISC-V's Zihintpause; elsewhere on that machine a fence of nothing. */
        __asm__ volatile(".word 0x0100000f" ::: "memory");
#endif
}

STOOK_INLINE uint64_t me(void)
{
        return (uint64_t)(uintptr_t)stook_self;
}

static bool is_mine(const struct stook_lock *lock)
{
        return (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) & ~(uint64_t)FLAGS) == me();
}

/* M1: acquires what the last holder's drop released. */
STOOK_INLINE bool acquire_as(struct stook_lock *lock, uint64_t flags)
{
        uint64_t word = FREE;

        return __atomic_load_n(&lock->word, __ATOMIC_RELAXED) == FREE &&
               __atomic_compare_exchange_n(&lock->word, &word, me() | flags, false,
                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Before a sleep: what the word says then. FREE: it is. STUCK: not to be waited for. */
static uint64_t note_sleep(struct stook_lock *lock)
{
        uint64_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED), new;

        do {
                if (word == FREE || (word & STUCK))
                        return word;
                new = (word & SLEPT_MOST) == SLEPT_MOST ? word | STUCK : (word | WAITERS) + SLEPT;
        } while (!__atomic_compare_exchange_n(&lock->word, &word, new, false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED));
        return new;
}

/*
 * I2: a wait in vain is over. WAITERS: others may sleep on, and this thread may have had the wake
 * that was meant for them.
 */
static void note_vain(struct stook_lock *lock, uint64_t flags)
{
        uint64_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);

        while (word != FREE &&
               !__atomic_compare_exchange_n(&lock->word, &word, word | flags | WAITERS, false,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                ;
}

/*
 * Where many threads meet, each sleep ends with another holder. Such a lock is busy, not stuck, and
 * is waited for longer.
 */
static bool sleep_for(struct stook_lock *lock, const struct stook_lock_sleep *sleep)
{
        uint64_t word = FREE, holder = FREE;
        unsigned for_holder = 0;

        for (unsigned i = 0; i < SLEEPS_MOST && for_holder < SLEEPS; i++) {
                /* Acquired this way the word has the flag: others may be asleep. */
                if (acquire_as(lock, WAITERS))
                        return true;
                word = note_sleep(lock);
                if (word & STUCK)
                        return false;
                if (holder != (word & ~(uint64_t)FLAGS))
                        for_holder = 0;
                holder = word & ~(uint64_t)FLAGS;
                for_holder++;
                if (word != FREE)
                        sleep->wait((uint32_t *)(void *)&lock->word, (uint32_t)word, SLEEP_NS);
        }
        if (acquire_as(lock, WAITERS))
                return true;
        note_vain(lock, for_holder == SLEEPS ? STUCK : 0);
        return false;
}

static STOOK_NOINLINE bool wait_for(struct stook_lock *lock)
{
        const struct stook_lock_sleep *sleep = __atomic_load_n(&sleep_by, __ATOMIC_ACQUIRE);

        for (unsigned i = 0; i < SPINS; i++) {
                pause_briefly();
                if (acquire_as(lock, 0))
                        return true;
        }
        return sleep && sleep_for(lock, sleep);
}

static bool may_wait_for(const struct stook_lock *lock)
{
        uint64_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);

        return !(word & STUCK) && (word & ~(uint64_t)FLAGS) != me();
}

static bool take(struct stook_lock *lock, bool may_wait)
{
        bool taken;

        if (STOOK_INJECT_EVERY(lock_refuse_every))
                return false;
        may_wait = may_wait && !stook_self->locks_held;                 /* I1 */
        if (may_wait)
                stook_rank_check(rank_of(lock));
        stook_lock_raise(STOOK_HELD_GAP);                               /* I3 */
        taken = acquire_as(lock, 0) || (may_wait && may_wait_for(lock) && wait_for(lock));
        if (taken)
                stook_rank_hold(rank_of(lock));
        else
                stook_lock_lower();
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
        stook_rank_let_go(rank_of(lock));
        /*
         * M1. After WAITERS the sleeper is woken while locks_held still counts: a handler here only
         * tries.
         */
        if (__atomic_exchange_n(&lock->word, FREE, __ATOMIC_RELEASE) & WAITERS) {
                const struct stook_lock_sleep *sleep = __atomic_load_n(&sleep_by, __ATOMIC_ACQUIRE);

                if (sleep)
                        sleep->wake((uint32_t *)(void *)&lock->word);
        }
        stook_lock_lower();                                             /* I3 */
}

/*
 * The count first: a handler that comes before it inherits and drops, one that comes after it finds
 * a holder.
 */
bool stook_lock_inherit(struct stook_lock *lock)
{
        if (STOOK_LIKELY(stook_self->locks_held || !is_mine(lock)))
                return false;
        stook_lock_raise(STOOK_HELD_GAP);
        if (is_mine(lock)) {
                stook_rank_hold(rank_of(lock));
                return true;
        }
        stook_lock_lower();
        return false;
}

void stook_lock_reset(struct stook_lock *lock)
{
        __atomic_store_n(&lock->word, FREE, __ATOMIC_RELAXED);
}

/* ---- the count ---- */

static bool (*is_same_stack)(uintptr_t address); /* atomic, relaxed */

void stook_lock_set_same_stack(bool (*same_stack)(uintptr_t address))
{
        __atomic_store_n(&is_same_stack, same_stack, __ATOMIC_RELAXED);
}

bool stook_lock_frame_is_gone(uintptr_t frame, uintptr_t here)
{
        bool (*same_stack)(uintptr_t address) = __atomic_load_n(&is_same_stack, __ATOMIC_RELAXED);
        uintptr_t self = (uintptr_t)stook_self;

        return same_stack && here >= frame && here - frame <= FAR &&
               !(frame < self && self < here) && same_stack(frame);
}

/* From where a frame's pointer points up to the caller's stack: two words are saved there. */
#if defined(__riscv)
#define SAVED 0                         /* they lie below it */
#else
#define SAVED (2 * sizeof(void *))
#endif

STOOK_NOINLINE bool stook_lock_heal(void)
{
        /* The caller's stack pointer. */
        uintptr_t here = (uintptr_t)__builtin_frame_address(0) + SAVED, above;
        uint32_t word = __atomic_load_n(stook_lock_held(), __ATOMIC_RELAXED);
        uint32_t place = word & ~STOOK_HELD_COUNT;

        if (!(word & STOOK_HELD_COUNT) || !place)
                return false;
        above = (uintptr_t)((stook_lock_place(here) - place) >> STOOK_HELD_SHIFT) * STOOK_HELD_UNIT;
        if (!stook_lock_frame_is_gone(here - above, here))
                return false;
        __atomic_store_n(stook_lock_held(), 0, __ATOMIC_RELAXED);
        stook_rank_hold_no_lock();
        return true;
}

void stook_lock_keep(void)
{
        __atomic_store_n(stook_lock_held(), *stook_lock_held() & STOOK_HELD_COUNT,
                         __ATOMIC_RELAXED);
}

void stook_lock_hold_none(void)
{
        __atomic_store_n(stook_lock_held(), 0, __ATOMIC_RELAXED);
        stook_rank_hold_no_lock();
}
