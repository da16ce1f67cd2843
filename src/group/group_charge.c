/*
 * Purpose: charge and uncharge: from the slot's precharge, else from the counters of the group and
 * its ancestors.
 *
 * The order in which a charge is tried:
 *  1. the precharge;
 *  2. a new precharge: PRECHARGE_BYTES more than needed, from the counters;
 *  3. the bytes alone;
 *  4. the bytes, once the precharges of all CPUs were taken back;
 *  5. the bytes, once the limit callback ran.
 *
 * Invariants: group.h.
 * Concurrency: any thread, any instruction. What is in this call's hands (a precharge it replaced,
 *  a counter it raised) is its own. A thread that ends there for good leaves that much charged.
 */
#include "group/group.h"
#include "group/precharge.h"

/*
 * What a precharge is filled with: half of what the word holds, so that frees find room, too. (The
 * kernel: 64 pages.)
 */
#define PRECHARGE_BYTES ((STOOK_PRECHARGE_MAX + 1) / 2)

/* ---- counters ---- */

/* The parent is read first: these bytes may be all that keeps the group (group.h I4). */
static void counters_lower(struct stook_group *group, const struct stook_group *end, uint64_t bytes)
{
        while (group != end) {
                struct stook_group *parent = stook_group_parent(group);

                __atomic_fetch_sub(&group->charged, bytes, __ATOMIC_RELEASE);   /* group.h M1 */
                group = parent;
        }
}

static void note_peak(struct stook_group *group, uint64_t charged)
{
        uint64_t peak = __atomic_load_n(&group->peak, __ATOMIC_RELAXED);

        while (charged > peak &&
               !__atomic_compare_exchange_n(&group->peak, &peak, charged, true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED))
                ;
}

