/*
 * Purpose: open sheaves that are not filled are submitted when they are old. The library has no
 * thread and no clock of its own for this: the implementation's callbacks are the clock. An
 * ordinary call that opens a sheaf asks for a callback, unless one is on its way. A callback is a
 * tick if TICK_MS have passed since the last tick: it looks at every slot, and submits what has
 * been open for TICKS ticks. It asks for the next callback as long as a sheaf is open. A nolock
 * call that opens a sheaf asks for no callback. Its sheaf is found by the ticks that the next
 * ordinary call starts when it opens a sheaf, or by stook_maintain().
 *
 * Place: called by rcu_free.c, and by life (maintenance); calls rcu_open.c.
 * Concurrency: M1: a call opens a sheaf, has a fence, and looks at the turn. The callback ends the
 *  turn, has a fence, and looks for open sheaves. One of the two sees the other.
 */
#include <limits.h>

#include "os/os.h"
#include "rcu/rcu_open.h"
#include "rcu/rcu_submit.h"
#include "rcu/rcu_transit.h"
#include "base/inject.h"

#define TICKS   8                       /* a sheaf is open for 80 ms at least; arbitrary */
#define TICK_MS 10                      /* from tick to tick at least */

static uint64_t ticks = TICKS;          /* atomic */
static uint32_t any;                    /* atomic: some sheaf was opened since the start */
static struct stook_rcu_turn turn;      /* M1 */
/* The turn's owner reads and writes these two: */
static const struct stook_rcu *clock;   /* whose callbacks are the clock */
static uint64_t tick_ms;                /* the time of the last tick */

static void done(struct stook_rcu_head *head);

static void arm(const struct stook_rcu *rcu, uint64_t ticket)
{
        struct stook_rcu_asked *gone, *asked = stook_rcu_turn_take(&turn, ticket, &gone);

        if (asked) {
                clock = rcu;
                stook_rcu_turn_ask(asked, ticket, rcu, done);
        }
}

void stook_rcu_watch(struct stook_rcu_cache *or_null)
{
        uint64_t ticket;

        __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M1 */
        if (!stook_rcu_turn_is_takeable(&turn) || stook_rcu_is_in_call())
                return;
        ticket = stook_transit_begin();
        arm(stook_rcu_pin(or_null), ticket);
        stook_transit_end(ticket);
}

/* One tick. Return: sheaves that are still open. */
static size_t evacuate_old(void)
{
        uint64_t now = __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);

        return stook_rcu_evacuate(0, UINT_MAX, now - TICKS, false);
}

uint64_t stook_rcu_tick(void)
{
        if (!__atomic_load_n(&any, __ATOMIC_RELAXED))
                __atomic_store_n(&any, 1, __ATOMIC_RELAXED);
        return __atomic_load_n(&ticks, __ATOMIC_RELAXED);
}

/* The turn is the caller's. True: the callback is to be asked for again. */
static bool goes_on(void)
{
        uint64_t now = stook_os_clock_ms();

        if (now - tick_ms < (STOOK_INJECT_GET(rcu_rounds_at_once) ? 0 : TICK_MS))
                return true;
        tick_ms = now;
        return evacuate_old();
}

/* In the callback. The turn is the caller's. */
static void next_tick(struct stook_rcu_asked *asked, uint64_t ticket)
{
        const struct stook_rcu *rcu = clock;

        if (goes_on()) {
                if (stook_rcu_turn_again(asked, ticket))
                        stook_rcu_turn_ask(asked, ticket, rcu, done);
        } else if (stook_rcu_turn_end(asked, ticket)) {
                __atomic_thread_fence(__ATOMIC_SEQ_CST);        /* M1 */
                if (evacuate_old())
                        arm(rcu, ticket);
        }
}

static void done(struct stook_rcu_head *head)
{
        struct stook_rcu_asked *asked = stook_rcu_turn_asked(head);
        uint64_t ticket = stook_transit_begin();
        unsigned place = stook_rcu_callback_begin(__builtin_frame_address(0));

        if (stook_rcu_turn_begin(asked, ticket))
                next_tick(asked, ticket);
        stook_rcu_callback_end(place);
        stook_transit_end(ticket);
}

void stook_rcu_maintain(void)
{
        stook_rcu_heal();
        if (__atomic_load_n(&any, __ATOMIC_RELAXED) && !stook_rcu_is_in_call())
                evacuate_old();
        stook_rcu_submit_deferred();
}
