/*
 * Purpose: slabs that are made before they are needed, and kept. For a program that knows how many
 * objects it will want at once.
 * Place: called by cache; calls slab_birth.
 * Concurrency: takes the lock of the node's list for a walk over it. Not for handlers.
 *  Other threads may take from the slabs at once: the objects were there when the last slab was
 *  listed.
 * Failure: -ENOMEM; slabs that could be had are kept.
 */
#include <errno.h>

#include "slab/slab_inside.h"

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
