/*
 * See fixture.h.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slot/slot_trip.h"
#include "unit/slot/fixture.h"
#include "base/inject.h"
#include "evacuate/evacuate.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/purge.h"
#include "slot/slot_regions.h"

static uint64_t       far[STOOK_COUNTERS_FAR_COUNT];
struct stook_counters counters = { .far = far };
struct stook_slabs    slabs = { .cache_index = INDEX, .stride = 64, .object_size = 64,
                                .counters = &counters };
struct stook_barns    barns;
struct stook_front    front = { .offset = INDEX << STOOK_LINE_SHIFT, .barns = &barns };
const struct stook_section_ops *ops;
unsigned doubles;

static unsigned capacity;
static size_t filled_here;              /* objects that sheaf_of put into sheaves */

/* An hour: no test is so slow that the idle reaper takes its sheaves. */
#define DECAY_MS 3600000

bool slot_start(uint32_t index)
{
        stook_pages_set_decay_ms(DECAY_MS);
        stook_meta_start();
        if (!stook_slots_start())
                return false;
        if (index)
                stook_regions.index_offset = index;
        front.line = stook_slots_first_line(INDEX);
        ops = stook_slot_ops();
        return stook_slots_add_cache(INDEX);
}

bool slot_unprotect(void)
{
        static char area[32] __attribute__((aligned(32)));

        if (!stook_regions_locked(0))
                return false;
        stook_sections.index = (uintptr_t)area + STOOK_RSEQ_MM_CID - (uintptr_t)stook_self;
        stook_sections.area = (intptr_t)area - (intptr_t)stook_self;
        stook_self->rseq = area;
        stook_self->ready = 1;
        ops = stook_slot_ops();
        return ops == &stook_section_rseq;
}

bool slot_stay(void)
{
        int cpu = sched_getcpu();
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET((size_t)cpu, &one);
        return cpu >= 0 && !sched_setaffinity(0, sizeof(one), &one);
}

/* No session is started here, so none of them is called: unit/sample has those. */
const struct stook_sample_duties stook_sample_duties;

bool slot_begin(size_t objects, unsigned sheaf_capacity, unsigned limit)
{
        struct stook_sheaf_sums sums;

        stook_sheaf_sum(INDEX, &sums);
        if (sums.sheaves)
                return false;
        fake_slab_start(objects);
        memset(counters.near, 0, sizeof(counters.near));
        memset(far, 0, sizeof(far));
#ifdef STOOK_INJECT
        memset(&stook_inject, 0, sizeof(stook_inject));
#endif
        front.config = 0;
        capacity = sheaf_capacity;
        filled_here = 0;
        doubles = 0;
        return !stook_barns_init(&barns, &slabs, capacity, limit, limit);
}

/* Of pops and pushes, and of sheaves. All sheaves are gone, so all has been counted. */
static bool counts_agree(void)
{
        uint64_t out = counted(STOOK_STAT_alloc_fastpath) + counted(STOOK_STAT_sheaf_flush);
        uint64_t in = counted(STOOK_STAT_free_fastpath) + counted(STOOK_STAT_sheaf_refill);

        return out == in + filled_here &&
               counted(STOOK_STAT_sheaf_alloc) == counted(STOOK_STAT_sheaf_free);
}

const char *slot_missing(void)
{
        struct stook_sheaf_sums sums;

#ifdef STOOK_INJECT
        memset(&stook_inject, 0, sizeof(stook_inject));
#endif
        fake_slab_fail_after = -1;
        front.config = 0;
        barns.capacity = capacity;
        if (!stook_evacuate_cache(&front) || stook_slot_objects(&front))
                return "a slot is not empty";
        stook_barn_empty_all(&barns);
        if (fake_slab_faults)
                return "an object came back twice";
        if (fake_slab_out())
                return "an object is lost";
        stook_sheaf_sum(INDEX, &sums);
        if (sums.sheaves || sums.objects)
                return "a sheaf is left";
        if (doubles)
                return "a free was taken for a double one";
        return counts_agree() ? NULL : "counts do not agree";
}

struct stook_sheaf *sheaf_of(unsigned size)
{
        struct stook_sheaf *s = stook_sheaf_new(INDEX, capacity, 0, &counters);

        if (!s || stook_slab_fill(&slabs, 0, size, s->objects, 0) != size) {
                fputs("no memory for a sheaf\n", stderr);
                abort();
        }
        stook_sheaf_set_size(s, size);
        filled_here += size;
        return s;
}

static void throw_away(struct stook_sheaf *s)
{
        if (!s || s == ZERO)
                return;
        stook_barn_flush(&barns, s);
        stook_sheaf_delete(s, &counters);
}

/* A test may be preempted inside a section: that is a refusal, too. */
void set(struct stook_sheaf *main, struct stook_sheaf *spare)
{
        struct stook_pair was, to = { (uintptr_t)main, (uintptr_t)spare };

        do
                was = ops->look(front.offset);
        while (!ops->exchange(front.offset, was, to, stook_sheaf_size((void *)was.lo), NULL, 0));
        throw_away((void *)was.lo);
        throw_away((void *)was.hi);
}

void on_double(struct stook_front *f, void *object)
{
        (void)f, (void)object;
        __atomic_fetch_add(&doubles, 1, __ATOMIC_RELAXED);
}
