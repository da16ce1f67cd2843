/*
 * Purpose: give back, without a thread of our own, what caches keep that nobody uses any more. Sheaves of a cache
 * that went idle hold a few objects each of many slabs, and so keep all their memory.
 *
 * Place: called by slot_miss.c when a slot goes to its barn, and by life (maintain); calls barn.
 *
 * How: every slot has a hand of its own that passes all caches, once in an eighth of STOOK_DECAY_MS, or at once
 * after the page layer had to take fresh memory from the system. A slot's sheaves of a cache are idle if main and
 * its count of pops are what they were when the hand last passed: objects may have come, none was taken. Barns:
 * barn/barn_idle.c.
 * A slot's pair is exchanged for {zero-capacity sheaf, none} by the same section as in every miss, on the slot the
 * thread is on: so no membarrier is needed, and what was detached is ours alone. Sheaves of other nodes' objects are
 * visited likewise (slot_remote.c). Other slots and, on several nodes, other nodes' barns are left to threads
 * that run there, and to stook_slots_rest, which does it from outside (slot_drain.c), for programs that ask for it.
 *
 * Invariants:
 *  I1 a step flushes at most WORK sheaves (and a pair) and passes at most HAND_STEPS caches: the next goes on.
 *  I2 a sheaf is in this thread's hands only within a visit of its barns (barn_budget.c M1), or is in none.
 * Concurrency: any thread, any instruction; two on one slot's hand look at some caches twice, or not this time.
 * Failure: none; an exchange that is refused is tried when the hand passes again.
 */
#include <limits.h>

#include "base/lock.h"
#include "os/os.h"
#include "pages/span.h"
#include "slot/slot_node.h"
#include "slot/slot_regions.h"

#define WORK       16                   /* about 10 us: a caller waits for it */
#define HAND_STEPS 128                  /* as the lending hand's */
#define CLOCK_EVERY 16                  /* sheaves of four objects are traded as often as the clock takes time to read */
#define NODE       stook_slot_node()

static bool holds(const struct stook_sheaf *sheaf)
{
        return sheaf && stook_sheaf_size(sheaf);
}

/* This slot's sheaves of a cache. */
static void rest_pair(struct stook_barns *barns, struct stook_line *line, uint32_t offset, struct stook_idle *idle)
{
        const struct stook_slot_ops *ops = stook_slot_ops();
        struct stook_pair seen = ops->look(offset), nothing = { .lo = (uintptr_t)&stook_sheaf_zero };
        struct stook_sheaf *main = (struct stook_sheaf *)seen.lo, *spare = (struct stook_sheaf *)seen.hi;
        uint64_t word = __atomic_load_n(&main->word, __ATOMIC_RELAXED), pops = word >> 16;

        if (!holds(main) && !holds(spare))
                return;
        if (__atomic_load_n(&line->seen[0], __ATOMIC_RELAXED) != seen.lo ||
            __atomic_load_n(&line->seen[1], __ATOMIC_RELAXED) != pops) {
                stook_line_note(line, seen.lo, pops, idle->now_ms);
                return;
        }
        if (!ops->exchange(offset, seen, nothing, (unsigned)(word & 0xffff), NULL, 0))
                return;
        if (main != &stook_sheaf_zero)
                stook_barn_retire(barns, NODE, main);
        if (spare)
                stook_barn_retire(barns, NODE, spare);
        idle->work--;
}

static void rest_cache(struct stook_barns *barns, struct stook_line *own, struct stook_idle *idle)
{
        uint32_t index;

        if (!stook_barns_visit(barns))
                return;
        index = barns->line_index;      /* not before: it may be another cache's now */
        if (index < stook_regions_lines()) {
                rest_pair(barns, own + index, index << STOOK_LINE_SHIFT, idle);
                if (idle->work)
                        stook_slot_rest_remote(barns, own, idle);
                if (idle->work)
                        stook_barn_rest(barns, NODE, idle);
        }
        stook_barns_leave(barns);
}

