/*
 * Purpose: a mutex that waits until it is free, for calls that no signal handler may make (create,
 * destroy, tune, shrink). Unlike struct stook_lock (base/lock.h) it never refuses a caller that
 * waits, and its holder may go on to take those.
 *
 * Place: the registry of caches, and evacuations. Order: base/rank.h.
 * Invariants:
 *  I1 word is 0 if the mutex is free, else stook_self of the holder, and flags.
 *  I2 a holder that got it by stook_mutex_try_counting counts in locks_held (base/lock.h). So a
 *     jump out of its call is noticed, and stook_mutex_was_left is true in the same thread later.
 * Concurrency: M1: the releasing exchange of an unlock pairs with the acquiring compare-and-swap of
 *  the next holder. Sleeping is a futex wait on the word's lower half, by what stook_lock_set_sleep
 *  was given; before that, a spin. All calls but lock and wait: any thread, any instruction.
 */
#ifndef STOOK_MUTEX_H
#define STOOK_MUTEX_H

#include <stdbool.h>
#include <stdint.h>
#include "base/rank.h"

struct stook_mutex {
        uint64_t word;                  /* I1, M1 */
#if STOOK_LOCK_RANKS
        enum stook_rank rank;
#endif
};

/* Of a static mutex. */
#if STOOK_LOCK_RANKS
#define STOOK_MUTEX_INIT(its_rank) { .word = 0, .rank = (its_rank) }
#else
#define STOOK_MUTEX_INIT(its_rank) { .word = 0 }
#endif

/*
 * A wait for a mutex that the caller holds is for ever: ask stook_mutex_is_mine where that may be.
 */
void stook_mutex_lock(struct stook_mutex *mutex);
/* At most @waits waits of 1 ms each. False: not to be had. */
bool stook_mutex_wait(struct stook_mutex *mutex, unsigned waits);
/* False: another call has it, perhaps one of this thread. */
bool stook_mutex_try(struct stook_mutex *mutex);
/* The same; I2. */
bool stook_mutex_try_counting(struct stook_mutex *mutex);
void stook_mutex_unlock(struct stook_mutex *mutex);

bool stook_mutex_is_held(const struct stook_mutex *mutex);
/* By a call of this thread. */
bool stook_mutex_is_mine(const struct stook_mutex *mutex);
/*
 * A call of this thread that counted was jumped out of, with the mutex held. The caller mends what
 * the mutex guards between stook_mutex_inherit and an unlock.
 */
bool stook_mutex_was_left(const struct stook_mutex *mutex);
void stook_mutex_inherit(struct stook_mutex *mutex);
/* In a child of fork whose holder is gone, or was this thread: it is free. */
void stook_mutex_reset(struct stook_mutex *mutex);

#endif
