/*
 * Purpose: the memory of slots: which slots there are, and which of their lines are filled.
 *
 * Address space for all slots that there may ever be is reserved at start. A slot costs memory when
 * a thread first finds itself on it, and then one page for each (page size / 64) caches that exist.
 *
 * Place: called by slot_enrol.c and section_locked.c when a slot is needed, by cache for a new
 * cache, and by evacuate, statistics and fork, which go over all slots.
 * Invariants:
 *  I1 lines 0..lines-1 of every ready slot are filled (stook_filled). `lines` is a multiple of
 *     those in a page.
 *  I2 no thread uses what is not published: a slot beyond `ready` or without its bit, or lines
 *     beyond `lines`. So a fill that failed half-way, or whose thread vanished in a fork, is simply
 *     done again.
 *  I3 a fill changes no line that is filled: its compare-and-swap expects no main, and a line that
 *     was filled always has one. Nor does it change the memory below a line. So several threads may
 *     fill one slot, also while other threads use it already.
 * Concurrency: slots of rseq's get ready without a lock. `ready` and `lines` change together, by a
 *  compare-and-swap. It fails for a thread that filled a slot with fewer lines than there are now.
 *  It also fails for a new cache's lines that were filled in fewer slots than there are now. Both
 *  then fill the rest. So no thread waits for one that was preempted while it filled a slot. Locked
 *  slots, and lines for new caches, are made under one lock, which can refuse. A thread that is
 *  refused goes on without a slot (slabs). So a signal handler on top of a grower waits for no
 *  thread.
 *  M1: release of a field of stook_filled, after the fill; pairs with the acquire loads of it. What
 *      another thread filled, and the publisher found filled, is seen, too: it was the first store
 *      to that line.
 * Failure: no memory: the slot stays not ready, the cache is not made.
 */
#include <stddef.h>
#include <string.h>

#include "slot/slot_regions.h"
#include "base/inject.h"
#include "base/lock.h"
#include "os/os.h"
#include "pages/meta.h"

#define SLOT_BYTES      ((size_t)1 << STOOK_SLOT_SHIFT)
#define LOCKED_MIN      4               /* power of two; so that a few threads rarely meet on one */
/* Of a finite address space: what slots may reserve is a sixteenth. */
#define LIMIT_SHARE     16

struct stook_regions stook_regions;
bool stook_slots_by_node, stook_slots_strict;

/* Guards stores to `locked` and `lines` of stook_filled. */
static struct stook_lock growing = STOOK_LOCK_INIT(STOOK_RANK_REGIONS);
struct stook_slots_filled stook_filled;

/* What a call that was jumped out of had begun is done again (I2). */
static bool take_growing(void)
{
        return stook_lock_take(&growing) || stook_lock_inherit(&growing);
}

static char *slot_at(uint32_t slot)
{
        return stook_regions.base + ((size_t)slot << STOOK_SLOT_SHIFT);
}

static uint32_t lines_of_a_page(void)
{
        return (uint32_t)(stook_os_page_bytes() >> STOOK_LINE_SHIFT);
}

/* From the start: hot paths ask no class whether its line is filled. */
static uint32_t lines_of_classes(void)
{
        size_t bytes = ((size_t)STOOK_PRECHARGE_LINE + 1) << STOOK_LINE_SHIFT;

        return (uint32_t)(stook_os_whole_pages(bytes) >> STOOK_LINE_SHIFT);
}