/* Where this slot's look is, or begins now. NULL: none is due. The clock is asked by every CLOCK_EVERYth call only. */
static struct stook_barns *hand_of(struct stook_line *own, struct stook_idle *idle)
{
        struct stook_barns *at = (struct stook_barns *)(uintptr_t)__atomic_load_n(&own->seen[1], __ATOMIC_RELAXED);
        bool grew = __atomic_load_n(&own->seen[0], __ATOMIC_RELAXED) != idle->growths;
        uint32_t calls = __atomic_load_n(&own->idle_calls, __ATOMIC_RELAXED) + 1;

        __atomic_store_n(&own->idle_calls, calls, __ATOMIC_RELAXED);
        if (STOOK_LIKELY(!at && !grew && calls % CLOCK_EVERY))
                return NULL;
        idle->now_ms = (uint32_t)stook_os_clock_ms();
        if (at)
                return at;
        if (!grew && (int32_t)(idle->now_ms - __atomic_load_n(&own->idle_ms, __ATOMIC_RELAXED)) < 0)
                return NULL;
        __atomic_store_n(&own->idle_ms, idle->now_ms + idle->after_ms, __ATOMIC_RELAXED);
        __atomic_store_n(&own->seen[0], idle->growths, __ATOMIC_RELAXED);
        return stook_barns_first();
}

void stook_slot_rest(void)
{
        struct stook_idle idle = { .growths = stook_pages_growths(), .work = WORK };
        struct stook_line *own;
        struct stook_barns *at;

        if (stook_lock_may_not_wait())
                return;
        own = stook_slot_ops()->own();
        if (!own)
                return;
        idle.after_ms = stook_pages_decay_ms() / 8 + 1;
        at = hand_of(own, &idle);
        if (STOOK_LIKELY(!at))
                return;
        for (unsigned steps = 0; at && steps < HAND_STEPS && idle.work; steps++) {
                rest_cache(at, own, &idle);
                /* One whose work is not done is looked at again; a barn that was emptied is not idle then. */
                if (idle.work)
                        at = at->next;
        }
        __atomic_store_n(&own->seen[1], (uintptr_t)at, __ATOMIC_RELAXED);
}

/* ---- all slots, from outside ---- */

/* With mm_cid, indices are small numbers, below that of CPUs the process may use; else they are CPUs. */
static bool gone(unsigned slot, const struct stook_cpus *allowed)
{
        if (slot >= stook_regions.rseq_slots || !allowed || !allowed->count)
                return false;
        if (stook_regions.index_offset == STOOK_RSEQ_MM_CID)
                return slot >= allowed->count;
        return slot < STOOK_CPUS_MAX && !(allowed->mask[slot / 64] >> slot % 64 & 1);
}

/* Barns of nodes on which nobody may be to pass them. */
static bool rest_barns(struct stook_barns *barns, struct stook_idle *idle)
{
        idle->work = UINT_MAX;
        for (unsigned node = 0; node < stook_regions.nodes; node++)
                stook_barn_rest(barns, node, idle);
        return idle->work != UINT_MAX;
}

unsigned stook_slots_rest(uint32_t after_ms)
{
        static struct stook_cpus allowed;       /* of the round under way: too large for the stack */
        static uint32_t looking;                /* atomic: a thread is in a round; its exchange acquires what the store below releases */
        bool alone = !__atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE);
        struct stook_slot_look look = { .now_ms = (uint32_t)stook_os_clock_ms(), .after_ms = after_ms,
                                        .allowed = alone ? &allowed : NULL, .gone = gone };
        struct stook_idle idle = { .now_ms = look.now_ms, .after_ms = stook_pages_decay_ms() / 8 + 1,
                                   .growths = stook_pages_growths() };
        unsigned caches = 0;

        if (alone)
                stook_os_allowed_cpus(&allowed);
        for (struct stook_barns *at = stook_barns_first(); at; at = at->next) {
                if (!stook_barns_visit(at))
                        continue;
                if (at->line_index < stook_regions_lines()) {
                        caches += stook_slot_drain_idle(at, &look);
                        if (stook_slots_by_node) {
                                caches += stook_slots_rest_remote(at, &look);
                                caches += rest_barns(at, &idle);
                        }
                }
                stook_barns_leave(at);
        }
        if (alone)
                __atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
        return caches;
}
