/*
 * Purpose: slabs had before they are needed, and kept: for a program that knows how many objects it will want at once.
 * Place: called by cache; calls slab_birth.
 * Concurrency: takes the node's lock for a walk over its list. Not for handlers. Others may take from the slabs at
 *  once; what is promised is what was there when the last slab was listed.
 * Failure: -ENOMEM; slabs that were had are kept.
 */
#include <errno.h>

#include "slab/slab_partial.h"

/* Tries for the node's lock, each of about 1 ms. */
#define TRIES 100

/* Objects of listed slabs that are not out. Without the lock it is 0: more slabs than needed are had then. */
static size_t count_free(struct stook_slabs *slabs, struct stook_slabs_node *node)
{
        struct stook_slab_hold hold;
        size_t n = 0;
        int tries = 0;

        while (!stook_slab_hold(&hold, slabs, node, false))
                if (++tries == TRIES)
                        return 0;
        stook_slab_settle_pending(&hold);
        stook_list_for_each(e, &node->list) {
                struct stook_slab *slab = stook_slab_of(stook_container_of(e, struct stook_span, list));

                n += slab->objects - stook_word_inuse(stook_slab_word(slab));
        }
        stook_slab_unhold(&hold);
        return n;
}

int stook_slabs_reserve(struct stook_slabs *slabs, unsigned n_node, size_t n)
{
        struct stook_slabs_node *node = &slabs->node[n_node];
        size_t want = (n + slabs->objects - 1) / slabs->objects;

        if (want > UINT32_MAX)
                return -ENOMEM;
        __atomic_store_n(&slabs->reserved, (uint32_t)want, __ATOMIC_RELAXED);
        for (size_t has = n ? count_free(slabs, node) : n; has < n;) {
                struct stook_slab *slab = stook_slab_birth(slabs, n_node);

                if (!slab)
                        return -ENOMEM;
                has += slab->objects;
                stook_slab_put_back(slabs, node, &slab, 1, false, false);
        }
        return 0;
}
