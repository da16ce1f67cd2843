/*
 * Purpose: see rcu_open.h.
 *
 * A sheaf is taken off from outside as in evacuate/evacuate.h. It is exchanged for NULL, a
 * membarrier follows, and only then the sheaf is looked at. A push that had loaded it has committed
 * by then, or is aborted.
 *
 * Concurrency: the look for a sheaf, and the exchange that takes it off, are the two sides of
 *  rcu_transit.c M1 together with the counts there.
 */
#include "evacuate/evacuate.h"
#include "rcu/rcu_open.h"
#include "rcu/rcu_submit.h"
#include "rcu/rcu_transit.h"
#include "slot/slot_regions.h"

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
bool stook_rcu_open(uint32_t offset, struct stook_sheaf *sheaf, uint64_t round)
{
        struct stook_sheaf **place = here(offset), *none = NULL;

        stook_sheaf_set_round(sheaf, round);
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
        line = cache->front->below->line_index;
        return !stook_rcu_evacuate(line, line + 1, UINT64_MAX, true);
}
