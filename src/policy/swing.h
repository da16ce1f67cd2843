/*
 * Purpose: measure the swing: by how much the memory in use went up and down lately. A purge of
 * memory that is taken again soon is in vain. After one such purge the memory that swings is kept
 * for as long as it swings (limit.h). So a program that works in phases takes its page faults
 * twice, and not once a phase.
 * Place: the ledger records what is in use before it changes, and begins windows; limit.c reads the
 *  swing.
 * How: the swing is the highest minus the lowest value of this window and of the one before it. A
 *  window is a decay time. So the swing covers one to two decay times. It is zero after two windows
 *  in which the memory in use stays the same.
 * Concurrency: any thread records, with relaxed loads and stores. If two threads record at once,
 *  one value may be lost; then the swing is too small. The thread whose step is due begins the new
 *  window (pages/purge.c).
 */
#ifndef STOOK_SWING_H
#define STOOK_SWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"

struct stook_swing {
        size_t high[2], low[2];         /* atomic, relaxed: of this window, of the one before */
        uint32_t since_ms;              /* atomic, relaxed: when this window began */
};

/* @bytes were in use. From here on fewer are. */
STOOK_INLINE void stook_swing_tell_high(struct stook_swing *swing, size_t bytes)
{
        if (bytes > __atomic_load_n(&swing->high[0], __ATOMIC_RELAXED))
                __atomic_store_n(&swing->high[0], bytes, __ATOMIC_RELAXED);
}

/* @bytes were in use. From here on more are. */
STOOK_INLINE void stook_swing_tell_low(struct stook_swing *swing, size_t bytes)
{
        if (bytes < __atomic_load_n(&swing->low[0], __ATOMIC_RELAXED))
                __atomic_store_n(&swing->low[0], bytes, __ATOMIC_RELAXED);
}

/* The most bytes that were in use in both windows. */
static inline size_t stook_swing_most(const struct stook_swing *swing)
{
        size_t now = __atomic_load_n(&swing->high[0], __ATOMIC_RELAXED);
        size_t before = __atomic_load_n(&swing->high[1], __ATOMIC_RELAXED);

        return now > before ? now : before;
}

static inline size_t stook_swing_bytes(const struct stook_swing *swing)
{
        size_t now = __atomic_load_n(&swing->low[0], __ATOMIC_RELAXED);
        size_t before = __atomic_load_n(&swing->low[1], __ATOMIC_RELAXED);
        size_t most = stook_swing_most(swing), least = now < before ? now : before;

        return most > least ? most - least : 0;
}

/* Begins a new window if this one is @window_ms old or older. @bytes are in use now. */
static inline void stook_swing_turn(struct stook_swing *swing, uint32_t now_ms, uint32_t window_ms,
                                    size_t bytes)
{
        uint32_t age = now_ms - __atomic_load_n(&swing->since_ms, __ATOMIC_RELAXED);
        bool stale = age / 2 >= window_ms;

        if (age < window_ms)
                return;
        size_t high = stale ? bytes : __atomic_load_n(&swing->high[0], __ATOMIC_RELAXED);
        size_t low = stale ? bytes : __atomic_load_n(&swing->low[0], __ATOMIC_RELAXED);

        __atomic_store_n(&swing->high[1], high, __ATOMIC_RELAXED);
        __atomic_store_n(&swing->low[1], low, __ATOMIC_RELAXED);
        __atomic_store_n(&swing->high[0], bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&swing->low[0], bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&swing->since_ms, now_ms, __ATOMIC_RELAXED);
}

/*
 * Return: how many of @missed bytes are forgotten in an eighth of a window. That is an eighth of
 * them, but nothing of what swings.
 */
static inline size_t stook_swing_forget(const struct stook_swing *swing, size_t missed)
{
        size_t less = missed / 8 + !!missed, keep = stook_swing_bytes(swing);

        if (missed <= keep)
                return 0;
        return less < missed - keep ? less : missed - keep;
}

#endif
