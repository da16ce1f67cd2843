/*
 * Purpose: which free memory a cache keeps: slabs that are reserved before they are needed, empty
 * slabs. A shrink gives back all empty slabs but for reserved ones, and sorts the partial lists, so
 * that fills take from the fullest slabs first.
 * Place: called by cache (destroy, reserve), limit (shrink) and special, and by barn for caches
 * that are idle; calls slab_birth, pages.
 *
 * Invariants:
 *  H1 A slab is released under the lock of its node's list, and counts in `going` from there on,
 *     until `slabs` does not have it any more. So of two threads that may release the last one
 *     beyond the reserved, the second one finds that none is left.
 * Concurrency: takes the lock of each node, also while it sorts or counts; a walk for an idle cache
 *  only tries it. Reserve and shrink are not for handlers. M1: the release of what is taken off
 *  `going` after `slabs` (slab_birth.c) pairs with the acquire of `going`: a slab that is gone from
 *  the first is gone from the second. While slabs are reserved other threads may take from them:
 *  the objects were there when the last slab was listed.
 * Failure: -ENOMEM of a reserve: slabs that could be had are kept.
 */
#include <errno.h>

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

/* ---- empty slabs ---- */

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
                                     const struct stook_slabs_node *node)
{
        uint64_t stay = __atomic_load_n(&slabs->reserved, __ATOMIC_RELAXED), count;

        if (stay)
                stay += __atomic_load_n(&node->going, __ATOMIC_ACQUIRE);        /* M1 */
        count = __atomic_load_n(&node->slabs, __ATOMIC_RELAXED);
        return count > stay ? (uint32_t)(count - stay) : 0;
}

/* Held: of the first @looks slabs on the list, releases the empty ones that are not needed. */
static void retire_surplus(struct stook_slab_hold *hold, unsigned looks)
{
        bool (*may_go)(struct stook_slab *slab) = hold->slabs->is_special
                                                          ? hold->slabs->special->may_go : NULL;
        uint32_t surplus = stook_slabs_beyond_reserved(hold->slabs, hold->node);        /* H1 */

        stook_list_for_each_safe(e, &hold->node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);

                if (!surplus || !looks--)
                        break;
                if ((!may_go || may_go(slab)) && stook_slab_retire(slab)) {
                        stook_slab_bury(hold, slab);
                        surplus--;
                }
        }
}

void stook_slabs_give_kept(struct stook_slabs *slabs, unsigned n_node)
{
        struct stook_slabs_node *node = &slabs->node[n_node];
        struct stook_slab_hold hold;

        if (stook_slabs_only_shrink(slabs) || stook_slabs_node_idle(node) ||
            !stook_slab_hold(&hold, slabs, node, true))
                return;
        retire_surplus(&hold, LOOKS);
        stook_slab_unhold(&hold);
}

size_t stook_slabs_shrink(struct stook_slabs *slabs)
{
        if (slabs->is_special)
                slabs->special->shrink(slabs);
        for (unsigned i = 0; i < stook_os_node_count(); i++) {
                struct stook_slabs_node *node = &slabs->node[i];
                struct stook_slab_hold hold;

                if (!stook_slab_hold_long(&hold, slabs, node))
                        continue;
                retire_surplus(&hold, UINT32_MAX);
                sort(node);
                stook_slab_unhold(&hold);
        }
        stook_pages_purge_excess();
        return stook_slabs_count(slabs);
}

/* ---- reserved slabs ---- */

/*
 * Free objects of listed slabs. 0 if the lock cannot be had: then more slabs are made than needed.
 */
static size_t count_free(struct stook_slabs *slabs, struct stook_slabs_node *node)
{
        struct stook_slab_hold hold;
        size_t n = 0;

        if (!stook_slab_hold_long(&hold, slabs, node))
                return 0;
        stook_list_for_each(e, &node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);

                n += stook_slab_free_listed(slab);
        }
        stook_slab_unhold(&hold);
        return n;
}

int stook_slabs_reserve(struct stook_slabs *slabs, unsigned n_node, size_t n)
{
        size_t each = slabs->objects - slabs->kept_first, want = (n + each - 1) / each, has = 0;

        if (want > UINT32_MAX)
                return -ENOMEM;
        __atomic_store_n(&slabs->reserved, (uint32_t)want, __ATOMIC_RELAXED);
        if (n)
                has = count_free(slabs, &slabs->node[n_node]);
        while (has < n) {
                struct stook_slab *born[STOOK_SLAB_BIRTHS];
                unsigned count = stook_slab_births(slabs, n_node, n - has, true, born);

                if (!count)
                        return -ENOMEM;
                if (slabs->run_slabs)                   /* the others are listed already */
                        has += (slabs->run_slabs - count) * each;
                for (unsigned i = 0; i < count; i++) {
                        has += born[i]->objects - slabs->kept_first;
                        stook_slab_publish(slabs, born[i], false, false);
                }
        }
        return 0;
}
