/*
 * Purpose: the tick: it has a cache at hand grow (stook_barns_decide), and gives back, without a
 * thread of our own, what caches keep and no thread uses any more. The sheaves of a cache that went
 * idle hold a few objects each of many slabs, and so keep all their memory. A call that may not
 * wait decides on growth as every other, because that takes no lock, and gives nothing back.
 *
 * Place: called by slot_get.c and slot_put.c when a slot goes to its barn, and by life
 * (maintain); calls barn.
 *
 * How: every slot has a round of its own that passes all caches. A round begins once in an eighth
 * of STOOK_DECAY_MS, or at once after the allocation clock moved (policy/ledger.h): memory goes to
 * another use, for which what is idle here is missed. A take of dirty memory begins a round of the
 * barns alone (barn/barn_room.c): such rounds may be two milliseconds apart, too short a time to
 * tell that a slot's sheaves are idle. A slot's sheaves of a cache are idle if main and its count
 * of pops are what they were when the last other round passed: objects may have come, none was
 * taken.
 * A slot's pair is exchanged for {zero-capacity sheaf, none} by the same section as in every miss,
 * on the slot that the thread is on. So no membarrier is needed, and what was taken off is this
 * thread's alone. Home gives back sheaves of other nodes' objects (home/home_remote.c). Other slots
 * and, on several nodes, other nodes' barns are left to threads that run there. For programs that
 * ask for it, stook_evacuate_idle empties them from outside (evacuate/evacuate_pairs.c).
 *
 * Invariants:
 *  I1 a step flushes at most STOOK_TICK_WORK sheaves (and a pair) and passes at most
 *     CACHES_OF_A_STEP caches. The next step goes on from there.
 *  I2 a sheaf is in this thread's hands only within a visit of its barns (barn.c M3).
 * Concurrency: any thread, any instruction. Two threads in one slot's round look at some caches
 *  twice, or not this time.
 * Failure: none. An exchange that is refused is tried again in the next round.
 */
#include <limits.h>

#include "base/lock.h"
#include "os/os.h"
#include "pages/purge.h"
#include "policy/constants.h"
#include "slot/slot_pair.h"
#include "slot/slot_regions.h"

#define NODE stook_slot_node()
#define CACHES_OF_A_STEP 128            /* a bound, where thousands exist */

static size_t slot_of(const struct stook_slot_head *own)
{
        return ((uintptr_t)own - (uintptr_t)stook_regions.base) >> STOOK_SLOT_SHIFT;
}

static bool has_objects(const struct stook_sheaf *sheaf)
{
        return sheaf && stook_sheaf_size(sheaf);
}

/* Takes @seen off this slot, and retires it. False: it is not there any more. */
static bool give_pair(struct stook_barns *barns, struct stook_line *line, uint32_t offset,
                      struct stook_pair seen, unsigned size)
{
        struct stook_pair nothing = { .lo = (uintptr_t)&stook_sheaf_zero };
        struct stook_sheaf *main = (struct stook_sheaf *)seen.lo;
        struct stook_sheaf *spare = (struct stook_sheaf *)seen.hi;

        if (!stook_slot_ops()->exchange(offset, seen, nothing, size, NULL, 0))
                return false;
        __atomic_store_n(&line->brought, 0, __ATOMIC_RELAXED);
        if (main != &stook_sheaf_zero)
                stook_barn_retire(barns, NODE, main);
        if (spare)
                stook_barn_retire(barns, NODE, spare);
        stook_barns_slabs_changed(barns);               /* they may have been of any node */
        return true;
}

/* This slot's sheaves of a cache. */
static void reap_pair(struct stook_barns *barns, struct stook_line *line, uint32_t offset,
                      struct stook_idle *idle)
{
        struct stook_pair seen = stook_slot_ops()->look(offset);
        struct stook_sheaf *main = (struct stook_sheaf *)seen.lo;
        struct stook_sheaf *spare = (struct stook_sheaf *)seen.hi;
        uint64_t word = __atomic_load_n(&main->word, __ATOMIC_RELAXED);
        uint64_t pops = stook_word_pops(word);

        if (!has_objects(main) && !has_objects(spare))
                return;
        if (!stook_line_is_unchanged(line, seen.lo, pops)) {
                stook_line_note(line, seen.lo, pops, idle->now_ms);
                stook_barns_used(barns);
                return;
        }
        idle->work -= give_pair(barns, line, offset, seen, (unsigned)(word & 0xffff));
}

static void reap_cache(struct stook_barns *barns, struct stook_slot_head *own,
                       struct stook_idle *idle)
{
        uint32_t index;

        if (!stook_barns_visit_begin(barns))
                return;
        index = barns->line_index;      /* not before: it may be another cache's now */
        if (index < stook_regions_lines()) {
                if (!idle->barns_only)
                        reap_pair(barns, (struct stook_line *)own + index,
                                  index << STOOK_LINE_SHIFT, idle);
                if (STOOK_UNLIKELY(stook_slots_by_node) && idle->work && !idle->barns_only)
                        idle->work -= stook_home_duties.reap(barns, slot_of(own),
                                                             STOOK_LOOK_OF_SLOT, idle->work);
                if (idle->work)
                        stook_barn_reap_idle(barns, NODE, idle);
        }
        stook_barns_visit_end(barns);
}

