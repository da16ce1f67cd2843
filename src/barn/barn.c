/*
 * Purpose: the two verbs of a barn: get a sheaf, put a sheaf. And the list of all barns, and
 * visits: threads that pass by empty the barns of other caches; destruction and tuning wait for
 * them.
 * Place: called by slot, rcu, home and prefill. Slot, evacuate and watch visit; cache, walk and
 *  inspect close. Calls the stacks (barn_inside.h), then the slabs through barn_refill.c.
 *
 *   get     wants       the barn has                         the barn has none
 *           FULL        a full sheaf                         an empty or new one, with a refill's
 *                                                            objects: maybe not full
 *           EMPTY       an empty sheaf                       a new one
 *           ROOM        a full sheaf, else an empty one      a new one, made to measure
 *   put     full        kept within its limits               drained; kept empty, or deleted
 *           empty       kept within its limits               deleted
 *           other       drained; kept empty, or deleted
 *
 * A sheaf that is smaller than the cache's sheaves are now is drained and deleted by a put: from
 * the barn it would come back into a slot. A put that drains ends like a flush: it takes the page
 * layer's step.
 *
 * Invariants: barn/barn.h.
 * Concurrency: lock-free. The stacks order a sheaf's content: its owner's stores come before the
 *  push, the next owner's loads after the pop (base/tagged_stack.h M1). M2: the release that lists
 *  a cache's barns pairs with the acquire in stook_barns_first: a thread that finds barns in the
 *  list sees their fields. M3: visits. A visitor raises the count (acquire) before it takes a sheaf
 *  of another cache, and lowers it (release) when the objects are in their slabs.
 *  stook_barns_close sets `closed` and waits for the rest to be 0 (acquire). Then no visitor holds
 *  anything, and later ones turn away.
 */
#include <errno.h>

#include "barn/barn_inside.h"
#include "os/os.h"
#include "pages/meta.h"

/*
 * Of a cache's first refill on a slot. Each further refill brings as many as all
 * refills before it together, up to a full sheaf. So a short program, or a class that is used now
 * and then, gets at most twice what it uses. And what was brought is a power of two, as capacities
 * are: a program that takes and frees 64 objects in turn fills and empties one sheaf of 64, and the
 * slot's two sheaves never change places. What the first refill brings is no more than a page: of
 * larger objects 4, 2 or 1.
 */
#define REFILL_FIRST_BYTES 4096

/* Atomic: M2; push-only. */
static struct stook_barns *all_barns;

struct stook_barns *stook_barns_first(void)
{
        return __atomic_load_n(&all_barns, __ATOMIC_ACQUIRE);
}

