/*
 * Purpose: several lists of partial slabs for a cache's node, where many CPUs meet at one.
 * Place: called by fill, drain, birth and partial lists; calls pages for the lists' memory.
 *
 * A node begins with one list. Where fills find its lock taken often enough, and there are CPUs
 * enough (stook_slabs_start), further lists are made. Each thread has an own list: a hash of its
 * record, so threads spread over the lists, and handlers agree with what they interrupt. A fill
 * takes from its own list first, then from the others, then from new slabs. A new slab goes to the
 * list of the thread that makes it. A slab that is used up goes over to the list of the thread that
 * used it up. So also a program that makes no more slabs spreads them over all lists.
 *
 * What it costs: within a list the fullest slabs are taken from first, but not over all lists. Each
 * list keeps as many empty slabs as the only one did. Slabs in runs stay on one list, because a run
 * is looked at as a whole, under one lock.
 *
 * Invariants:
 *  L1 `lists` goes from 1 to its final number once in a cache's life, under the lock of the first
 *     list. `others` and what it points to are ready by then.
 *  L2 A slab belongs to the list of its number (list_number of its span). The number changes only
 *     under the lock of the list that it names, while the slab is not listed. So a holder of a lock
 *     that reads the number of its list may act on the slab. One that reads another number hands
 *     the slab's claims on (slab_partial.c, modelled in tests/proof/models/slab_lists.pml).
 *  L3 If slabs are reserved, frees leave at least so many on the lists. Each holder of a lock
 *     counts the slabs of all lists, without the other locks. Of what another holder gave back it
 *     may miss one slab: a fence separates a count from what the same holder gave back before. So
 *     they stop as many slabs earlier as there are lists. A slab that goes over during a count may
 *     be counted twice. So while fills use up slabs, frees may leave fewer. Of all slabs,
 *     listed or not, as many as are reserved stay in any case: slab_shrink.c H1.
 * Concurrency: `others` is set by a compare-and-swap. M1: the release of `lists` pairs with each
 *  acquiring load of it: the lists. M2: the release of a slab's number pairs with the acquiring
 *  load of it: all that was done to the slab under the lock of its old list.
 * Failure: no memory for further lists: there is one.
 */
#include "base/inject.h"
#include "base/thread.h"
#include "os/os.h"
#include "pages/meta.h"
#include "slab/slab_inside.h"

/*
 * 192 CPUs, 12 to a list. They queue up only where they do little else than take objects from slabs
 * and give them back (docs/TRIED_CPUS.md).
 */
#define LISTS_MOST 16
/*
 * A fill that meets another counts MET_MORE, one that does not counts 1 less. So a lock that is
 * found taken by one fill in nine, for long enough, is divided. Arbitrary.
 */
#define MET_MORE   8
#define MET_ENOUGH 1024

static unsigned lists_most = 1;         /* atomic, relaxed; set at start */

void stook_slabs_start(unsigned cpus)
{
        unsigned most = cpus / STOOK_SLAB_LIST_CPUS;

        most = most < 1 ? 1 : most > LISTS_MOST ? LISTS_MOST : most;
        __atomic_store_n(&lists_most, most, __ATOMIC_RELAXED);
}

/* ---- which list ---- */

/* Records lie as far from each other as stacks do. A multiplication spreads them (D. Knuth). */
unsigned stook_slabs_own_list(const struct stook_slabs_node *first)
{
        unsigned lists = stook_slabs_lists(first);
        uint32_t injected = STOOK_INJECT_GET(slab_list_plus_1);
        uint64_t hash;

        if (STOOK_LIKELY(lists == 1))
                return 0;
        if (injected)
                return (injected - 1) % lists;
        hash = (uintptr_t)stook_self * UINT64_C(0x9e3779b97f4a7c15);
        return (unsigned)((hash >> 32) * lists >> 32);
}

struct stook_slabs_node *stook_slabs_nth_list(const struct stook_slabs *slabs, unsigned n)
{
        for (unsigned i = 0; i < stook_os_node_count(); i++) {
                unsigned lists = stook_slabs_lists(&slabs->node[i]);

                if (n < lists)
                        return stook_slabs_list(&slabs->node[i], n);
                n -= lists;
        }
        return NULL;
}