/* I3. The mapping stays: other threads may be on the slot, and slots may have a node's policy. */
static bool fill(char *slot, uint32_t from, uint32_t to)
{
        struct stook_line *line = (struct stook_line *)slot;

        STOOK_INJECT_CALL(filling, slot);
        if (!stook_os_enable(line + from, (size_t)(to - from) << STOOK_LINE_SHIFT))
                return false;
        for (uint32_t i = from; i < to; i++) {
                uintptr_t none = 0;

                __atomic_compare_exchange_n(&line[i].pair.lo, &none, (uintptr_t)&stook_sheaf_zero,
                                            false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
        return true;
}

/* `ready` and `lines` of stook_filled, as its `extent` has them. */
union extent {
        struct {
                uint32_t ready, lines;
        };
        uint64_t word;
};
_Static_assert(offsetof(union extent, ready) == offsetof(struct stook_slots_filled, ready) &&
               offsetof(union extent, lines) == offsetof(struct stook_slots_filled, lines),
               "an extent is laid out alike");

static union extent extent_now(void)
{
        return (union extent){ .word = __atomic_load_n(&stook_filled.extent, __ATOMIC_ACQUIRE) };
}

/* M1. False: the extent is another one, which is now in @seen. */
static bool publish(union extent *seen, uint32_t ready, uint32_t lines)
{
        const union extent to = { .ready = ready, .lines = lines };

        return __atomic_compare_exchange_n(&stook_filled.extent, &seen->word, to.word, false,
                                           __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

uint32_t stook_regions_ready(uint32_t index)
{
        union extent now = extent_now();

        while (index >= now.ready && index < stook_regions.rseq_slots) {
                if (!fill(slot_at(now.ready), 0, now.lines))
                        break;
                if (publish(&now, now.ready + 1, now.lines))
                        now = extent_now();
        }
        return now.ready;
}

static bool is_locked_filled(uint32_t slot)
{
        return __atomic_load_n(&stook_filled.locked[slot / 64], __ATOMIC_ACQUIRE) >> slot % 64 & 1;
}

struct stook_slot_head *stook_regions_locked(uint32_t slot)
{
        char *at = slot_at(stook_regions.rseq_slots + slot);
        bool filled = is_locked_filled(slot);

        if (STOOK_LIKELY(filled))
                return (struct stook_slot_head *)at;
        if (!stook_regions.base || !take_growing())
                return NULL;
        filled = is_locked_filled(slot) || fill(at, 0, stook_regions_lines());
        if (filled && !is_locked_filled(slot))
                __atomic_fetch_or(&stook_filled.locked[slot / 64], UINT64_C(1) << slot % 64,
                                  __ATOMIC_RELEASE);
        stook_lock_drop(&growing);
        return filled ? (struct stook_slot_head *)at : NULL;
}

static bool is_ready(uint32_t slot)
{
        if (slot < stook_regions.rseq_slots)
                return slot < __atomic_load_n(&stook_filled.ready, __ATOMIC_ACQUIRE);
        return is_locked_filled(slot - stook_regions.rseq_slots);
}

/* Lines up to @want, in all slots that are ready when they are published. Under the lock. */
static bool fill_all(union extent *now, uint32_t want)
{
        uint32_t done = 0;

        for (uint32_t i = 0; i < stook_regions.locked_slots; i++)
                if (is_locked_filled(i) &&
                    !fill(slot_at(stook_regions.rseq_slots + i), now->lines, want))
                        return false;
        do {
                for (; done < now->ready; done++)
                        if (!fill(slot_at(done), now->lines, want))
                                return false;
        } while (!publish(now, now->ready, want));
        return true;
}

bool stook_slots_add_cache(unsigned cache_index)
{
        uint32_t want = cache_index + lines_of_a_page();
        union extent now;
        static uint32_t never;

        want -= want % lines_of_a_page();
        if (cache_index < stook_regions_lines())
                return true;
        /* A grower holds it for some microseconds; one second means that it never comes back. */
        for (unsigned tries = 0; !take_growing(); tries++) {
                if (tries == 1000)
                        return false;
                stook_os_futex_wait(&never, 0, 1000 * 1000);
        }
        now = extent_now();
        if (now.lines < want && fill_all(&now, want))
                now.lines = want;
        stook_lock_drop(&growing);
        return cache_index < now.lines;
}

uint32_t stook_regions_lines(void)
{
        return __atomic_load_n(&stook_filled.lines, __ATOMIC_ACQUIRE);
}

unsigned stook_slots_bound(void)
{
        return stook_regions.rseq_slots + stook_regions.locked_slots;
}

unsigned stook_slots_ready(void)
{
        unsigned n = __atomic_load_n(&stook_filled.ready, __ATOMIC_ACQUIRE);

        for (unsigned i = 0; i < STOOK_ARRAY_SIZE(stook_filled.locked); i++) {
                uint64_t filled = __atomic_load_n(&stook_filled.locked[i], __ATOMIC_RELAXED);

                n += (unsigned)__builtin_popcountll(filled);
        }
        return n;
}

struct stook_line *stook_slots_line(unsigned slot, unsigned cache_index)
{
        if (!is_ready(slot) || cache_index >= stook_regions_lines())
                return NULL;
        return (struct stook_line *)slot_at(slot) + cache_index;
}

struct stook_slot_head *stook_slots_head(unsigned slot)
{
        return is_ready(slot) ? (struct stook_slot_head *)slot_at(slot) : NULL;
}

uintptr_t stook_slots_first_line(unsigned cache_index)
{
        return (uintptr_t)((struct stook_line *)stook_regions.base + cache_index);
}

size_t stook_slot_objects(struct stook_front *front)
{
        size_t n = stook_slots_by_node ? stook_home_duties.objects(front) : 0;

        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                struct stook_line *line = stook_slots_line(slot, front->offset >> STOOK_LINE_SHIFT);
                struct stook_pair  seen;

                if (!line)
                        continue;
                seen = stook_pair_read(&line->pair);
                n += stook_sheaf_size((struct stook_sheaf *)seen.lo);
                if (seen.hi)
                        n += stook_sheaf_size((struct stook_sheaf *)seen.hi);
        }
        return n;
}

unsigned stook_slot_node_of_several(void)
{
        if (STOOK_LIKELY(stook_slot_ops() == &stook_section_rseq))
                return stook_os_node_of_cpu(
                        __atomic_load_n((uint32_t *)(stook_self->rseq + STOOK_RSEQ_CPU_ID),
                                        __ATOMIC_RELAXED));
        /* Made-up nodes are all to be used, by few CPUs. */
        return stook_os_node_of_cpu(stook_os_topology_is_fake()
                                    ? stook_slot_now() - stook_regions.rseq_slots : stook_os_cpu());
}

/* ---- start ---- */

/*
 * Sections are invisible to ThreadSanitizer: it would report each pop after a push of another
 * thread.
 */
#define LOCKED_BY_DEFAULT STOOK_TSAN

static bool wants_rseq(void)
{
        const char *value = stook_os_env("STOOK_SLOTS");

        /* Each allocation is to ask for the task's policy: none may be answered by a section. */
        if (stook_slots_strict)
                return false;
        if (value && (!strcmp(value, "rseq") || !strcmp(value, "locked")))
                return *value == 'r';
        if (value)
                stook_os_env_refuse("STOOK_SLOTS", value, "rseq or locked");
        return !LOCKED_BY_DEFAULT;
}

/* Of a slot that is a CPU's. */
static unsigned node_of_slot(const struct stook_regions *r, uint32_t slot)
{
        return stook_os_node_of_cpu(slot < r->rseq_slots ? slot : slot - r->rseq_slots);
}

/*
 * The lines of a slot that is a CPU's come from that CPU's node, in whichever thread fills them.
 * One call for each run of slots of one node. Slots by concurrency id are of no node: their lines
 * lie on the node of the thread that fills them.
 */
static void place_slots(const struct stook_regions *r)
{
        uint32_t slots = r->rseq_slots + r->locked_slots;
        uint32_t from = r->index_offset == STOOK_RSEQ_MM_CID ? r->rseq_slots : 0;

        if (r->nodes == 1 || stook_os_topology_is_fake() || stook_os_has_policy())
                return;
        for (uint32_t i = from + 1; i <= slots; i++) {
                unsigned node = node_of_slot(r, from);

                if (i < slots && node_of_slot(r, i) == node)
                        continue;
                if (!stook_os_prefer_node(r->base + ((size_t)from << STOOK_SLOT_SHIFT),
                                          (size_t)(i - from) << STOOK_SLOT_SHIFT,
                                          stook_os_node_home(node)))
                        return;
                from = i;
        }
}

bool stook_slots_start(void)
{
        struct stook_regions r = { .index_offset = STOOK_RSEQ_CPU_ID, .locked_slots = LOCKED_MIN,
                                   .nodes = stook_os_node_count() };
        uint64_t limit = stook_os_address_limit_at_start();
        unsigned allowed = 0;
        uint32_t cpus = r.nodes == 1 && limit == UINT64_MAX ? stook_os_cpus_bound(&allowed) : 0;
        size_t bytes;

        /*
         * Address space is cheaper than a file to read, but where it is scarce, or something is
         * kept for each slot.
         */
        if (!cpus)
                allowed = cpus = stook_os_possible_cpus();
        r.cpus = allowed;
        while (r.locked_slots < allowed && r.locked_slots < STOOK_LOCKED_SLOTS_MAX)
                r.locked_slots *= 2;
        stook_os_rseq_detect();
        /*
         * Without membarrier no slot could ever be evacuated. A kernel that registers a process
         * for the command has the command.
         */
        if (wants_rseq() && stook_os_rseq_owner() != STOOK_RSEQ_NONE &&
            stook_os_membarrier_register()) {
                r.rseq_slots = cpus < STOOK_SLOTS_MAX ? cpus : STOOK_SLOTS_MAX;
                if (stook_os_rseq_has_mm_cid())
                        r.index_offset = STOOK_RSEQ_MM_CID;
        }
        for (;;) {
                bytes = (size_t)(r.rseq_slots + r.locked_slots) << STOOK_SLOT_SHIFT;
                if (r.locked_slots == 1 || limit == UINT64_MAX || bytes <= limit / LIMIT_SHARE)
                        r.base = stook_meta_reserve(bytes, SLOT_BYTES);
                if (r.base)
                        break;
                if (r.locked_slots == 1)
                        return false;
                /* A thread whose index has no slot of rseq's uses the locked ones. */
                r.rseq_slots /= 2;
                r.locked_slots /= 2;
        }
        place_slots(&r);
        stook_regions = r;
        stook_sections.slots = r.base;
        if (r.rseq_slots)
                stook_slot_note_area();
        else
                stook_direct_duties.start(NULL);
        stook_slots_by_node = r.nodes > 1;
        /*
         * A locked slot is a CPU's on several nodes: its lines are on that CPU's node. With made-up
         * nodes (STOOK_TOPOLOGY) it is a hash of the thread's. The slot decides the thread's node
         * then (stook_slot_node_of_several), so a machine of few CPUs uses all nodes.
         */
        stook_locked_slots = (struct stook_locked_slots){
                .count = r.locked_slots,
                .by_cpu = stook_slots_by_node && !stook_os_topology_is_fake(),
                .ready = stook_regions_locked,
        };
        __atomic_store_n(&stook_filled.lines, lines_of_classes(), __ATOMIC_RELEASE);
        return true;
}

const char *stook_slots_index_name(void)
{
        if (!stook_regions.rseq_slots)
                return "hash";
        return stook_regions.index_offset == STOOK_RSEQ_MM_CID ? "mm_cid" : "cpu_id";
}

const char *stook_slots_backend_name(void)
{
        return stook_regions.rseq_slots ? stook_section_rseq.name : stook_section_locked.name;
}

unsigned stook_slots_count(void)
{
        return stook_regions.rseq_slots ? stook_regions.rseq_slots : stook_regions.locked_slots;
}

void stook_slots_fork_child(void)
{
        struct stook_slot_head *slot;

        stook_lock_reset(&growing);
        for (uint32_t i = 0; i < stook_regions.locked_slots; i++)
                if ((slot = stook_slots_head(stook_regions.rseq_slots + i)))
                        __atomic_store_n(&slot->holder, 0, __ATOMIC_RELEASE);
        stook_self->ready = 0;
        stook_slot_note_first();
        __atomic_store_n(&stook_threads_live, 0, __ATOMIC_RELAXED);
}
