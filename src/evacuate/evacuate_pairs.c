/*
 * Purpose: the pairs of sheaves of a cache, taken off its slots and flushed: of all slots, for
 * shrink, destroy and tuning, or of idle ones.
 * Place: called by cache and by evacuate_idle.c; calls the engine, and barn to flush.
 *
 * A slot's pair is exchanged for {zero-capacity sheaf, none}, by the same compare-and-swap that
 * every thread changes it with. Open rcu sheaves of the cache are not taken off here: they are
 * rcu's.
 * Concurrency: under the engine's mutex; evacuate.c M1.
 * Failure: as evacuate.h.
 */
#include "barn/barn.h"
#include "evacuate/evacuate.h"
#include "home/home.h"
#include "slot/slot_regions.h"

/*
 * Sheaves that were taken off and are not flushed yet, linked. A child of fork finds here what a
 * thread that it does not have had in its hands, but for one sheaf. Guarded by the engine's mutex.
 */
static struct stook_link *detached;

static void chain(struct stook_sheaf *sheaf)
{
        if (!sheaf || sheaf == &stook_sheaf_zero)
                return;
        /* No section touches link. A popper with a stale head may read it; its tag rejects it. */
        __atomic_store_n(&sheaf->owned.link.next, detached, __ATOMIC_RELAXED);
        detached = &sheaf->owned.link;
}

static struct stook_sheaf *unchain(void)
{
        struct stook_sheaf *sheaf = stook_container_of(detached, struct stook_sheaf, owned.link);

        detached = detached->next;
        return sheaf;
}

static bool has_sheaf(struct stook_pair pair)
{
        return pair.lo != (uintptr_t)&stook_sheaf_zero || pair.hi;
}

/*
 * True: nothing was taken from this slot's sheaves since the look that noted them, and that look
 * was after_ms ago, or no thread can run on the slot any more. @look NULL: all are due.
 */
static bool is_due(struct stook_line *line, unsigned slot, const struct stook_idle_look *look)
{
        struct stook_pair pair = stook_pair_read(&line->pair);
        const struct stook_sheaf *main = (const struct stook_sheaf *)pair.lo;
        uint64_t pops = __atomic_load_n(&main->word, __ATOMIC_RELAXED) >> 16;
        uint32_t since_ms;

        if (!look)
                return true;
        if (!stook_line_is_unchanged(line, pair.lo, pops)) {
                stook_line_note(line, pair.lo, pops, look->now_ms);
                return false;
        }
        since_ms = __atomic_load_n(&line->idle_since_ms, __ATOMIC_RELAXED);
        return look->now_ms - since_ms >= look->after_ms || stook_evacuate_is_gone(slot, look);
}

/*
 * A look without the mutex, so that no barrier is made where no pair is due. It looks at all slots,
 * also after one that is due, because a look also notes what it saw.
 */
static bool is_any_due(unsigned line_index, const struct stook_idle_look *look)
{
        bool due = false;

        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                struct stook_line *line = stook_slots_line(slot, line_index);

                if (line && has_sheaf(stook_pair_read(&line->pair)))
                        due |= is_due(line, slot, look);
        }
        return due;
}

/* Which pairs to take off, and what came of it. */
struct take {
        unsigned line_index;
        const struct stook_idle_look *look;
        bool any;                       /* a pair was taken off */
        bool left;                      /* a stuck slot keeps sheaves that were due */
};

static bool take_pair(unsigned slot, bool stuck, struct stook_line *lines, void *data)
{
        const struct stook_pair nothing = { .lo = (uintptr_t)&stook_sheaf_zero };
        struct take *take = data;
        struct stook_line *line = lines + take->line_index;
        struct stook_pair old;

        if (take->line_index >= stook_regions_lines() || !is_due(line, slot, take->look))
                return false;
        old = stook_pair_read(&line->pair);
        if (stuck) {
                take->left |= has_sheaf(old);
                return false;
        }
        while (has_sheaf(old) && !stook_pair_cas(&line->pair, &old, nothing))
                ;
        /* The next pair begins small again, also of another cache with this line. */
        if (__atomic_load_n(&line->brought, __ATOMIC_RELAXED))
                __atomic_store_n(&line->brought, 0, __ATOMIC_RELAXED);
        chain((struct stook_sheaf *)old.lo);
        chain((struct stook_sheaf *)old.hi);
        take->any |= has_sheaf(old);
        return has_sheaf(old);
}

/*
 * With the mutex. False: nothing was flushed. There is no barrier, or what was taken off is not to
 * be touched.
 */
static bool evacuate(struct stook_barns *barns, struct take *take)
{
        enum stook_evacuated answer = stook_evacuate_slots(take_pair, take);

        if (answer == STOOK_EVACUATE_LOST)
                detached = NULL;
        while (detached)
                stook_barn_discard(barns, unchain());
        return answer == STOOK_EVACUATE_DONE;
}

bool stook_evacuate_cache(struct stook_front *front)
{
        struct take all = { .line_index = front->below->line_index };
        bool done;

        /* A cache that never had a sheaf; its capacity may be 0 only since it was tuned. */
        if (!stook_counted(front->below->below->counters, STOOK_STAT_sheaf_alloc))
                return true;
        stook_home_evacuate(front);
        if (!stook_evacuate_begin(STOOK_EVACUATE_WAIT))
                return false;
        done = evacuate(front->below, &all);
        stook_evacuate_end();
        return done && !all.left;
}

bool stook_evacuate_idle_pairs(struct stook_barns *barns, const struct stook_idle_look *look)
{
        struct take idle = { .line_index = barns->line_index, .look = look };
        bool done;

        if (!is_any_due(barns->line_index, look) || !stook_evacuate_begin(STOOK_EVACUATE_WAIT))
                return false;
        done = evacuate(barns, &idle);
        stook_evacuate_end();
        stook_barns_slabs_changed(barns);
        return done && idle.any;
}

void stook_evacuate_fork_mend(void)
{
        /* This thread's own evacuation goes on: it forked in a handler on top of it. */
        if (stook_evacuate_is_mine())
                return;
        while (detached) {
                struct stook_sheaf *sheaf = unchain();
                struct stook_barns *barns = stook_barns_first();

                while (barns && barns->cache_index != sheaf->cache_index)
                        barns = barns->next;
                if (barns)
                        stook_barn_discard(barns, sheaf);
        }
}
