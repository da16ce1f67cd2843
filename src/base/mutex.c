/*
 * Purpose: see mutex.h.
 * Place: a waiter flags the word before it sleeps, so that the unlock wakes. A waiter that gives up
 * leaves its flag behind: one wake too many, never one too few.
 */
#include "base/lock.h"
#include "base/mutex.h"
#include "base/thread.h"

/* Below the address of the holder's record, which is aligned to 64. */
enum { WAITERS = 1, COUNTS = 2, FLAGS = WAITERS | COUNTS };

#define WAIT_NS 1000000

STOOK_INLINE uint64_t me(void)
{
        return (uint64_t)(uintptr_t)stook_self;
}

STOOK_INLINE enum stook_rank rank_of(const struct stook_mutex *mutex)
{
#if STOOK_LOCK_RANKS
        return mutex->rank;
#else
        (void)mutex;
        return STOOK_RANK_LOCK;
#endif
}

static uint64_t read_word(const struct stook_mutex *mutex)
{
        return __atomic_load_n(&mutex->word, __ATOMIC_RELAXED);
}

/* M1. *@seen is what the word was expected to be, and becomes what it is. */
static bool change(struct stook_mutex *mutex, uint64_t *seen, uint64_t word)
{
        return __atomic_compare_exchange_n(&mutex->word, seen, word, false, __ATOMIC_ACQUIRE,
                                           __ATOMIC_RELAXED);
}

static bool try(struct stook_mutex *mutex, uint64_t flags)
{
        uint64_t seen = 0;

        if (!change(mutex, &seen, me() | flags))
                return false;
        stook_rank_hold(rank_of(mutex));
        return true;
}

static void sleep_on(struct stook_mutex *mutex, uint64_t word)
{
        const struct stook_lock_sleep *sleep = stook_lock_sleep();

        if (sleep)
                sleep->wait((uint32_t *)(void *)&mutex->word, (uint32_t)word, WAIT_NS);
}

bool stook_mutex_wait(struct stook_mutex *mutex, unsigned waits)
{
        uint64_t seen = 0;

        stook_rank_check(rank_of(mutex));
        if (try(mutex, 0))
                return true;
        while (waits) {
                /* Had after a sleep it keeps the flag: other threads may sleep. */
                uint64_t word = seen ? seen | WAITERS : me() | WAITERS;

                if (!change(mutex, &seen, word))
                        continue;
                if (!seen) {
                        stook_rank_hold(rank_of(mutex));
                        return true;
                }
                sleep_on(mutex, word);
                waits--;
                seen = read_word(mutex);
        }
        return false;
}

void stook_mutex_lock(struct stook_mutex *mutex)
{
        while (!stook_mutex_wait(mutex, UINT32_MAX))
                ;
}

bool stook_mutex_try(struct stook_mutex *mutex)
{
        return try(mutex, 0);
}

bool stook_mutex_try_counting(struct stook_mutex *mutex)
{
        stook_lock_forbid_waits();
        if (try(mutex, COUNTS))
                return true;
        stook_lock_allow_waits();
        return false;
}

/* A jump after the exchange leaves the count raised: that heals. */
void stook_mutex_unlock(struct stook_mutex *mutex)
{
        uint64_t was;

        stook_rank_let_go(rank_of(mutex));
        was = __atomic_exchange_n(&mutex->word, 0, __ATOMIC_RELEASE);           /* M1 */
        if (was & WAITERS) {
                const struct stook_lock_sleep *sleep = stook_lock_sleep();

                if (sleep)
                        sleep->wake((uint32_t *)(void *)&mutex->word);
        }
        if (was & COUNTS)
                stook_lock_allow_waits();
}

bool stook_mutex_is_held(const struct stook_mutex *mutex)
{
        return read_word(mutex) != 0;
}

bool stook_mutex_is_mine(const struct stook_mutex *mutex)
{
        return (read_word(mutex) & ~(uint64_t)FLAGS) == me();
}

bool stook_mutex_was_left(const struct stook_mutex *mutex)
{
        uint64_t word = read_word(mutex);

        return (word & ~(uint64_t)FLAGS) == me() && (word & COUNTS) && !stook_self->locks_held;
}

/* A jump between this and the unlock leaves it to be done again: the word is what it was. */
void stook_mutex_inherit(struct stook_mutex *mutex)
{
        (void)mutex;
        stook_lock_forbid_waits();
}

void stook_mutex_reset(struct stook_mutex *mutex)
{
        if (stook_mutex_is_mine(mutex))
                stook_rank_let_go(rank_of(mutex));
        __atomic_store_n(&mutex->word, 0, __ATOMIC_RELEASE);
}
