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
 *   debt        to be purged whatever its age: limit.h
 *   forced      purged for the high-water mark, and not taken again yet. To take it again is no
 *               refault: it was purged although it may be wanted, and says nothing of phases
 * Concurrency: any thread, relaxed loads and stores. Two threads at once may lose or repeat one
 *  record: then the signal is a little off.
 */
#ifndef STOOK_LEDGER_H
#define STOOK_LEDGER_H

#include "base/compiler.h"
#include "policy/constants.h"
#include "policy/density.h"
#include "policy/in_turn.h"
#include "policy/swing.h"

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
        size_t fresh, reused;           /* clean, dirty, taken since the clock moved: fresh.h */
        uint64_t reused_ns;             /* when it last moved for dirty ones */
        struct stook_in_turn in_turn;   /* large objects */
        struct stook_density density[STOOK_DENSITY_KINDS];
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
}

STOOK_INLINE void stook_ledger_give(struct stook_ledger *ledger, size_t bytes)
{
        size_t before = __atomic_fetch_sub(&ledger->used, bytes, __ATOMIC_RELAXED);

        stook_swing_tell_high(&ledger->swing, before);
}

/*
 * Atomic, relaxed: 1: half of what slabs had is gone. Set once for each half. What sheaves hold
 * pins slabs that are else free, and no further call may come; the next slow call clears it, and
 * flushes (slot/slot_idle.c).
 */
extern uint32_t stook_ledger_halved STOOK_HIDDEN;

/* The same for spans of less than STOOK_SLABS_MOST, which slabs have as a rule, as well. */
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

/* A large object was taken, or given. */
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

#endif