static bool counter_raise(struct stook_group *group, uint64_t bytes, bool force)
{
        uint64_t charged = __atomic_load_n(&group->charged, __ATOMIC_RELAXED), sum;

        do {
                if (__builtin_add_overflow(charged, bytes, &sum) ||
                    (!force && sum > __atomic_load_n(&group->limit, __ATOMIC_RELAXED)))
                        return false;
        } while (!__atomic_compare_exchange_n(&group->charged, &charged, sum, true,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        note_peak(group, sum);
        return true;
}

/* NULL: raised; else the group whose limit is in the way. */
static struct stook_group *counters_raise(struct stook_group *group, uint64_t bytes, bool force)
{
        for (struct stook_group *at = group; at; at = stook_group_parent(at))
                if (!counter_raise(at, bytes, force)) {
                        counters_lower(group, at, bytes);
                        return at;
                }
        return NULL;
}

/* ---- precharges ---- */

void stook_group_give_back(uint16_t id, uint64_t bytes)
{
        counters_lower(stook_group_at(id), NULL, bytes);
}

/*
 * Puts @bytes, charged to @id, into the slot's precharge: on top of it, or in place of another
 * group's. If that fails they are given back.
 */
static void keep(uint16_t id, uint64_t bytes)
{
        uint64_t seen, precharge;

        if (stook_precharge_add(id, (int64_t)bytes))
                return;
        seen = stook_precharge_look(id);
        precharge = seen & STOOK_PRECHARGE_MAX;
        if ((seen & STOOK_PRECHARGE_FROZEN) || (seen ^ precharge) == stook_precharge_tag(id) ||
            !stook_precharge_set(id, seen, stook_precharge_tag(id) | bytes))
                stook_group_give_back(id, bytes);
        else if (precharge)
                stook_group_give_back((uint16_t)(seen >> 32), precharge);
}

static bool holds_back(uint16_t id, const void *data)
{
        return stook_group_is_below(stook_group_at(id), data);
}

/* All precharges are taken back, if those that count against @refuser can make a difference. */
static bool evacuate_precharges(const struct stook_group *refuser, uint64_t bytes)
{
        uint64_t precharge = stook_precharges_sum(holds_back, refuser);
        uint64_t charged = __atomic_load_n(&refuser->charged, __ATOMIC_RELAXED);
        uint64_t limit = __atomic_load_n(&refuser->limit, __ATOMIC_RELAXED);

        if (!precharge || charged - precharge > limit || limit - (charged - precharge) < bytes)
                return false;
        return stook_precharges_evacuate(false, stook_group_give_back);
}

/* ---- over the limit ---- */

/*
 * While the callback runs the thread is charged to no group. So what it allocates meets no limit,
 * and the callback is not called from within itself.
 */
static bool call_back(struct stook_group *refuser, uint64_t bytes)
{
        uint16_t inside = stook_self->group;

        if (!refuser->on_limit || inside == STOOK_GROUP_NONE)
                return false;
        stook_self->group = STOOK_GROUP_NONE;
        refuser->on_limit(refuser, bytes, refuser->on_limit_data);
        stook_self->group = inside;
        return true;
}

static STOOK_COLD bool charge_at_limit(struct stook_group *group, struct stook_group *refuser,
                                       uint64_t bytes, unsigned how)
{
        if (how & STOOK_CHARGE_TRY)
                return false;
        /* On top of a lock's holder, and in *_nolock calls: no callback, and no wait. */
        if (!(how & STOOK_CHARGE_QUIET) && !stook_self->locks_held) {
                if (evacuate_precharges(refuser, bytes)) {
                        refuser = counters_raise(group, bytes, false);
                        if (!refuser)
                                return true;
                }
                __atomic_fetch_add(&refuser->limit_events, 1, __ATOMIC_RELAXED);
                if (call_back(refuser, bytes)) {
                        /* What the callback freed lies in a precharge. */
                        evacuate_precharges(refuser, bytes);
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

        if (bytes <= STOOK_PRECHARGE_MAX && stook_precharge_add(id, -(int64_t)bytes))
                return true;
        if (bytes < PRECHARGE_BYTES && !counters_raise(group, bytes + PRECHARGE_BYTES, false)) {
                keep(id, PRECHARGE_BYTES);
                return true;
        }
        refuser = counters_raise(group, bytes, false);
        return !refuser || charge_at_limit(group, refuser, bytes, how);
}

bool stook_group_charge(uint16_t id, uint64_t bytes, unsigned how)
{
        if (STOOK_LIKELY(bytes <= STOOK_PRECHARGE_MAX &&
                         stook_precharge_add_hot(id, -(int64_t)bytes)))
                return true;
        /*
         * Atomics only: on a slot that is new to the thread, a look for a precharge could wait for
         * a thread that grows the slots.
         */
        if (how & STOOK_CHARGE_FORCE)
                return !counters_raise(stook_group_at(id), bytes, true);
        return charge_slow(id, bytes, how);
}

/*
 * If the precharge is full, half of it goes. If it is another group's, it stays: an object that is
 * freed on a CPU where its group allocates nothing is no reason to replace it. An empty place is
 * taken, unless the group is ending.
 */
static STOOK_NOINLINE void uncharge_slow(uint16_t id, uint64_t bytes)
{
        struct stook_group *group = stook_group_at(id);
        uint64_t seen, precharge;

        if (bytes < PRECHARGE_BYTES) {
                if (stook_precharge_add(id, (int64_t)bytes))
                        return;
                seen = stook_precharge_look(id);
                precharge = seen & STOOK_PRECHARGE_MAX;
                if (!seen && __atomic_load_n(&group->state, __ATOMIC_RELAXED) == STOOK_GROUP_LIVE &&
                    stook_precharge_set(id, 0, stook_precharge_tag(id) | bytes))
                        return;
                if ((seen ^ precharge) == stook_precharge_tag(id) && precharge >= PRECHARGE_BYTES &&
                    stook_precharge_set(id, seen, seen - PRECHARGE_BYTES))
                        bytes += PRECHARGE_BYTES;
        }
        counters_lower(group, NULL, bytes);
}

void stook_group_uncharge(uint16_t id, uint64_t bytes)
{
        if (STOOK_UNLIKELY(bytes > STOOK_PRECHARGE_MAX ||
                           !stook_precharge_add_hot(id, (int64_t)bytes)))
                uncharge_slow(id, bytes);
}
