/*
 * Purpose: wait until everything that was given to free_rcu before is free.
 *
 * Objects may be in a sheaf open on a slot, in a sheaf in somebody's hands (in transit), on the submit stack, on a chain, or
 * with the implementation. The order: take the open sheaves and submit them; wait for who is in transit; empty the
 * submit stack; wait once more, for whoever took it before us; then the implementation's barrier. (Modelled:
 * tests/models/rcu.pml.)
 *
 * Place: API.
 * Concurrency: M1: see cache_rcu_submit.c.
 */
#include "base/thread.h"
#include "cache/cache_rcu.h"
#include "life/life.h"
#include "report/report.h"
#include "slot/slot_rcu.h"

static void cannot(const struct stook_cache *or_null)
{
        stook_report_fault(STOOK_FAULT_RCU, NULL, or_null ? or_null->name : NULL, NULL, 0,
                           "rcu barrier inside a read section or a callback");
}

static void kick(struct stook_cache *cache)
{
        int ticket = stook_transit_enter();

        stook_rcu_chain_kick(cache);
        stook_transit_leave(ticket);
}

static void submit_open(struct stook_cache *cache)
{
        unsigned index = cache->front.offset >> STOOK_LINE_SHIFT;

        kick(cache);
        stook_slot_rcu_drain(index, index + 1, UINT64_MAX, true);
}

/* Line 0. */
static void submit_open_mixed(void)
{
        stook_slot_rcu_drain(0, 1, UINT64_MAX, true);
}

static void submit_waiting(void)
{
        int ticket = stook_transit_enter();

        stook_rcu_submit_waiting();
        stook_transit_leave(ticket);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M1 */
}

/* All open sheaves were submitted. This thread is not in transit. */
static void wait_for_submissions(void)
{
        stook_transit_wait();
        submit_waiting();
        stook_transit_wait();
}

STOOK_API void stook_cache_rcu_barrier(struct stook_cache *cache)
{
        const struct stook_rcu *rcu = stook_rcu_look(cache);

        if (!cache || !rcu || !__atomic_load_n(&cache->rcu_used, __ATOMIC_RELAXED))
                return;
        stook_fork_check();
        if (!stook_rcu_may_wait(rcu, 1) || !stook_transit_wait()) {
                cannot(cache);
                return;
        }
        submit_open(cache);
        submit_open_mixed();
        wait_for_submissions();
        rcu->barrier();
        if (cache->flags & STOOK_RCU) {
                /* A batch was in flight, and now what waited behind it is. */
                submit_open(cache);
                stook_transit_wait();
                rcu->barrier();
        }
}

/* Implementations in use: the process's, those of caches. More flavours than there are. */
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

/* Submits what is open everywhere. A cache that is being destroyed meanwhile has its own barrier. */
static void submit_all(struct tables *tables)
{
        for (unsigned i = 1; i < stook_caches_bound(); i++) {
                struct stook_cache *cache = stook_cache_at(i);

                if (!__atomic_load_n(&cache->rcu_used, __ATOMIC_RELAXED) ||
                    __atomic_load_n(&cache->state, __ATOMIC_ACQUIRE) != STOOK_CACHE_LIVE)
                        continue;
                kick(cache);
                if (!note(tables, stook_rcu_look(cache)))
                        stook_cache_rcu_barrier(cache);
        }
        stook_slot_rcu_drain(0, stook_caches_bound(), UINT64_MAX, true);
}

STOOK_API void stook_rcu_barrier(void)
{
        const struct stook_rcu *rcu = stook_rcu_in_use();
        struct tables tables = { .n = 0 };

        stook_fork_check();
        if ((rcu && !stook_rcu_may_wait(rcu, 1)) || !stook_transit_wait()) {
                cannot(NULL);
                return;
        }
        if (rcu)
                note(&tables, rcu);
        submit_all(&tables);
        wait_for_submissions();
        barrier_of_each(&tables);
        submit_all(&tables);                    /* chains, as above */
        stook_transit_wait();
        barrier_of_each(&tables);
}
