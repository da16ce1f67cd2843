/*
 * Purpose: waits until everything that was given to free_rcu before is free.
 *
 * Objects may be in a sheaf open on a slot, in a sheaf of a call in transit, in a deferred sheaf,
 * on a chain, or with the implementation. So a barrier
 *   0. asks for a grace period for the objects on the chain,
 *   1. takes the open sheaves off the slots and submits them,
 *   2. waits for the calls in transit,
 *   3. submits the deferred sheaves,
 *   4. waits for the calls in transit once more: one may have taken deferred sheaves before 3,
 *   5. has the implementation's barrier.
 * (Modelled: tests/proof/models/rcu.pml.) Afterwards objects can be left only on a chain, behind a
 * batch that was with the implementation already. For those there is a second barrier, if there are
 * any.
 *
 * Place: API, and called by cache; calls the files of this layer.
 */
#include <limits.h>

#include "rcu/rcu_inside.h"
#include "report/report.h"

static void cannot(const struct stook_rcu_cache *or_null)
{
        stook_report_fault(STOOK_FAULT_RCU, NULL, stook_rcu_name(or_null), NULL, 0,
                           "rcu barrier inside a read section or a callback");
}

/* This thread is not in transit, or only by a call that it has jumped out of. */
static void wait_for_transit(const struct stook_rcu_cache *or_null)
{
        if (STOOK_UNLIKELY(!stook_transit_wait()))
                stook_report_found(STOOK_FAULT_RCU, NULL, stook_rcu_name(or_null), NULL, 0,
                                   "a free by RCU did not end: its thread ended, was stopped or "
                                   "jumped out of it; what it had in hands is lost");
}

static void kick(struct stook_rcu_cache *cache)
{
        uint64_t ticket = stook_transit_begin();

        stook_rcu_chain_kick(cache, ticket);
        stook_transit_end(ticket);
}

static void evacuate_mixed(void)
{
        stook_rcu_evacuate(STOOK_RCU_MIXED_LINE, STOOK_RCU_MIXED_LINE + 1, UINT64_MAX, true);
}

/* All open sheaves were submitted. Afterwards all sheaves are with the implementation. */
static void wait_for_submissions(const struct stook_rcu_cache *or_null)
{
        wait_for_transit(or_null);
        stook_rcu_submit_deferred();
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* rcu_submit.c M1 */
        wait_for_transit(or_null);
}

void stook_rcu_barrier_of(struct stook_rcu_cache *cache)
{
        const struct stook_rcu *rcu = stook_rcu_peek(cache);

        if (!rcu || !stook_rcu_cache_is_used(cache))
                return;
        stook_rcu_check();
        if (!stook_rcu_may_wait(rcu, 1)) {
                cannot(cache);
                return;
        }
        kick(cache);
        stook_rcu_cache_evacuate(cache);
        evacuate_mixed();
        wait_for_submissions(cache);
        rcu->barrier();
        if (stook_rcu_chain_holds(cache)) {
                kick(cache);
                wait_for_transit(cache);
                rcu->barrier();
        }
}

/* Implementations in use: the process's, and those of caches. There are fewer flavours. */
#define TABLES 16

struct tables {
        const struct stook_rcu *rcu[TABLES];
        unsigned n;
};

/* False: no room. */
static bool note(struct tables *tables, const struct stook_rcu *rcu)
{
        for (unsigned i = 0; i < tables->n; i++)
                if (tables->rcu[i] == rcu)
                        return true;
        if (tables->n == TABLES)
                return false;
        tables->rcu[tables->n++] = rcu;
        return true;
}

static void barrier_of_each(const struct tables *tables)
{
        for (unsigned i = 0; i < tables->n; i++)
                tables->rcu[i]->barrier();
}

/*
 * The cache at @index, if it has had a free by RCU since it was made. Else NULL.
 */
static struct stook_rcu_cache *used_cache_at(unsigned index)
{
        struct stook_rcu_cache *cache = stook_rcu_cache_at(index);

        return cache && stook_rcu_cache_is_used(cache) ? cache : NULL;
}

/*
 * Asks for a grace period for each chain. A cache that is being destroyed meanwhile has a barrier
 * of its own. After any look at a cache another one may be at its index. If that cache uses no
 * RCU, there is nothing to wait for; if it does, all this is right for it.
 */
static void kick_all(struct tables *tables)
{
        for (unsigned i = 1; i < stook_rcu_caches_bound(); i++) {
                struct stook_rcu_cache *cache = used_cache_at(i);
                const struct stook_rcu *rcu = cache ? stook_rcu_peek(cache) : NULL;

                if (!rcu)
                        continue;
                kick(cache);
                if (!note(tables, rcu))
                        stook_rcu_barrier_of(cache);
        }
}

static bool chains_hold(void)
{
        for (unsigned i = 1; i < stook_rcu_caches_bound(); i++) {
                struct stook_rcu_cache *cache = used_cache_at(i);

                if (cache && stook_rcu_chain_holds(cache))
                        return true;
        }
        return false;
}

STOOK_API void stook_rcu_barrier(void)
{
        const struct stook_rcu *rcu = stook_rcu_pinned();
        struct tables tables = { .n = 0 };

        stook_rcu_check();
        if (rcu && !stook_rcu_may_wait(rcu, 1)) {
                cannot(NULL);
                return;
        }
        if (rcu)
                note(&tables, rcu);
        kick_all(&tables);
        stook_rcu_evacuate(0, UINT_MAX, UINT64_MAX, true);
        wait_for_submissions(NULL);
        barrier_of_each(&tables);
        if (chains_hold()) {
                kick_all(&tables);
                wait_for_transit(NULL);
                barrier_of_each(&tables);
        }
}
