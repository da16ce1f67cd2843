/*
 * Purpose: open sheaves that are not filled are submitted when they are old, with no thread and no clock of our own.
 * The clock is the implementation: when a sheaf is opened a callback is asked for, if none is on its way. Each is a
 * round; it submits what has been open for ROUNDS of them, and asks for the next as long as anything is open. However fast
 * grace periods follow each other, a round takes 10 ms at least: it looks at every slot.
 * Sheaves that nolock calls opened are found by any such round, that of the next ordinary call or of stook_maintain().
 *
 * Place: called by cache_rcu.c, and by life (maintain); calls slot.
 * Concurrency: M1: who opens a sheaf, fence, then looks at `armed`; the callback stores 0, fence, then looks for open
 *  sheaves: one of the two sees the other.
 */
#include "base/thread.h"
#include "cache/cache_rcu.h"
#include "life/life.h"
#include "os/os.h"
#include "slot/slot_rcu.h"

#define ROUNDS 8                        /* so what is open waits for about 100 ms: arbitrary */

uint32_t stook_rcu_round_ms = 10;       /* const; tests whose grace periods take no time set it to 0 */
static uint64_t rounds = ROUNDS;        /* atomic */
static uint32_t any;                    /* atomic: a sheaf was opened, ever */
static uint32_t armed;                  /* M1 */
static const struct stook_rcu *clock;   /* armed's owner */
static struct stook_rcu_head head;      /* armed's owner */
static uint64_t round_ms;               /* armed's owner: when the last round was */

static void done(struct stook_rcu_head *unused);

static void arm(const struct stook_rcu *rcu)
{
        if (!__atomic_exchange_n(&armed, 1, __ATOMIC_ACQUIRE)) {
                clock = rcu;
                stook_rcu_call(rcu, &head, done);
        }
}

void stook_rcu_watch(struct stook_cache *or_null)
{
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M1 */
        if (!__atomic_load_n(&armed, __ATOMIC_RELAXED) && !stook_rcu_is_inside())
                arm(stook_rcu_of(or_null));
}

/* Sheaves that are open still. */
static size_t drain_old(void)
{
        uint64_t round = __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);

        return stook_slot_rcu_drain(0, stook_caches_bound(), round - ROUNDS, false);
}

uint64_t stook_rcu_round(void)
{
        if (!__atomic_load_n(&any, __ATOMIC_RELAXED))
                __atomic_store_n(&any, 1, __ATOMIC_RELAXED);
        return __atomic_load_n(&rounds, __ATOMIC_RELAXED);
}

/* Armed. The callback is asked for again. */
static bool goes_on(void)
{
        uint64_t now = stook_os_clock_ms();

        if (now - round_ms < stook_rcu_round_ms)
                return true;
        round_ms = now;
        return drain_old();
}

static void done(struct stook_rcu_head *unused)
{
        const struct stook_rcu *rcu = clock;

        (void)unused;
        stook_self->barred |= STOOK_SELF_RCU_CALLBACK;
        stook_fork_check();
        if (goes_on()) {
                stook_rcu_call(rcu, &head, done);
        } else {
                __atomic_store_n(&armed, 0, __ATOMIC_RELEASE);
                __atomic_thread_fence(__ATOMIC_SEQ_CST);        /* M1 */
                if (drain_old())
                        arm(rcu);
        }
        stook_self->barred &= (uint8_t)~STOOK_SELF_RCU_CALLBACK;
}

void stook_rcu_step(void)
{
        if (__atomic_load_n(&any, __ATOMIC_RELAXED) && !stook_rcu_is_inside())
                drain_old();
        stook_rcu_hand_in();
}

void stook_rcu_hand_in(void)
{
        int ticket = stook_transit_enter();

        if (ticket >= 0) {
                stook_rcu_submit_waiting();
                stook_transit_leave(ticket);
        }
}
