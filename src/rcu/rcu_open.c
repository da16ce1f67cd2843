/*
 * Purpose: the open rcu sheaves of slots, which take the objects that wait for readers. Those that
 * are not filled are submitted when they are old.
 *
 * A sheaf is taken off from outside as in evacuate/evacuate.h. It is exchanged for NULL, a
 * membarrier follows, and only then the sheaf is looked at. A push that had loaded it has committed
 * by then, or is aborted.
 *
 * The library has no thread and no clock of its own for this: the implementation's callbacks are
 * the clock. An ordinary call that opens a sheaf asks for a callback, unless one is on its way. A
 * callback is a tick if TICK_MS have passed since the last tick: it looks at every slot, and
 * submits what has been open for TICKS ticks. It asks for the next callback as long as a sheaf is
 * open. A nolock call that opens a sheaf asks for no callback. Its sheaf is found by the ticks that
 * the next ordinary call starts when it opens a sheaf, or by stook_maintain().
 *
 * Place: called by rcu_free.c, barriers, and life (maintenance); calls evacuate, slot.
 * Invariants:
 *  I1 rcu_free of a line is NULL or a sheaf with room for one object more at least: the push that
 *     fills the sheaf takes it off.
 *  I2 rcu_free goes from NULL to a sheaf by a compare-and-swap of any thread. It goes back to NULL
 *     by the compare-and-swap of rcu_fill (section/section.h), or by an exchange.
 * Concurrency: the look for a sheaf, and the exchange that takes it off, are the two sides of
 *  rcu_transit.c M1 together with the counts there. M1: a call opens a sheaf, has a fence, and
 *  looks at the turn. The callback ends the turn, has a fence, and looks for open sheaves. One of
 *  the two sees the other.
 */
#include <limits.h>

#include "base/inject.h"
#include "evacuate/evacuate.h"
#include "os/os.h"
#include "rcu/rcu_inside.h"
#include "slot/slot_regions.h"

#define TICKS   8                       /* a sheaf is open for 80 ms at least; arbitrary */
#define TICK_MS 10                      /* from tick to tick at least */

static uint64_t ticks = TICKS;          /* atomic: noted in a sheaf that is opened */
static uint32_t any;                    /* atomic: some sheaf was opened since the start */

static struct stook_sheaf **here(uint32_t offset)
{
        char *own = (char *)stook_slot_ops()->own();

        return own ? &((struct stook_line *)(own + offset))->rcu_free : NULL;
}

bool stook_rcu_is_open(uint32_t offset)
{
        struct stook_sheaf **place = here(offset);

        return place && __atomic_load_n(place, __ATOMIC_RELAXED);
}

/* The thread may have left the slot meanwhile. It does not matter on which slot the sheaf is. */
bool stook_rcu_open(uint32_t offset, struct stook_sheaf *sheaf)
{
        struct stook_sheaf **place = here(offset), *none = NULL;

        if (!__atomic_load_n(&any, __ATOMIC_RELAXED))
                __atomic_store_n(&any, 1, __ATOMIC_RELAXED);
        stook_sheaf_set_round(sheaf, __atomic_load_n(&ticks, __ATOMIC_RELAXED));
        return place && __atomic_compare_exchange_n(place, &none, sheaf, false, __ATOMIC_ACQ_REL,
                                                    __ATOMIC_RELAXED);
}

/* ---- from outside ---- */

/* What to look for, and what a look over all slots found. */
struct search {
        unsigned first, end;            /* lines from `first` to below `end` */
        uint64_t round;
        size_t   due, young;            /* sheaves opened at `round` or before; later */
        struct stook_link *taken;       /* sheaves taken off */
};

static void take(struct stook_sheaf **place, struct search *search)
{
        struct stook_sheaf *sheaf;

        sheaf = __atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL); /* rcu_transit.c M1 */
        if (!sheaf)
                return;
        __atomic_store_n(&sheaf->open.link.next, search->taken, __ATOMIC_RELAXED);
        search->taken = &sheaf->open.link;
}

/* Of one slot: counts its sheaves. @may_take: takes those that are due. */
static void look_at(struct stook_line *lines, bool may_take, struct search *search)
{
        unsigned filled = stook_regions_lines(), end = search->end < filled ? search->end : filled;

        for (unsigned index = search->first; index < end; index++) {
                struct stook_sheaf **place = &lines[index].rcu_free;
                struct stook_sheaf *sheaf;

                sheaf = __atomic_load_n(place, __ATOMIC_ACQUIRE); /* rcu_transit.c M1 */
                if (!sheaf)
                        continue;
                if (stook_sheaf_round(sheaf) > search->round) {
                        search->young++;
                        continue;
                }
                search->due++;
                if (may_take)
                        take(place, search);
        }
}

static bool take_open(unsigned slot, bool stuck, struct stook_line *lines, void *data)
{
        struct search *search = data;
        const struct stook_link *before = search->taken;

        (void)slot;
        if (!stuck)
                look_at(lines, true, search);
        return search->taken != before;
}

static void submit(struct stook_link *taken)
{
        while (taken) {
                struct stook_sheaf *sheaf = stook_container_of(taken, struct stook_sheaf,
                                                               open.link);

                taken = taken->next;
                stook_rcu_submit_or_free(sheaf);
        }
}

/*
 * The caller is in transit, and has begun an evacuation, which ends here. False: no sheaf was
 * submitted. Either no slot was visited, or what was taken off is lost (evacuate.h I2, I3) and
 * never touched again.
 */
static bool evacuate(struct search *search)
{
        enum stook_evacuated answer = stook_evacuate_slots(take_open, search);

        stook_evacuate_end();
        if (answer != STOOK_EVACUATE_DONE)
                return false;
        submit(search->taken);
        return true;
}

size_t stook_rcu_evacuate(unsigned first, unsigned end, uint64_t round, bool wait)
{
        struct search seen = { .first = first, .end = end, .round = round }, found = seen;
        uint64_t ticket;
        size_t left;

        /* A look without the mutex, so that there is no barrier for nothing. */
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                struct stook_line *lines = stook_slots_line(slot, 0);

                if (lines)
                        look_at(lines, false, &seen);
        }
        left = seen.young + seen.due;
        if (!seen.due)
                return left;
        ticket = stook_transit_begin();
        if (stook_evacuate_begin(wait ? STOOK_EVACUATE_WAIT : STOOK_EVACUATE_TRY) &&
            evacuate(&found))
                left = found.young;
        stook_transit_end(ticket);
        return left;
}

bool stook_rcu_cache_evacuate(struct stook_rcu_cache *cache)
{
        unsigned line;

        if (!stook_rcu_cache_is_used(cache))
                return true;
        line = cache->front->barns->line_index;
        return !stook_rcu_evacuate(line, line + 1, UINT64_MAX, true);
}

/* ---- the clock ---- */

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
        if (!stook_rcu_turn_is_takeable(&turn) || stook_self_is_inside(STOOK_INSIDE_RCU_CALL))
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
        struct stook_rcu_asked *asked = stook_container_of(head, struct stook_rcu_asked, head);
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
        if (__atomic_load_n(&any, __ATOMIC_RELAXED) && !stook_self_is_inside(STOOK_INSIDE_RCU_CALL))
                evacuate_old();
        stook_rcu_submit_deferred();
}
