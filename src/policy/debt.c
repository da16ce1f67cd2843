/*
 * Purpose: what is purged whatever its age, and although it may be wanted again: limit.h.
 * How: there are two kinds.
 *  The first is for clean bytes that are taken while more than the dirty limit lies free, in pieces
 *  that do not fit: as much is purged, or the process keeps both.
 *  The second is for the high-water mark: more bytes than ever before are used or dirty. Only then
 *  does what lies free make the peak larger, so as much is purged as the mark rose by. The peak is
 *  then near the most that was in use at once. A byte costs one purge at most, once in the life of
 *  the process; one that works in phases keeps its memory between them.
 * Concurrency: relaxed words. If two threads raise the mark at once, or pay, some bytes more or
 *  less are purged.
 */
#include "policy/constants.h"
#include "policy/limit.h"

static size_t kept = STOOK_HIGH_WATER_LEAST;   /* atomic, relaxed */

/* What a large object leaves of its last huge page is dirty: the next object is to have it. */
void stook_debt_set_huge(void)
{
        __atomic_store_n(&kept, STOOK_HIGH_WATER_HUGE, __ATOMIC_RELAXED);
}

static size_t kept_at_high_water(const struct stook_ledger *ledger)
{
        size_t part = stook_ledger_used(ledger) / STOOK_HIGH_WATER_PART;
        size_t least = __atomic_load_n(&kept, __ATOMIC_RELAXED);

        return part > least ? part : least;
}

void stook_debt_take(struct stook_ledger *ledger, size_t dirty, size_t bytes, bool clean)
{
        size_t mark = __atomic_load_n(&ledger->high_water, __ATOMIC_RELAXED);
        size_t now = stook_ledger_used(ledger) + dirty;

        if (clean && dirty > stook_limit_dirty(ledger))
                __atomic_fetch_add(&ledger->debt, bytes, __ATOMIC_RELAXED);
        if (now <= mark)
                return;
        __atomic_store_n(&ledger->high_water, now, __ATOMIC_RELAXED);
        if (dirty > kept_at_high_water(ledger))
                __atomic_fetch_add(&ledger->high_debt, now - mark, __ATOMIC_RELAXED);
}

/* *@word; it is forgotten once no more than @least bytes are dirty. */
static size_t debt_above(size_t *word, size_t dirty, size_t least)
{
        if (dirty > least)
                return __atomic_load_n(word, __ATOMIC_RELAXED);
        __atomic_store_n(word, 0, __ATOMIC_RELAXED);
        return 0;
}

size_t stook_debt(struct stook_ledger *ledger, size_t dirty)
{
        size_t debt = 0, high = 0;

        if (__atomic_load_n(&ledger->debt, __ATOMIC_RELAXED))
                debt = debt_above(&ledger->debt, dirty, stook_limit_dirty(ledger));
        if (__atomic_load_n(&ledger->high_debt, __ATOMIC_RELAXED))
                high = debt_above(&ledger->high_debt, dirty, kept_at_high_water(ledger));
        return debt > high ? debt : high;
}

static void pay(size_t *word, size_t bytes)
{
        size_t debt = __atomic_load_n(word, __ATOMIC_RELAXED);

        if (debt)
                __atomic_store_n(word, debt > bytes ? debt - bytes : 0, __ATOMIC_RELAXED);
}

void stook_debt_pay(struct stook_ledger *ledger, size_t bytes)
{
        size_t high = __atomic_load_n(&ledger->high_debt, __ATOMIC_RELAXED);

        if (high)
                __atomic_fetch_add(&ledger->forced, high < bytes ? high : bytes, __ATOMIC_RELAXED);
        pay(&ledger->debt, bytes);
        pay(&ledger->high_debt, bytes);
}
