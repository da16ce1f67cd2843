/*
 * Purpose: what a node's page layer holds where, and the signals that follow from it. The decisions
 * of this folder read nothing else.
 * Place: src/pages has one for each node, and tells it of each change. purge.c turns its windows.
 *
 * Words, all in bytes:
 *   used        with users: slabs, empty ones too, and large objects
 *   dirty       free, with content that is of no use: what may be purged. The page layer counts it
 *   refault     purged, and taken again lately: its purge was in vain
 *   high-water mark   most bytes that were used or dirty at once
 *   debt        to be purged whatever its age: dirty.h
 *   forced      purged for the high-water mark, and not taken again yet. To take it again is no
 *               refault: it was purged although it may be wanted, and says nothing of phases
 * Concurrency: any thread, relaxed loads and stores. Two threads at once may lose or repeat one
 *  record: then the signal is a little off.
 */
#ifndef STOOK_LEDGER_H
#define STOOK_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"
#include "policy/constants.h"
#include "policy/huge.h"

/*
 * ---- swing ----
 * By how much the memory in use went up and down lately. A purge of memory that is taken again soon
 * is in vain. After one such purge the memory that swings is kept for as long as it swings
 * (dirty.h). So a program that works in phases takes its page faults twice, and not once a phase.
 * How: the swing is the highest minus the lowest value of this window and of the one before it. A
 *  window is a decay time. So the swing covers one to two decay times. It is zero after two windows
 *  in which the memory in use stays the same. Windows turn in steps of the page layer alone:
 *  without slow calls, or without dirty memory, they stay.
 * Concurrency: any thread records, with relaxed loads and stores. If two threads record at once,
 *  one value may be lost; then the swing is too small. The thread whose step is due begins the new
 *  window (pages/purge.c).
 */

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

/* The most bytes in use in this window, or in the one before it. */
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
 * Return: how many of @refaulted bytes are forgotten in an eighth of a window. That is an eighth of
 * them, but nothing of what swings.
 */
static inline size_t stook_swing_forget(const struct stook_swing *swing, size_t refaulted)
{
        size_t less = refaulted / 8 + !!refaulted, keep = stook_swing_bytes(swing);

        if (refaulted <= keep)
                return 0;
        return less < refaulted - keep ? less : refaulted - keep;
}

/*
 * ---- in turn ----
 * Are large objects being replaced by others? One is freed, and the next one takes its place.
 * Between the two much less may be in use for a moment, if the objects are few. What is
 * purged then is faulted in again at once.
 * How: one give since the last take is a replacement: the next take is to come. With the second
 *  give in turn the process may be done, and make no more calls. So it may, where an eighth of
 *  what was in use since has been freed in small spans. What stays is bounded by what was in use
 *  with the last one taken: small spans that are freed between replacements are not replaced.
 * Concurrency: any thread, relaxed stores. A lost race costs a purge too many or too late.
 */

struct stook_in_turn {
        size_t least;           /* atomic: with fewer bytes in use it is over; 0: it is over */
        uint32_t gives;         /* atomic: since the last take; more than one count as one */
};

static inline size_t stook_in_turn_least_of(size_t used)
{
        return used - used / STOOK_PART;
}

/* A large span was taken. With it @used bytes are in use. */
static inline void stook_in_turn_taken(struct stook_in_turn *turn, size_t used)
{
        __atomic_store_n(&turn->gives, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&turn->least, stook_in_turn_least_of(used), __ATOMIC_RELAXED);
}

/* One was given. Without it @used bytes are in use. */
static inline void stook_in_turn_given(struct stook_in_turn *turn, size_t used)
{
        uint32_t gives = __atomic_load_n(&turn->gives, __ATOMIC_RELAXED);

        __atomic_store_n(&turn->gives, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&turn->least, gives ? 0 : stook_in_turn_least_of(used),
                         __ATOMIC_RELAXED);
}

/* True: with @used bytes in use large objects are being replaced. */
static inline bool stook_in_turn_goes_on(const struct stook_in_turn *turn, size_t used)
{
        size_t least = __atomic_load_n(&turn->least, __ATOMIC_RELAXED);

        return least && used >= least;
}

/* ---- ledger ---- */

struct stook_ledger {
        size_t used;                    /* atomic, as all of these */
        size_t committed;               /* with memory behind them, own mappings too */
        struct stook_swing swing;       /* of `used` */
        size_t refault;
        size_t purged_rest;             /* by the last stook_pages_purge_rest */
        size_t slabs;                   /* with users, in spans of less than STOOK_SLABS_MOST */
        size_t halved_from;             /* the most of that since it was halved */
        size_t high_water;
        size_t debt;                    /* for clean bytes taken above the dirty limit */
        size_t high_debt;               /* for the high-water mark */
        size_t forced;
        size_t fresh, reused;           /* clean, dirty, taken since the clock moved */
        uint64_t reused_ns;             /* when it last moved for dirty ones */
        struct stook_in_turn in_turn;   /* large objects */
        struct stook_density density[STOOK_DENSITY_KINDS];
        uint32_t huge_large;            /* how often it came huge for large objects */
        /* For statistics alone: most bytes used; bytes purged, by how many calls; refaulted. */
        size_t peak, purged, purges, refaulted;
};

STOOK_INLINE size_t stook_ledger_used(const struct stook_ledger *ledger)
{
        return __atomic_load_n(&ledger->used, __ATOMIC_RELAXED);
}

