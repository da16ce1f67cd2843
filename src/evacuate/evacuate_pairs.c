/*
 * Purpose: the pairs of sheaves of a cache, taken off its slots and flushed: of all slots, for
 * shrink, destroy and tuning, or of idle ones.
 * Place: called by cache, and by life (maintain) for idle ones; calls the engine, home for sheaves
 * of other nodes' objects, and barn to flush.
 *
 * A slot's pair is exchanged for {zero-capacity sheaf, none}, by the same compare-and-swap that
 * every thread changes it with. Open rcu sheaves of the cache are not taken off here: they are
 * rcu's.
 * Invariants:
 *  I1 a round over idle slots looks at a cache within a visit of its barns, so that a destroy waits
 *     for the round.
 * Concurrency: under the engine's mutex; evacuate.c M1. Any number of threads may be in a round.
 *  Only one of them asks which CPUs are allowed; the others take no slot for gone.
 * Failure: as evacuate.h.
 */
#include <limits.h>

#include "barn/barn.h"
#include "evacuate/evacuate.h"
#include "home/home.h"
#include "os/os.h"
#include "pages/purge.h"
#include "policy/ledger.h"
#include "process/process.h"
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

/* What a look for idle slots goes by. */
struct look {
        uint32_t now_ms, after_ms;
        const struct stook_cpus *allowed; /* CPUs on which threads may run; NULL: not known */
};

/*
 * By concurrency id, indices are small numbers, below the number of CPUs that the process may use.
 * Else an index is a CPU. Linux 6.12 may keep index 1 for a thread that is tied to one CPU. What
 * that slot keeps is then given back early.
 */
static bool is_gone(unsigned slot, const struct look *look)
{
        const struct stook_cpus *allowed = look->allowed;

        if (slot >= stook_regions.rseq_slots || !allowed || !allowed->count)
                return false;
        if (stook_regions.index_offset == STOOK_RSEQ_MM_CID)
                return slot >= allowed->count;
        return slot < STOOK_CPUS_MAX && !(allowed->mask[slot / 64] >> slot % 64 & 1);
}

static bool has_sheaf(struct stook_pair pair)
{
        return pair.lo != (uintptr_t)&stook_sheaf_zero || pair.hi;
}

/*
 * True: nothing was taken from this slot's sheaves since the look that noted them, and that look
 * was after_ms ago, or no thread can run on the slot any more. @look NULL: all are due.
 */
static bool is_due(struct stook_line *line, unsigned slot, const struct look *look)
{
        struct stook_pair pair = stook_pair_read(&line->pair);
        const struct stook_sheaf *main = (const struct stook_sheaf *)pair.lo;
        uint64_t pops = stook_word_pops(__atomic_load_n(&main->word, __ATOMIC_RELAXED));
        uint32_t since_ms;

        if (!look)
                return true;
        if (!stook_line_is_unchanged(line, pair.lo, pops)) {
                stook_line_note(line, pair.lo, pops, look->now_ms);
                return false;
        }
        since_ms = __atomic_load_n(&line->idle_since_ms, __ATOMIC_RELAXED);
        return look->now_ms - since_ms >= look->after_ms || is_gone(slot, look);
}

/*
 * A look without the mutex, so that no barrier is made where no pair is due. It looks at all slots,
 * also after one that is due, because a look also notes what it saw.
 */
static bool is_any_due(unsigned line_index, const struct look *look)
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
        const struct look *look;
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
        struct take all = { .line_index = front->barns->line_index };
        bool done;

        /* A cache that never had a sheaf; its capacity may be 0 only since it was tuned. */
        if (!stook_counted(front->barns->slabs->counters, STOOK_STAT_sheaf_alloc))
                return true;
        stook_home_evacuate(front);
        if (!stook_evacuate_begin(STOOK_EVACUATE_WAIT))
                return false;
        done = evacuate(front->barns, &all);
        stook_evacuate_end();
        return done && !all.left;
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

/*
 * ---- a round over all slots, from outside, that gives back what idle ones keep ----
 * It is for programs that ask for it: a slot whose threads run reaps its own idle sheaves
 * (slot/slot_tick.c).
 */

static bool reap_pairs(struct stook_barns *barns, const struct look *look)
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

/* Barns of nodes on which no thread may be to reap them. */
static bool reap_barns(struct stook_barns *barns, struct stook_idle *idle)
{
        idle->work = UINT_MAX;
        for (unsigned node = 0; node < stook_regions.nodes; node++)
                stook_barn_reap_idle(barns, node, idle);
        return idle->work != UINT_MAX;
}

/* Sheaves of other nodes' objects, of all slots, or of those that are gone. */
static bool reap_remote(struct stook_barns *barns, const struct look *look)
{
        uint32_t *looked_ms = &barns->remote->looked_ms;
        bool due = look->now_ms - __atomic_load_n(looked_ms, __ATOMIC_RELAXED) >= look->after_ms;
        unsigned given = 0;

        if (due)
                __atomic_store_n(looked_ms, look->now_ms, __ATOMIC_RELAXED);
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                bool gone = is_gone(slot, look);

                if ((due || gone) && stook_slots_head(slot))
                        given += stook_home_reap(barns, slot, gone ? STOOK_LOOK_AT_ALL
                                                                   : STOOK_LOOK_OF_ROUND, UINT_MAX);
        }
        return given;
}

/* True: something of the cache was given back. */
static bool reap_cache(struct stook_barns *barns, const struct look *look,
                       struct stook_idle *idle)
{
        bool given = reap_pairs(barns, look);

        if (barns->remote) {
                given |= reap_remote(barns, look);
                given |= reap_barns(barns, idle);
        }
        return given;
}

/*
 * Atomic: a thread is in a round over all slots. Its exchange acquires what the store at the end
 * releases.
 */
uint32_t stook_evacuate_looking;

unsigned stook_evacuate_idle(uint32_t after_ms)
{
        /* Of the round under way: too large for the stack */
        static struct stook_cpus allowed STOOK_MOSTLY_UNUSED;
        bool alone = !__atomic_exchange_n(&stook_evacuate_looking, 1, __ATOMIC_ACQUIRE);
        struct look look = { .now_ms = (uint32_t)stook_os_clock_ms(),
                                        .after_ms = after_ms, .allowed = alone ? &allowed : NULL };
        struct stook_idle idle = { .now_ms = look.now_ms,
                                   .after_ms = stook_pages_decay_ms() / 8 + 1,
                                   .takes = stook_fresh_clean() +
                                            stook_fresh_dirty() };
        unsigned given = 0;

        if (alone)
                stook_process_allowed_cpus(&allowed);
        for (struct stook_barns *at = stook_barns_first(); at; at = at->next) {
                if (!stook_barns_visit_begin(at))
                        continue;
                if (at->line_index < stook_regions_lines())
                        given += reap_cache(at, &look, &idle);
                stook_barns_visit_end(at);
        }
        if (alone)
                __atomic_store_n(&stook_evacuate_looking, 0, __ATOMIC_RELEASE);
        return given;
}
