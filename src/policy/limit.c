/*
 * Purpose: how much free memory a node may keep: limit.h.
 */
#include "policy/constants.h"
#include "policy/limit.h"

static bool is_aged;                    /* atomic, relaxed: "aged" of limit.h */

void stook_limit_set_aged(bool aged)
{
        __atomic_store_n(&is_aged, aged, __ATOMIC_RELAXED);
}

bool stook_limit_is_aged(void)
{
        return __atomic_load_n(&is_aged, __ATOMIC_RELAXED);
}

size_t stook_limit_recurring(const struct stook_ledger *ledger)
{
        size_t missed = stook_ledger_refaults(ledger);
        size_t swing = missed ? stook_swing_bytes(&ledger->swing) : 0;

        return missed >= swing / 2 ? swing : missed;
}

size_t stook_limit_missed(const struct stook_ledger *ledger)
{
        size_t missed = stook_ledger_refaults(ledger);
        size_t swing = stook_limit_recurring(ledger);

        return missed > swing ? missed : swing;
}

/* One large object was freed, and the next one may take its place. */
static bool is_in_turn(const struct stook_ledger *ledger)
{
        return stook_density_found(&ledger->density[STOOK_DENSITY_LARGE]) == STOOK_DENSE &&
               stook_in_turn_goes_on(&ledger->in_turn,
                                     stook_ledger_used(ledger));
}

bool stook_limit_is_shrinking(const struct stook_ledger *ledger)
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
               !stook_limit_is_shrinking(ledger);
}

uint32_t stook_ledger_halved;

size_t stook_limit_dirty(const struct stook_ledger *ledger)
{
        size_t share = stook_ledger_used(ledger);
        size_t most = stook_swing_most(&ledger->swing);
        size_t in_turn = stook_in_turn_most(&ledger->in_turn);

        if (most > in_turn)
                most = in_turn;
        if (is_in_turn(ledger) && most > share)
                share = most;
        else if (!keeps_large(ledger))
                share /= STOOK_DIRTY_PART;
        return (share > STOOK_DIRTY_LEAST ? share : STOOK_DIRTY_LEAST) + stook_limit_missed(ledger);
}

size_t stook_limit_left(const struct stook_ledger *ledger)
{
        return stook_limit_is_shrinking(ledger) ? stook_limit_missed(ledger)
                                              : stook_limit_dirty(ledger);
}

size_t stook_limit_at_once(const struct stook_ledger *ledger)
{
        size_t allowed = stook_limit_dirty(ledger), most = stook_swing_most(&ledger->swing);

        return stook_limit_is_aged() && most > allowed ? most : allowed;
}

size_t stook_limit_worth(const struct stook_ledger *ledger, size_t dirty)
{
        size_t allowed = stook_limit_at_once(ledger);
        size_t used = stook_ledger_used(ledger);
        size_t end = stook_swing_most(&ledger->swing) / STOOK_SPIKE_END_PART;

        if (dirty <= allowed)
                return SIZE_MAX;
        if (dirty <= 2 * allowed)
                return STOOK_PURGE_BIG;
        return dirty <= used / 3 * 2 && used >= end ? STOOK_PURGE_SMALL : 1;
}