/* @bytes more are with users; @bytes fewer. All changes go this way, or the swing is off. */
STOOK_INLINE void stook_ledger_take(struct stook_ledger *ledger, size_t bytes)
{
        size_t before = __atomic_fetch_add(&ledger->used, bytes, __ATOMIC_RELAXED);

        stook_swing_tell_low(&ledger->swing, before);
        if (before + bytes > __atomic_load_n(&ledger->peak, __ATOMIC_RELAXED))
                __atomic_store_n(&ledger->peak, before + bytes, __ATOMIC_RELAXED);
}

STOOK_INLINE void stook_ledger_give(struct stook_ledger *ledger, size_t bytes)
{
        size_t before = __atomic_fetch_sub(&ledger->used, bytes, __ATOMIC_RELAXED);

        stook_swing_tell_high(&ledger->swing, before);
}

/*
 * Atomic, relaxed: 1: half of what slabs had is gone. Set once for each half. What sheaves hold
 * pins slabs that are else free, and no further call may come; the next slow call clears it, and
 * flushes (slot/slot_tick.c).
 */
extern uint32_t stook_ledger_halved STOOK_HIDDEN;

/* Beside stook_ledger_take and _give: spans of less than STOOK_SLABS_MOST, as a rule slabs. */
STOOK_INLINE void stook_ledger_take_slabs(struct stook_ledger *ledger, size_t bytes)
{
        __atomic_fetch_add(&ledger->slabs, bytes, __ATOMIC_RELAXED);
}

STOOK_INLINE void stook_ledger_give_slabs(struct stook_ledger *ledger, size_t bytes)
{
        size_t before = __atomic_fetch_sub(&ledger->slabs, bytes, __ATOMIC_RELAXED);
        size_t from = __atomic_load_n(&ledger->halved_from, __ATOMIC_RELAXED);

        if (before > from) {
                __atomic_store_n(&ledger->halved_from, before, __ATOMIC_RELAXED);
        } else if (STOOK_UNLIKELY(before - bytes < from / 2 && from >= STOOK_HALVED_LEAST)) {
                __atomic_store_n(&ledger->halved_from, before - bytes, __ATOMIC_RELAXED);
                __atomic_store_n(&stook_ledger_halved, 1, __ATOMIC_RELAXED);
        }
}

/* A span of 2 to 32 MiB (pages/span.h, STOOK_SPAN_OWN_MAPPING) was taken, or given. */
STOOK_INLINE void stook_ledger_take_large(struct stook_ledger *ledger)
{
        stook_in_turn_taken(&ledger->in_turn, stook_ledger_used(ledger));
}

STOOK_INLINE void stook_ledger_give_large(struct stook_ledger *ledger)
{
        stook_in_turn_given(&ledger->in_turn, stook_ledger_used(ledger));
}

STOOK_INLINE size_t stook_ledger_refaults(const struct stook_ledger *ledger)
{
        return __atomic_load_n(&ledger->refault, __ATOMIC_RELAXED);
}

/* @bytes that were purged are about to be used. */
static inline void stook_ledger_refault(struct stook_ledger *ledger, size_t bytes)
{
        size_t forced = __atomic_load_n(&ledger->forced, __ATOMIC_RELAXED);
        size_t less = forced < bytes ? forced : bytes;

        if (less)
                __atomic_store_n(&ledger->forced, forced - less, __ATOMIC_RELAXED);
        __atomic_fetch_add(&ledger->refault, bytes - less, __ATOMIC_RELAXED);
        __atomic_fetch_add(&ledger->refaulted, bytes, __ATOMIC_RELAXED);
}


/*
 * Once in each eighth of the decay time. Two thirds of the refaults are forgotten in a decay time,
 * once less is in use; and of what was forced, whatever is in use.
 */
static inline void stook_ledger_age(struct stook_ledger *ledger, uint32_t now_ms, uint32_t decay_ms)
{
        size_t refault, forced = __atomic_load_n(&ledger->forced, __ATOMIC_RELAXED);

        stook_swing_turn(&ledger->swing, now_ms, decay_ms, stook_ledger_used(ledger));
        refault = stook_ledger_refaults(ledger);
        /* If it changes meanwhile, nothing is forgotten this time. */
        __atomic_compare_exchange_n(&ledger->refault, &refault,
                                    refault - stook_swing_forget(&ledger->swing, refault), false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        if (forced)
                __atomic_store_n(&ledger->forced, forced - forced / 8 - 1, __ATOMIC_RELAXED);
}

/*
 * ---- allocation clock ----
 * It moves when much memory was taken from the pages. Memory goes from one use to another then, or
 * what the layers above keep idle is missed; each move lets them look for it (slot/slot_tick.c,
 * barn/barn_room.c).
 * How: clean memory is taken when no dirty span fits. Each part of it moves the clock: a look costs
 *  some microseconds, the pages hundreds. Dirty memory costs nothing, so it moves the clock once in
 *  a part of the decay time, and only barns are looked at. A program whose objects stay in its
 *  sheaves takes hardly any, and then only time lets them go.
 * Concurrency: relaxed words. Two threads may count one move together, or lose some bytes.
 */

extern struct stook_fresh {
        uint32_t clean, dirty;          /* atomic, relaxed: moves */
} stook_fresh STOOK_HIDDEN;

STOOK_INLINE uint32_t stook_fresh_clean(void)
{
        return __atomic_load_n(&stook_fresh.clean, __ATOMIC_RELAXED);
}

STOOK_INLINE uint32_t stook_fresh_dirty(void)
{
        return __atomic_load_n(&stook_fresh.dirty, __ATOMIC_RELAXED);
}

#endif
