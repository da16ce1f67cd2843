/*
 * Purpose: give back a cache's empty slabs, except for reserved ones (stook_slabs_reserve).
 * And sort its partial lists, so that fills take from the fullest slabs first.
 * Place: called by cache (shrink, destroy).
 *
 * Invariant: H1 If slabs are reserved, a slab is claimed before it is released. The claim counts it
 *  in `going`, and then finds that without all in `going` enough are left. So of two threads that
 *  claim the last one that may go, at most one succeeds.
 * Concurrency: takes the lock of each list, also while it sorts. M1: the release of what is taken
 *  off `going` after `slabs` (slab_birth.c) pairs with the acquire of a claim: a slab that is gone
 *  from the first is gone from the second.
 */
#include "os/os.h"
#include "pages/purge.h"
#include "slab/slab_inside.h"

/* Slabs with at most so many free objects are sorted, the others stay behind. As the kernel's. */
#define SHRINK_RANKS 32
/*
 * Listed slabs that stook_slabs_give_kept looks at in one hold of the lock. More are not needed:
 * empty slabs are kept only in short lists.
 */
#define LOOKS 64

static void sort(struct stook_slabs_node *node)
{
        struct stook_list rank[SHRINK_RANKS];

        for (int i = 0; i < SHRINK_RANKS; i++)
                stook_list_init(&rank[i]);
        stook_list_for_each_safe(e, &node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);
                uint32_t free = stook_slab_free_listed(slab);

                if (free - 1 < SHRINK_RANKS) {
                        stook_list_remove(e);
                        stook_list_add_head(&rank[free - 1], e);
                }
        }
        for (int i = SHRINK_RANKS - 1; i >= 0; i--)
                stook_list_for_each_safe(e, &rank[i])
                        stook_list_add_head(&node->list, e);
}

uint32_t stook_slabs_beyond_reserved(const struct stook_slabs *slabs,
                                     const struct stook_slabs_node *first)
{
        uint64_t stay = __atomic_load_n(&slabs->reserved, __ATOMIC_RELAXED), count;

        if (stay)
                stay += __atomic_load_n(&first->going, __ATOMIC_ACQUIRE);       /* M1 */
        count = __atomic_load_n(&first->slabs, __ATOMIC_RELAXED);
        return count > stay ? (uint32_t)(count - stay) : 0;
}

/* If nothing is reserved, all may go. A jump out of a call may have left a claim, for ever. */
bool stook_slabs_claim(const struct stook_slabs *slabs, struct stook_slabs_node *first)
{
        uint64_t stay = __atomic_add_fetch(&first->going, 1, __ATOMIC_ACQUIRE); /* M1 */
        uint32_t reserved = __atomic_load_n(&slabs->reserved, __ATOMIC_RELAXED);

        stay += reserved;
        if (!reserved || __atomic_load_n(&first->slabs, __ATOMIC_RELAXED) >= stay)
                return true;
        stook_slabs_unclaim(first);
        return false;
}

/* Held: releases an empty slab that is not needed, if it still is one. */
static bool retire(struct stook_slab_hold *hold, struct stook_slabs_node *first,
                   struct stook_slab *slab)
{
        if (!stook_slab_empty_but_claim(slab, STOOK_SLAB_PARTS) || !stook_slab_may_go(slab) ||
            !stook_slabs_claim(hold->slabs, first))                             /* H1 */
                return false;
        if (!stook_slab_retire(slab)) {
                stook_slabs_unclaim(first);
                return false;
        }
        stook_slab_bury(hold, slab);
        return true;
}

/* @first: the node's list, which has the count of its slabs. */
static void shrink_list(struct stook_slabs *slabs, struct stook_slabs_node *first,
                        struct stook_slabs_node *node)
{
        struct stook_slab_hold hold;
        uint32_t surplus;

        if (!stook_slab_hold_long(&hold, slabs, node))
                return;
        surplus = slabs->run_slabs ? 0 : stook_slabs_beyond_reserved(slabs, first);
        stook_list_for_each_safe(e, &node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);

                if (!surplus)
                        break;
                surplus -= retire(&hold, first, slab);
        }
        sort(node);
        stook_slab_unhold(&hold);
}

/*
 * A slab may be pending at a list that it has left (slab_partial.c P1). If that list were shrunk
 * after the slab's own list, the slab would stay.
 */
static void settle_lists(struct stook_slabs *slabs, struct stook_slabs_node *first)
{
        struct stook_slab_hold hold;

        if (stook_slabs_lists(first) == 1)
                return;
        for (unsigned n = 0; n < stook_slabs_lists(first); n++)
                if (stook_slab_hold_long(&hold, slabs, stook_slabs_list(first, n)))
                        stook_slab_unhold(&hold);
}

static void give_kept_of(struct stook_slabs *slabs, struct stook_slabs_node *first,
                         struct stook_slabs_node *node)
{
        struct stook_slab_hold hold;
        uint32_t surplus;
        int looks = 0;

        if (stook_slabs_node_idle(node) || !stook_slab_hold(&hold, slabs, node, true))
                return;
        surplus = stook_slabs_beyond_reserved(slabs, first);
        stook_list_for_each_safe(e, &node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);

                if (!surplus || looks++ == LOOKS)
                        break;
                surplus -= retire(&hold, first, slab);
        }
        stook_slab_unhold(&hold);
}

void stook_slabs_give_kept(struct stook_slabs *slabs, unsigned node)
{
        struct stook_slabs_node *first = &slabs->node[node];

        if (stook_slabs_only_shrink(slabs))
                return;
        for (unsigned i = 0; i < stook_slabs_lists(first); i++)
                give_kept_of(slabs, first, stook_slabs_list(first, i));
}

size_t stook_slabs_shrink(struct stook_slabs *slabs)
{
        if (slabs->dtor)
                stook_slabs_destruct(slabs);
        for (unsigned i = 0; i < stook_os_node_count(); i++) {
                struct stook_slabs_node *first = &slabs->node[i];

                if (slabs->run_slabs)
                        stook_slab_shrink_runs(slabs, first);
                settle_lists(slabs, first);
                for (unsigned n = 0; n < stook_slabs_lists(first); n++)
                        shrink_list(slabs, first, stook_slabs_list(first, n));
        }
        stook_pages_purge_excess();
        return stook_slabs_count(slabs);
}