int stook_barns_init(struct stook_barns *barns, struct stook_slabs *slabs, unsigned capacity,
                     unsigned full_limit, unsigned empty_limit)
{
        bool listed = barns->node;

        if (!listed) {
                barns->node = stook_meta_bump(stook_os_node_count() * sizeof(struct stook_barn), 0);
                if (!barns->node)
                        return -ENOMEM;
        }
        barns->slabs = slabs;
        barns->cache_index = barns->line_index = slabs->cache_index;
        for (unsigned node = 0; node < stook_os_node_count(); node++)
                __atomic_store_n(&barns->node[node].unasked, 0, __ATOMIC_RELAXED);
        stook_barns_set(barns, capacity, full_limit, empty_limit);
        if (!listed) {
                barns->next = __atomic_load_n(&all_barns, __ATOMIC_RELAXED);
                while (!__atomic_compare_exchange_n(&all_barns, &barns->next, barns, true,
                                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
                        ;
        }
        return 0;
}

/* ---- visits ---- */

#define CLOSED UINT32_C(0x80000000)
/* An eviction takes microseconds as a rule. A second is for a visitor that was preempted. */
#define CLOSE_WAITS 1000
#define CLOSE_WAIT_NS 1000000

bool stook_barns_visit_begin(struct stook_barns *barns)
{
        if (!(__atomic_fetch_add(&barns->visits, 1, __ATOMIC_ACQUIRE) & CLOSED))
                return true;
        stook_barns_visit_end(barns);
        return false;
}

void stook_barns_visit_end(struct stook_barns *barns)
{
        uint32_t visits = __atomic_load_n(&barns->visits, __ATOMIC_RELAXED);

        /*
         * The count is 0 in a child of a fork that a handler made on top of this visit: the child's
         * repair forgot all visits.
         */
        while ((visits & ~CLOSED) &&
               !__atomic_compare_exchange_n(&barns->visits, &visits, visits - 1, true,
                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED))
                ;
}

bool stook_barns_close(struct stook_barns *barns)
{
        uint32_t v = __atomic_or_fetch(&barns->visits, CLOSED, __ATOMIC_ACQUIRE);

        for (unsigned waits = 0; v != CLOSED; waits++) {
                if (waits == CLOSE_WAITS) {
                        stook_barns_open(barns);
                        return false;
                }
                stook_os_futex_wait(&barns->visits, v, CLOSE_WAIT_NS);
                v = __atomic_load_n(&barns->visits, __ATOMIC_ACQUIRE);
        }
        return true;
}

void stook_barns_open(struct stook_barns *barns)
{
        __atomic_and_fetch(&barns->visits, ~CLOSED, __ATOMIC_RELEASE);
}

void stook_barns_fork_child(struct stook_barns *barns, bool open)
{
        uint32_t visits = __atomic_load_n(&barns->visits, __ATOMIC_RELAXED);
        uint32_t left = visits & (open ? 0 : CLOSED);

        if (left != visits)             /* a store copies the page */
                __atomic_store_n(&barns->visits, left, __ATOMIC_RELAXED);
}

/* ---- get ---- */

static struct stook_sheaf *make(struct stook_barns *barns, unsigned node, unsigned capacity)
{
        return stook_sheaf_new(barns->cache_index, capacity, node, barns->slabs->counters);
}

static unsigned first_fill(const struct stook_barns *barns)
{
        unsigned fill = STOOK_REFILL_FIRST;

        while (fill > 1 && (size_t)fill * barns->slabs->stride > REFILL_FIRST_BYTES)
                fill /= 2;
        return fill;
}

/* Objects of the next refill. Two threads on one slot may both double the word, or not: a hint. */
static unsigned next_fill(const struct stook_barns *barns, uint32_t *brought)
{
        unsigned capacity = stook_barns_capacity(barns), fill;

        if (STOOK_UNLIKELY(!brought))
                return capacity;
        fill = __atomic_load_n(brought, __ATOMIC_RELAXED);
        if (STOOK_LIKELY(fill >= capacity))
                return capacity;
        if (fill) {
                __atomic_store_n(brought, 2 * fill, __ATOMIC_RELAXED);
        } else {
                fill = first_fill(barns);
                __atomic_store_n(brought, fill, __ATOMIC_RELAXED);
        }
        return fill < capacity ? fill : capacity;
}

struct stook_sheaf *stook_barn_get_full(struct stook_barns *barns, unsigned node, unsigned from,
                                        uint32_t *brought)
{
        struct stook_sheaf *full = NULL, *empty;

        if (from & STOOK_FROM_BARN)
                full = stook_barn_ask_full(barns, node);
        if (full || !(from & STOOK_FROM_BELOW))
                return full;
        empty = stook_barn_pop_empty(barns, node);
        if (!empty && !(from & STOOK_FROM_SMALL) && !stook_barns_are_short(barns))
                empty = make(barns, node, stook_barns_capacity(barns));
        full = stook_barn_refill(barns, node, empty, next_fill(barns, brought));
        if (!full && empty)
                stook_barn_put(barns, node, empty);
        return full;
}

struct stook_sheaf *stook_barn_get_empty(struct stook_barns *barns, unsigned node, unsigned from)
{
        struct stook_sheaf *empty = NULL;

        if (STOOK_UNLIKELY(stook_barn_is_unasked(barns, node)) && (from & STOOK_FROM_BELOW) &&
            stook_barns_capacity(barns) > STOOK_BARN_SHORT && stook_barns_grow(barns))
                return from & STOOK_FROM_IF_ROOM ? NULL : make(barns, node, STOOK_BARN_SHORT);
        if (from & STOOK_FROM_BARN)
                empty = stook_barn_pop_empty(barns, node);
        if (empty || !(from & STOOK_FROM_BELOW))
                return empty;
        if ((from & STOOK_FROM_IF_ROOM) && !stook_barn_has_room(barns, node))
                return NULL;
        return make(barns, node, stook_barns_capacity(barns));
}

struct stook_sheaf *stook_barn_get_room(struct stook_barns *barns, unsigned node, unsigned objects)
{
        unsigned capacity = stook_barns_capacity(barns);
        struct stook_sheaf *sheaf;

        if (objects > capacity)
                return make(barns, node, objects);
        sheaf = stook_barn_ask_full(barns, node);
        if (!sheaf)
                sheaf = stook_barn_pop_empty(barns, node);
        if (sheaf && stook_sheaf_capacity(sheaf) < objects) {
                stook_barn_put(barns, node, sheaf);
                sheaf = NULL;
        }
        return sheaf ? sheaf : make(barns, node, capacity);
}

void *stook_barn_get_object(struct stook_barns *barns, unsigned node)
{
        void *object;

        if (!stook_slab_fill(barns->slabs, node, 1, &object, 0))
                return NULL;
        /* After the fill, unlike the kernel: the counts stay exact over failures. */
        stook_count(barns->slabs->counters, STOOK_STAT_alloc_slowpath, 1);
        if (STOOK_UNLIKELY(stook_barns_begin_with_none(barns)))
                stook_barns_decide(barns);
        return object;
}

/* ---- put ---- */

bool stook_barn_offer(struct stook_barns *barns, unsigned node, struct stook_sheaf *full)
{
        return stook_barn_push_full(barns, node, full);
}

/* Inlined, for the depth of the stack. */
STOOK_INLINE void put_below(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf)
{
        stook_barn_drain(barns, sheaf);
        if (STOOK_UNLIKELY(stook_barn_is_unasked(barns, node)))
                stook_barn_evict(barns, node);
        if (!stook_barn_push_empty(barns, node, sheaf))
                stook_sheaf_delete(sheaf, barns->slabs->counters);
        stook_barn_step();
}

void stook_barn_put_below(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf)
{
        put_below(barns, node, sheaf);
}

void stook_barn_put(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf)
{
        bool outgrown = stook_sheaf_capacity(sheaf) < stook_barns_capacity(barns);

        if (!stook_sheaf_size(sheaf)) {
                if (!stook_barn_push_empty(barns, node, sheaf))
                        stook_sheaf_delete(sheaf, barns->slabs->counters);
        } else if (!stook_sheaf_full(sheaf) || outgrown ||
                   !stook_barn_push_full(barns, node, sheaf)) {
                put_below(barns, node, sheaf);
        }
}

void stook_barn_put_object(struct stook_barns *barns, void *object)
{
        stook_count(barns->slabs->counters, STOOK_STAT_free_slowpath, 1);
        stook_slab_drain(barns->slabs, 1, &object);
}
