/*
 * Purpose: charge and uncharge: from the slot's stock, else from the counters of the group and its ancestors.
 *
 * The order in which a charge is tried: the stock; a new stock, STOCK_BYTES more than needed; the bytes alone; the bytes
 * once the stocks of all CPUs were taken back; and once the limit callback ran.
 *
 * Invariants: group.h.
 * Concurrency: any thread, any instruction. What is in this call's hands (a stock it replaced, a counter it raised)
 *  is nobody else's; a thread that ends there for good leaves that much charged.
 */
#include "group/group.h"
#include "slot/slot_stock.h"

/* What a stock is filled with (the kernel: 64 pages): half of what the word holds, so that frees find room, too. */
#define STOCK_BYTES ((STOOK_STOCK_MAX + 1) / 2)

/* ---- counters ---- */

static void counters_lower(struct stook_group *group, const struct stook_group *end, uint64_t bytes)
{
        for (; group != end; group = group->parent)
                __atomic_fetch_sub(&group->charged, bytes, __ATOMIC_RELAXED);
}

static void note_peak(struct stook_group *group, uint64_t charged)
{
        uint64_t peak = __atomic_load_n(&group->peak, __ATOMIC_RELAXED);

        while (charged > peak &&
               !__atomic_compare_exchange_n(&group->peak, &peak, charged, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                ;
}

static bool counter_raise(struct stook_group *group, uint64_t bytes, bool force)
{
        uint64_t charged = __atomic_load_n(&group->charged, __ATOMIC_RELAXED), sum;

        do {
                if (__builtin_add_overflow(charged, bytes, &sum) ||
                    (!force && sum > __atomic_load_n(&group->limit, __ATOMIC_RELAXED)))
                        return false;
        } while (!__atomic_compare_exchange_n(&group->charged, &charged, sum, true, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED));
        note_peak(group, sum);
        return true;
}

/* NULL: raised; else the group whose limit is in the way. */
static struct stook_group *counters_raise(struct stook_group *group, uint64_t bytes, bool force)
{
        for (struct stook_group *at = group; at; at = at->parent)
                if (!counter_raise(at, bytes, force)) {
                        counters_lower(group, at, bytes);
                        return at;
                }
        return NULL;
}

/* ---- stocks ---- */

static void give_back(uint16_t id, uint64_t bytes)
{
        counters_lower(stook_group_at(id), NULL, bytes);
}

/* Puts @bytes, charged to @id, into the slot's stock, on top or in place of another group's; else they are given back. */
static void keep(uint16_t id, uint64_t bytes)
{
        uint64_t seen, stock;

        if (stook_stock_add(id, (int64_t)bytes))
                return;
        seen = stook_stock_look(id);
        stock = seen & STOOK_STOCK_MAX;
        if ((seen & STOOK_STOCK_FROZEN) || (seen ^ stock) == stook_stock_tag(id) ||
            !stook_stock_set(id, seen, stook_stock_tag(id) | bytes))
                give_back(id, bytes);
        else if (stock)
                give_back((uint16_t)(seen >> 32), stock);
}

static bool holds_back(uint16_t id, const void *data)
{
        const struct stook_group *refuser = data;

        for (const struct stook_group *at = stook_group_at(id); at; at = at->parent)
                if (at == refuser)
                        return true;
        return false;
}

/* The stocks that count against @refuser are taken back, if that can make a difference. False: it cannot. */
static bool drain_stocks(const struct stook_group *refuser, uint64_t bytes)
{
        uint64_t stock = stook_stocks_sum(holds_back, refuser);
        uint64_t charged = __atomic_load_n(&refuser->charged, __ATOMIC_RELAXED);
        uint64_t limit = __atomic_load_n(&refuser->limit, __ATOMIC_RELAXED);

        if (!stock || charged - stock > limit || limit - (charged - stock) < bytes)
                return false;
        return stook_stocks_drain(0, false, give_back);
}

/* ---- over the limit ---- */

/* The callback runs as nobody: what it allocates meets no limit, so it is not called from within itself. */
static bool call_back(struct stook_group *refuser, uint64_t bytes)
{
        uint16_t inside = stook_self->group;

        if (!refuser->on_limit || inside == STOOK_GROUP_NOBODY)
                return false;
        stook_self->group = STOOK_GROUP_NOBODY;
        refuser->on_limit(refuser, bytes, refuser->on_limit_data);
        stook_self->group = inside;
        return true;
}

static STOOK_COLD bool charge_at_limit(struct stook_group *group, struct stook_group *refuser, uint64_t bytes,
                                       unsigned how)
{
        /* On top of a lock's holder, and in *_nolock calls, nobody is called and nothing waited for. */
        if (!(how & STOOK_CHARGE_QUIET) && !stook_self->locks_held) {
                if (drain_stocks(refuser, bytes)) {
                        refuser = counters_raise(group, bytes, false);
                        if (!refuser)
                                return true;
                }
                __atomic_fetch_add(&refuser->limit_events, 1, __ATOMIC_RELAXED);
                if (call_back(refuser, bytes)) {
                        drain_stocks(refuser, bytes);           /* what it freed lies in a stock */
                        refuser = counters_raise(group, bytes, false);
                        if (!refuser)
                                return true;
                }
        } else {
                __atomic_fetch_add(&refuser->limit_events, 1, __ATOMIC_RELAXED);
        }
        __atomic_fetch_add(&refuser->refusals, 1, __ATOMIC_RELAXED);
        return false;
}

static STOOK_NOINLINE bool charge_slow(uint16_t id, uint64_t bytes, unsigned how)
{
        struct stook_group *group = stook_group_at(id), *refuser;

        if (bytes <= STOOK_STOCK_MAX && stook_stock_add(id, -(int64_t)bytes))
                return true;
        if (bytes < STOCK_BYTES && !counters_raise(group, bytes + STOCK_BYTES, false)) {
                keep(id, STOCK_BYTES);
                return true;
        }
        refuser = counters_raise(group, bytes, false);
        return !refuser || charge_at_limit(group, refuser, bytes, how);
}

bool stook_group_charge(uint16_t id, uint64_t bytes, unsigned how)
{
        if (STOOK_LIKELY(bytes <= STOOK_STOCK_MAX && stook_stock_add_fast(id, -(int64_t)bytes)))
                return true;
        /* Atomics only: on a slot that is new to the thread, a look for a stock could wait for whoever grows slots. */
        if (how & STOOK_CHARGE_FORCE)
                return !counters_raise(stook_group_at(id), bytes, true);
        return charge_slow(id, bytes, how);
}

/*
 * The stock is full: half of it goes. It is another group's, or nobody's: an object freed on a CPU where its group
 * allocates nothing is no reason to replace that stock; but an empty place is taken, unless the group is ending.
 */
static STOOK_NOINLINE void uncharge_slow(uint16_t id, uint64_t bytes)
{
        struct stook_group *group = stook_group_at(id);
        uint64_t seen, stock;

        if (bytes < STOCK_BYTES) {
                if (stook_stock_add(id, (int64_t)bytes))
                        return;
                seen = stook_stock_look(id);
                stock = seen & STOOK_STOCK_MAX;
                if (!seen && __atomic_load_n(&group->state, __ATOMIC_RELAXED) == STOOK_GROUP_LIVE &&
                    stook_stock_set(id, 0, stook_stock_tag(id) | bytes))
                        return;
                if ((seen ^ stock) == stook_stock_tag(id) && stock >= STOCK_BYTES &&
                    stook_stock_set(id, seen, seen - STOCK_BYTES))
                        bytes += STOCK_BYTES;
        }
        counters_lower(group, NULL, bytes);
}

void stook_group_uncharge(uint16_t id, uint64_t bytes)
{
        if (STOOK_UNLIKELY(bytes > STOOK_STOCK_MAX || !stook_stock_add_fast(id, (int64_t)bytes)))
                uncharge_slow(id, bytes);
}
