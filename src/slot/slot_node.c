/*
 * Purpose: the current slot's node, and one object of a given node.
 * Place: called by cache and slot_miss.c; calls slab where the sheaves are of no use.
 *
 * Objects of the slot's own node come from its sheaves, but each is looked at first: refills from all nodes put others
 * there. It is popped only if it is the one that was looked at. For another node its slabs are asked, one object at a
 * time: sheaves of other nodes are their slots' own.
 * Concurrency: any thread, any instruction.
 */
#include "pages/pagemap.h"
#include "slot/slot_node.h"
#include "slot/slot_regions.h"

#define LOOKS_MAX 4                     /* others may pop what was looked at, or a signal abort the pop */

bool stook_slots_by_node, stook_slots_strict;

unsigned stook_slot_node_of_several(void)
{
        return stook_slots_node_of(&stook_regions, stook_slot_now());
}

/* Of the current slot's sheaves. NULL: the top object is of another node, or there is none to be had. */
static void *pop_of_node(struct stook_front *front, unsigned node)
{
        for (unsigned looks = 0; looks < LOOKS_MAX; looks++) {
                const struct stook_slot_ops *ops = stook_slot_ops();
                void *top = ops->peek(front->offset);

                if (!top && !stook_slot_refill(front))
                        return NULL;
                if (!top)
                        continue;
                if (stook_address_node((uintptr_t)top) != node)
                        return NULL;
                top = ops->pop_if(front->offset, top);
                if (top)
                        return top;
        }
        return NULL;
}

void *stook_slot_alloc_node(struct stook_front *front, unsigned node, bool this_node)
{
        unsigned home = stook_os_node_home(node);
        void *object = NULL;

        if (this_node && home != node)
                return NULL;
        if (stook_barns_capacity(front->below) && home == stook_os_node_home(stook_slot_node()))
                object = pop_of_node(front, home);
        if (object)
                return object;
        if (stook_barns_capacity(front->below))
                stook_count(front->below->counters, STOOK_STAT_alloc_node_mismatch, 1);
        if (stook_slab_fill(front->below->below, home, 1, &object, STOOK_FILL_THISNODE)) {
                stook_count(front->below->counters, STOOK_STAT_alloc_slowpath, 1);
                return object;
        }
        return this_node ? NULL : stook_slot_alloc_any(front);
}
