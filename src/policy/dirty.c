/*
 * Purpose: how much free memory a node may keep: limits, debt, the allocation clock (dirty.h). And
 * the variables of ledger.h.
 */
#include "os/os.h"
#include "policy/constants.h"
#include "policy/dirty.h"

static bool is_threaded;                /* atomic, relaxed: "threaded" of dirty.h */

void stook_dirty_set_threaded(bool threaded)
{
        __atomic_store_n(&is_threaded, threaded, __ATOMIC_RELAXED);
}

bool stook_dirty_is_threaded(void)
{
        return __atomic_load_n(&is_threaded, __ATOMIC_RELAXED);
}

size_t stook_dirty_recurring(const struct stook_ledger *ledger)
{
        size_t refaulted = stook_ledger_refaults(ledger);
        size_t swing = refaulted ? stook_swing_bytes(&ledger->swing) : 0;

        return refaulted >= swing / 2 ? swing : 0;
}

size_t stook_dirty_refaulted(const struct stook_ledger *ledger)
{
        size_t refaulted = stook_ledger_refaults(ledger);
        size_t swing = stook_dirty_recurring(ledger);

        return refaulted > swing ? refaulted : swing;
}

/* One large object was freed, and the next one may take its place. */
static bool is_in_turn(const struct stook_ledger *ledger)
{
        return stook_density_found(&ledger->density[STOOK_DENSITY_LARGE]) == STOOK_DENSE &&
               stook_in_turn_goes_on(&ledger->in_turn,
                                     stook_ledger_used(ledger));
}

bool stook_dirty_is_shrinking(const struct stook_ledger *ledger)
{
        size_t used = stook_ledger_used(ledger);

        return !is_in_turn(ledger) && used < stook_swing_most(&ledger->swing) / 3 * 2;
}

/*
 * Large objects that are replaced by others of other sizes leave free parts that fit nothing if
 * much is purged. Fresh memory is then taken beside them. What is written in part is not worth it.
 */
static bool keeps_large(const struct stook_ledger *ledger)
{
        return stook_density_found(&ledger->density[STOOK_DENSITY_LARGE]) == STOOK_DENSE &&
               !stook_dirty_is_shrinking(ledger);
}

uint32_t stook_ledger_halved;

size_t stook_dirty_limit(const struct stook_ledger *ledger)
{
        size_t share = stook_ledger_used(ledger);
        size_t most = stook_swing_most(&ledger->swing);

        if (is_in_turn(ledger) && most > share)
                share = most;
        else if (!keeps_large(ledger))
                share /= STOOK_PART;
        return (share > STOOK_DIRTY_LEAST ? share : STOOK_DIRTY_LEAST) +
               (stook_dirty_is_shrinking(ledger) ? stook_dirty_recurring(ledger)
                                                 : stook_dirty_refaulted(ledger));
}

size_t stook_dirty_left(const struct stook_ledger *ledger)
{
        return stook_dirty_is_shrinking(ledger) ? stook_dirty_recurring(ledger)
                                                : stook_dirty_limit(ledger);
}

size_t stook_dirty_at_once(const struct stook_ledger *ledger)
{
        size_t allowed = stook_dirty_limit(ledger), most = stook_swing_most(&ledger->swing);

        return stook_dirty_is_threaded() && most > allowed ? most : allowed;
}

size_t stook_dirty_worth(const struct stook_ledger *ledger, size_t dirty)
{
        size_t allowed = stook_dirty_at_once(ledger);
        size_t used = stook_ledger_used(ledger);
        size_t end = stook_swing_most(&ledger->swing) / STOOK_PART;

        if (dirty <= allowed)
                return SIZE_MAX;
        if (dirty <= 2 * allowed)
                return STOOK_DIRTY_LEAST;
        return dirty <= used / 3 * 2 && used >= end ? STOOK_PURGE_SMALL : 1;
}

/*
 * ---- debt ----
 * What is purged whatever its age, and although it may be wanted again.
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

/* A part of @used bytes, or of a small process. */
static size_t share_of(size_t used)
{
        return used / STOOK_PART > STOOK_DIRTY_LEAST ? used / STOOK_PART : STOOK_DIRTY_LEAST;
}

/*
 * So much may lie dirty at a new high-water mark. With huge pages it is the rest of one, which the
 * next large object is to have.
 */
static size_t kept_at_high_water(const struct stook_ledger *ledger)
{
        size_t bytes = share_of(stook_ledger_used(ledger)) / STOOK_HIGH_WATER_PART;

        return stook_huge_any() && bytes < STOOK_DENSITY_LARGE_LEAST ? STOOK_DENSITY_LARGE_LEAST
                                                                     : bytes;
}

void stook_debt_take(struct stook_ledger *ledger, size_t dirty, size_t bytes, bool clean)
{
        size_t mark = __atomic_load_n(&ledger->high_water, __ATOMIC_RELAXED);
        size_t now = stook_ledger_used(ledger) + dirty;

        if (clean && dirty > stook_dirty_limit(ledger))
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
                debt = debt_above(&ledger->debt, dirty, stook_dirty_limit(ledger));
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

/* ---- the allocation clock: ledger.h ---- */

#define MS_NS      UINT64_C(1000000)

struct stook_fresh stook_fresh;

/* True: with @bytes more *@word moves the clock, and begins anew. */
static bool moves(struct stook_ledger *ledger, size_t *word, size_t bytes)
{
        size_t part = stook_ledger_used(ledger) / STOOK_CLOCK_PART;
        size_t least = STOOK_DIRTY_LEAST / STOOK_HIGH_WATER_PART;

        if (__atomic_add_fetch(word, bytes, __ATOMIC_RELAXED) < (part > least ? part : least))
                return false;
        __atomic_store_n(word, 0, __ATOMIC_RELAXED);
        return true;
}

/* By the fine clock: ticks of the coarse one may be 10 ms apart. */
static bool is_too_soon(struct stook_ledger *ledger, uint32_t decay_ms)
{
        uint64_t now = stook_os_clock_ns(), apart = decay_ms * MS_NS / STOOK_CLOCK_PART / 2;

        if (now - __atomic_load_n(&ledger->reused_ns, __ATOMIC_RELAXED) < apart)
                return true;
        __atomic_store_n(&ledger->reused_ns, now, __ATOMIC_RELAXED);
        return false;
}

void stook_fresh_take(struct stook_ledger *ledger, size_t bytes, bool clean, uint32_t decay_ms)
{
        if (STOOK_LIKELY(!moves(ledger, clean ? &ledger->fresh : &ledger->reused, bytes)))
                return;
        if (clean)
                __atomic_fetch_add(&stook_fresh.clean, 1, __ATOMIC_RELAXED);
        else if (!is_too_soon(ledger, decay_ms))
                __atomic_fetch_add(&stook_fresh.dirty, 1, __ATOMIC_RELAXED);
}
