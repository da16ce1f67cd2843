/*
 * What this proves, on a machine of several real nodes: where a slot's lines lie, by the kernel's
 * own answer.
 *  - Slots by concurrency id: on the node of the thread that made the slot ready. It is the first
 *    one on the slot, or one on a slot of a higher index that called earlier. Here threads of all
 *    nodes call in the order of their ids, then others in the opposite order.
 *  - Lines of caches beyond the first page of lines: on the node of the thread that made the cache,
 *    in the slots that were ready by then.
 *  - Slots by CPU number, which are those of kernels without a concurrency id, and all locked ones:
 *    on that CPU's node, whichever thread made them ready.
 */
#include <pthread.h>
#include <stdbool.h>
#include "cache/cache.h"
#include "slot/slot_regions.h"
#include "real_nodes.h"

#define SLOTS 64
#define CACHES 70                       /* more lines than a page has */

static struct stook_cache *cache;
static bool by_id;                      /* slots by concurrency id */
static int cpus, nodes;
static int maker[SLOTS];                /* the node of the thread that made the slot ready, + 1 */
static int own;                         /* slots made ready by their first thread */
static uint64_t own_nodes;              /* those threads' nodes */

static struct thread {
        pthread_t id;
        int cpu;
        bool runs, may_call, called;    /* atomic */
        uint32_t slot;                  /* when it runs, and has not called yet */
} thread[SLOTS];
static bool over;                       /* atomic */

static void set(bool *flag)
{
        __atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

/* A thread that sleeps may lose its concurrency id. */
static void spin_until(bool *flag)
{
        while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
                sched_yield();
}

static bool is_ready(unsigned slot)
{
        return stook_slots_line(slot, cache->index) != NULL;
}

/* A call of this thread, on @node. @first: of all threads. */
static void call(int node, bool first)
{
        bool before[SLOTS] = { false };
        unsigned slots = stook_slots_bound() < SLOTS ? stook_slots_bound() : SLOTS, slot;

        for (unsigned i = 0; i < slots && !first; i++)
                before[i] = is_ready(i);
        stook_cache_free(cache, stook_cache_alloc(cache));
        slot = stook_slot_now();
        for (unsigned i = 0; i < slots; i++)
                if (is_ready(i) && !before[i]) {
                        maker[i] = node + 1;
                        if (i == slot)
                                own++, own_nodes |= UINT64_C(1) << node;
                }
}

static void *run(void *data)
{
        struct thread *self = data;

        run_on(self->cpu);
        if (by_id)
                self->slot = *(uint32_t *)(stook_os_rseq_area() + STOOK_RSEQ_MM_CID);
        set(&self->runs);
        spin_until(&self->may_call);
        call(node_of_cpu(self->cpu), false);
        set(&self->called);
        spin_until(&over);
        return NULL;
}

static void begin(int cpu)
{
        thread[cpu].cpu = cpu;
        if (pthread_create(&thread[cpu].id, NULL, run, &thread[cpu]))
                end(110);
        spin_until(&thread[cpu].runs);
}

static void let_call(int cpu)
{
        set(&thread[cpu].may_call);
        spin_until(&thread[cpu].called);
}

/* Threads on every other CPU call in the order of their slots; those between in the opposite. */
static void call_in_order(void)
{
        for (int cpu = 0; cpu < cpus - 1; cpu += 2) {
                begin(cpu);
                let_call(cpu);
        }
        for (int cpu = 1; cpu < cpus - 1; cpu += 2)
                begin(cpu);
        for (int left = (cpus - 1) / 2; left; left--) {
                int highest = 0;

                for (int cpu = 1; cpu < cpus - 1; cpu += 2)
                        if (!thread[cpu].called &&
                            (!highest || thread[cpu].slot > thread[highest].slot))
                                highest = cpu;
                let_call(highest);
        }
}

/* The lines of all slots that are ready. @made: not 0, the node of the thread that made @of. */
static int look(const struct stook_cache *of, int made)
{
        int seen = 0;

        for (unsigned i = 0; i < SLOTS && i < stook_slots_bound(); i++) {
                struct stook_line *line = stook_slots_line(i, of->index);
                int want = !by_id ? node_of_cpu((int)i) + 1 : made ? made : maker[i];

                if (!line)
                        continue;
                seen++;
                CHECK(page_node(line) == want - 1, "node %d, not %d, slot %u, line %u",
                      page_node(line), want - 1, i, of->index);
        }
        return seen;
}

static void lines_of_later_caches(void)
{
        struct stook_cache *last = NULL;
        char name[16];

        for (int i = 0; i < CACHES; i++) {
                snprintf(name, sizeof(name), "later %d", i);
                last = stook_cache_create(name, BYTES, NULL);
                if (!last)
                        end(111);
        }
        CHECK(last->index >= 4096 >> STOOK_LINE_SHIFT, "line %u", last->index);
        CHECK(look(last, node_of_cpu(0) + 1) >= nodes, "slots");
}

int main(void)
{
        struct stook_mode mode = { .mode_size = sizeof(mode) };
        int seen;

        cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
        nodes = nodes_of_cpus(cpus);
        run_on(cpus - 1);
        cache = stook_cache_create("lines", BYTES, NULL);
        if (!cache || stook_get_mode(&mode) || nodes < 2 || cpus > SLOTS)
                end(112);
        by_id = !strcmp(mode.index, "mm_cid");
        call(node_of_cpu(cpus - 1), true);
        call_in_order();
        seen = look(cache, 0);
        printf("slots by %s (%s): %d ready, %d of them made so by the first thread there\n",
               mode.index, mode.backend, seen, own);
        CHECK(seen >= nodes, "slots");
        /* The kernel decides which ids there are. */
        CHECK(!by_id || __builtin_popcountll(own_nodes) > 1, "of nodes %#lx",
              (unsigned long)own_nodes);
        CHECK(!by_id || own < seen, "no thread made another slot ready");
        run_on(0);
        lines_of_later_caches();
        set(&over);
        for (int cpu = 0; cpu < cpus - 1; cpu++)
                pthread_join(thread[cpu].id, NULL);
        end(tell("all lines are where they should be"));
}