/* The slot goes to a barn, perhaps for the first time. */
static void note_used(struct stook_slot_head *own)
{
        if (STOOK_UNLIKELY(!__atomic_load_n(&own->used, __ATOMIC_RELAXED)) &&
            !__atomic_exchange_n(&own->used, 1, __ATOMIC_RELAXED))
                __atomic_fetch_add(&stook_barn_slots, 1, __ATOMIC_RELAXED);
}

/* Whether a round is due that looks at the slot's own sheaves, too. */
static bool is_due(const struct stook_slot_head *own, const struct stook_idle *idle,
                   uint32_t clean_takes)
{
        /*
         * A wait that is over wraps around. One that is much too long is from before a shorter
         * decay; a little too long is one that another thread just noted.
         */
        uint32_t wait_ms = __atomic_load_n(&own->reap_due_ms, __ATOMIC_RELAXED) - idle->now_ms;

        return !wait_ms || wait_ms > 2 * idle->after_ms ||
               __atomic_load_n(&own->reap_clean_takes, __ATOMIC_RELAXED) != clean_takes;
}

/* Where this slot's look is, or begins now. NULL: none is due. */
static struct stook_barns *round_of(struct stook_slot_head *own, struct stook_idle *idle)
{
        struct stook_barns *at = (struct stook_barns *)__atomic_load_n(&own->reap_at,
                                                                       __ATOMIC_RELAXED);
        uint32_t clean = stook_fresh_clean(), dirty = stook_fresh_dirty();

        idle->takes = clean + dirty;
        idle->now_ms = (uint32_t)stook_os_clock_ms();
        idle->barns_only = __atomic_load_n(&own->reap_barns_only, __ATOMIC_RELAXED);
        if (at)
                return at;
        idle->barns_only = !is_due(own, idle, clean);
        if (idle->barns_only && !stook_slot_took(own))
                return NULL;
        __atomic_store_n(&own->reap_barns_only, idle->barns_only, __ATOMIC_RELAXED);
        __atomic_store_n(&own->reap_dirty_takes, dirty, __ATOMIC_RELAXED);
        if (!idle->barns_only) {
                __atomic_store_n(&own->reap_due_ms, idle->now_ms + idle->after_ms,
                                 __ATOMIC_RELAXED);
                __atomic_store_n(&own->reap_clean_takes, clean, __ATOMIC_RELAXED);
        }
        return stook_barns_first();
}

static STOOK_NOINLINE void reap_step(struct stook_slot_head *own)
{
        struct stook_idle idle = { .work = STOOK_TICK_WORK };
        struct stook_barns *at;

        idle.after_ms = stook_pages_decay_ms() / 8 + 1;
        at = round_of(own, &idle);
        if (STOOK_LIKELY(!at))
                return;
        for (unsigned steps = 0; at && steps < CACHES_OF_A_STEP && idle.work; steps++) {
                reap_cache(at, own, &idle);
                /*
                 * One whose work is not done is looked at again; a barn that was emptied is not
                 * idle then.
                 */
                if (idle.work)
                        at = at->next;
        }
        __atomic_store_n(&own->reap_at, (uintptr_t)at, __ATOMIC_RELAXED);
}

void stook_slot_tick_now(struct stook_slot_head *own, struct stook_barns *at_hand)
{
        note_used(own);
        if (at_hand && !(__atomic_load_n(&own->tick_calls, __ATOMIC_RELAXED) % STOOK_TICK_CALLS))
                stook_barns_decide(at_hand);
        if (stook_lock_may_not_wait())
                return;
        /* Not only refills and flushes take this step: a program may live on its barns. */
        stook_pages_step();
        if (STOOK_UNLIKELY(__atomic_load_n(&stook_ledger_halved, __ATOMIC_RELAXED)) &&
            __atomic_exchange_n(&stook_ledger_halved, 0, __ATOMIC_RELAXED)) {
                stook_slot_give_own();
                stook_barns_give_all();
        }
        reap_step(own);
}

void stook_slot_reap_idle(void)
{
        struct stook_slot_head *own = stook_slot_ops()->own();

        if (own)
                stook_slot_tick(own, NULL);
}

static void give_own_of(struct stook_barns *barns, struct stook_slot_head *own)
{
        uint32_t index = barns->line_index, offset = index << STOOK_LINE_SHIFT;
        struct stook_pair seen;
        const struct stook_sheaf *main;

        if (index >= stook_regions_lines())
                return;
        seen = stook_slot_ops()->look(offset);
        main = (const struct stook_sheaf *)seen.lo;
        if (has_objects(main) || has_objects((const struct stook_sheaf *)seen.hi))
                give_pair(barns, (struct stook_line *)own + index, offset, seen,
                          stook_sheaf_size(main));
}

void stook_slot_give_own(void)
{
        struct stook_slot_head *own = stook_slot_ops()->own();

        if (!own || stook_lock_may_not_wait())
                return;
        for (struct stook_barns *at = stook_barns_first(); at; at = at->next) {
                if (!stook_barns_visit_begin(at))
                        continue;
                give_own_of(at, own);
                stook_barns_visit_end(at);
        }
}
