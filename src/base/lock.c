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
 * A held lock's word: flags, below the address of the holder's record, which is aligned to 64; and
 * from bit HOLD on, which no address reaches, a number that tells this hold from others. It has one
 * once a thread sleeps for it.
 */
enum { FREE = 0, WAITERS = 1, STUCK = 2, FLAGS = 63, HOLD = 48 };

#define SPINS       100
/*
 * Sleeps for one hold, and for several in one wait (I2). They are counted, not timed: a thread that
 * gets no CPU to count them on leaves the holder as much time to get one.
 */
#define SLEEPS      100
#define SLEEPS_MOST 1000
#define SLEEP_NS    1000000
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

/* The holder's record, as a number. */
STOOK_INLINE uint64_t holder_of(uint64_t word)
{
        return word << (64 - HOLD) >> (64 - HOLD) & ~(uint64_t)FLAGS;
}

bool stook_lock_is_mine(const struct stook_lock *lock)
{
        return holder_of(__atomic_load_n(&lock->word, __ATOMIC_RELAXED)) == me();
}

/* M1: acquires what the last holder's drop released. */
STOOK_INLINE bool acquire_as(struct stook_lock *lock, uint64_t flags)
{
        uint64_t word = FREE;

        return __atomic_load_n(&lock->word, __ATOMIC_RELAXED) == FREE &&
               __atomic_compare_exchange_n(&lock->word, &word, me() | flags, false,
                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/*
 * Of a held lock: a thread sleeps for it. Or one did in vain: it may have had the wake that was
 * meant for others, which sleep on. Return: what the word says then.
 */
static uint64_t note_sleep(struct stook_lock *lock, uint64_t flags)
{
        static uint32_t holds;
        uint64_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED), new;

        do {
                if (word == FREE)
                        return FREE;
                new = word | WAITERS | flags;
                if (!(word >> HOLD))
                        new |= (uint64_t)(__atomic_fetch_add(&holds, 2, __ATOMIC_RELAXED) | 1)
                               << HOLD;
        } while (!__atomic_compare_exchange_n(&lock->word, &word, new, false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED));
        return new;
}

/*
 * Where many threads meet, each sleep ends with another hold. Such a lock is busy, not stuck, and
 * is waited for longer.
 */
static bool sleep_for(struct stook_lock *lock, const struct stook_lock_sleep *sleep)
{
        uint64_t word = FREE, hold = FREE;
        unsigned for_hold = 0;

        for (unsigned i = 0; i < SLEEPS_MOST && for_hold < SLEEPS; i++) {
                /* Acquired this way the word has the flag: others may be asleep. */
                if (acquire_as(lock, WAITERS))
                        return true;
                word = note_sleep(lock, 0);
                if (word & STUCK)
                        return false;
                if (hold != (word & ~(uint64_t)FLAGS))
                        for_hold = 0;
                hold = word & ~(uint64_t)FLAGS;
                for_hold++;
                if (word != FREE)
                        sleep->wait((uint32_t *)(void *)&lock->word, (uint32_t)word, SLEEP_NS);
        }
        if (acquire_as(lock, WAITERS))
                return true;
        note_sleep(lock, for_hold == SLEEPS ? STUCK : 0);
        return false;
}

static STOOK_NOINLINE bool wait_for(struct stook_lock *lock)
{
        const struct stook_lock_sleep *sleep = __atomic_load_n(&sleep_by, __ATOMIC_ACQUIRE);
        bool taken;

        for (unsigned i = 0; i < SPINS; i++) {
                pause_briefly();
                if (acquire_as(lock, 0))
                        return true;
        }
        if (!sleep)
                return false;
        /* This thread was jumped out of its last wait, and may be again: that one was in vain. */
        if (stook_self_is_inside(STOOK_INSIDE_WAIT)) {
                stook_self_clear_inside(STOOK_INSIDE_WAIT);
                note_sleep(lock, STUCK);
                return false;
        }
        stook_self_set_inside(STOOK_INSIDE_WAIT);
        taken = sleep_for(lock, sleep);
        stook_self_clear_inside(STOOK_INSIDE_WAIT);
        return taken;
}

static bool may_wait_for(const struct stook_lock *lock)
{
        uint64_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);

        return !(word & STUCK) && holder_of(word) != me();
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
        if (STOOK_LIKELY(stook_self->locks_held || !stook_lock_is_mine(lock)))
                return false;
        stook_lock_raise(STOOK_HELD_GAP);
        if (stook_lock_is_mine(lock)) {
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