void stook_slab_to_own_list(struct stook_slab *slab)
{
        __atomic_store_n(&stook_slab_span(slab)->list_number,
                         stook_slabs_own_list(&slab->slabs->node[slab->node]),
                         __ATOMIC_RELEASE);                             /* M2 */
}

/* ---- how long they are ---- */

static uint32_t count_listed(struct stook_slabs_node *first)
{
        uint32_t sum = 0;

        for (unsigned i = 0; i < stook_slabs_lists(first); i++)
                sum += __atomic_load_n(&stook_slabs_list(first, i)->partial, __ATOMIC_RELAXED);
        return sum;
}

uint32_t stook_slabs_partial(const struct stook_slabs *slabs, unsigned node)
{
        return count_listed(&slabs->node[node]);
}

bool stook_slabs_list_is_long(const struct stook_slabs *slabs, struct stook_slabs_node *first,
                              const struct stook_slabs_node *list, bool listed)
{
        uint32_t partial = __atomic_load_n(&list->partial, __ATOMIC_RELAXED) + !listed;
        uint32_t reserved;
        unsigned lists = stook_slabs_lists(first);

        if (STOOK_LIKELY(lists == 1))
                return partial > stook_slabs_listed_kept(slabs);
        if (partial <= slabs->min_partial)
                return false;
        reserved = __atomic_load_n(&slabs->reserved, __ATOMIC_RELAXED);
        if (!reserved)
                return true;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        return count_listed(first) + !listed >= (uint64_t)reserved + lists;             /* L3 */
}

/* A wrong free may read another user's bytes here. */
bool stook_slabs_surplus(const struct stook_slabs *slabs, const struct stook_slab *slab)
{
        unsigned node = __atomic_load_n(&slab->node, __ATOMIC_RELAXED), lists;
        struct stook_slabs_node *first;
        uint32_t number = 0;

        if (STOOK_UNLIKELY(node >= stook_os_node_count()))
                return false;
        first = &slabs->node[node];
        lists = stook_slabs_lists(first);
        if (STOOK_UNLIKELY(lists > 1))
                number = __atomic_load_n(&stook_slab_span(slab)->list_number, __ATOMIC_RELAXED);
        return stook_slabs_list_is_long(slabs, first, stook_slabs_list(first, number % lists),
                                        true);
}

/* ---- division ---- */

bool stook_slabs_note_meeting(struct stook_slabs_node *list, bool busy)
{
        /* Of a divided node's lists the first one has more, the others have 0. */
        if (STOOK_LIKELY(__atomic_load_n(&lists_most, __ATOMIC_RELAXED) == 1) ||
            stook_slabs_lists(list) != 1)
                return false;
        if (busy)
                list->met += MET_MORE;
        else
                list->met -= list->met != 0;
        if (STOOK_LIKELY(list->met <= MET_ENOUGH))
                return false;
        list->met = 0;                  /* if the division fails, there is another one later */
        return true;
}

static struct stook_slabs_node *make_lists(unsigned n)
{
        struct stook_slabs_node *list = stook_meta_bump(n * sizeof(*list), STOOK_CACHELINE);

        for (unsigned i = 0; list && i < n; i++) {
                stook_list_init(&list[i].list);
                stook_lock_set_rank(&list[i].lock, STOOK_RANK_PARTIAL_LIST);
        }
        return list;
}

/* False: no memory. */
static bool has_lists(struct stook_slabs_node *first, unsigned n)
{
        struct stook_slabs_node *none = NULL, *made;

        /* Those of the cache that had this memory before are empty, and as many. */
        if (__atomic_load_n(&first->others, __ATOMIC_ACQUIRE))
                return true;
        made = make_lists(n);
        if (!made)
                return false;
        /* If another thread was faster, these are lost: nothing gives such memory back. */
        __atomic_compare_exchange_n(&first->others, &none, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
        return true;
}

void stook_slabs_divide(struct stook_slabs *slabs, struct stook_slabs_node *first)
{
        unsigned most = __atomic_load_n(&lists_most, __ATOMIC_RELAXED);
        struct stook_slab_hold hold;

        if (most == 1 || slabs->run_slabs || !has_lists(first, most - 1) ||
            !stook_slab_hold(&hold, slabs, first, false))
                return;
        __atomic_store_n(&first->lists, (uint8_t)most, __ATOMIC_RELEASE);       /* L1, M1 */
        stook_slab_unhold(&hold);
}
