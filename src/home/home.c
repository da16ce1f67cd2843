/*
 * Purpose: one object of a given node, or of the node that the task's policy names.
 * Place: called by cache where the caller names a node, and by slot, through stook_home_duties,
 *  where the task's policy does (STOOK_STRICT_NUMA). Calls slab where the sheaves are of no use.
 *
 * If the node is this thread's own, its objects come from the slot's sheaves. Frees and refills put
 * objects of other nodes there, too. So the call looks at main's top object, and pops it only if it
 * is still the top. If it is of another node, it goes home, and the call looks at the next one. If
 * this thread's node has no memory, objects of other nodes may stay in the sheaves. The call then
 * leaves such an object there, and ends the search.
 * If the node is another one, the call asks that node's slabs, one object at a time. The sheaves of
 * other slots are out of its reach. stook_barn_get_object is of no use: where the node has no
 * memory left it takes an object of any other. STOOK_FILL_THISNODE refuses that.
 * Concurrency: any thread, any instruction.
 */
#include "home/home.h"
#include "pages/pagemap.h"
#include "slab/slab.h"
#include "slot/slot_trip.h"

/*
 * Others may pop what was looked at, or a signal abort the pop. And so many in the way go home at
 * once: arbitrary.
 */
#define LOOKS_MAX 4

/* pop_if passes marks, so the mark is asked for before. Not inlined: for the depth of the stack. */
static STOOK_NOINLINE void *pop_top(struct stook_front *front, void *top)
{
        if (stook_slot_trip(front, true) == STOOK_TRIP_SAMPLE)
                stook_sample_duties.in_place(front);
        return stook_slot_ops()->pop_if(front->offset, top);
}

/*
 * Of the current slot's sheaves. NULL: the top object is of another node and may stay there, for
 * this thread's node @here has no memory; or there is none to be had.
 */
static void *pop_of_node(struct stook_front *front, unsigned node, unsigned here)
{
        for (unsigned looks = 0; looks < LOOKS_MAX; looks++) {
                void *top = stook_slot_ops()->peek(front->offset);

                if (top && stook_address_node((uintptr_t)top) != node && here != node)
                        return NULL;
                top = top ? pop_top(front, top) : stook_slot_get_any(front, true);
                if (top && stook_address_node((uintptr_t)top) == node)
                        return top;
                if (top)
                        stook_home_put_object(front, top);
        }
        return NULL;
}

/* NULL: none of that node is to be had. Not inlined, for the depth of the stack. */
static STOOK_NOINLINE void *alloc_of_home(struct stook_front *front, unsigned home)
{
        unsigned here = stook_slot_node();
        void *object = NULL;

        if (stook_barns_capacity(front->barns) && home == stook_os_node_home(here))
                object = pop_of_node(front, home, here);
        if (object)
                return object;
        if (stook_barns_capacity(front->barns))
                stook_count(front->barns->slabs->counters, STOOK_STAT_alloc_node_mismatch, 1);
        if (!stook_slab_fill(front->barns->slabs, home, 1, &object, STOOK_FILL_THISNODE))
                return NULL;
        stook_count(front->barns->slabs->counters, STOOK_STAT_alloc_slowpath, 1);
        stook_slot_sample_from_slabs(front, 1);
        return object;
}

void *stook_home_get(struct stook_front *front, unsigned node, bool this_node)
{
        unsigned home = stook_os_node_home(node);
        void *object;

        if (this_node && home != node)
                return NULL;
        object = alloc_of_home(front, home);
        return object || this_node ? object : stook_slot_get_any(front, true);
}

/* ---- STOOK_STRICT_NUMA ---- */

unsigned stook_home_by_policy(void)
{
        return stook_os_task_node(stook_slot_node());
}

/* The task's policy says from which node. The slot may have objects of any. */
static void *get_by_policy(struct stook_front *front)
{
        return stook_home_get(front, stook_home_by_policy(), false);
}

const struct stook_home_duties stook_home_duties = {
        .get_by_policy = get_by_policy,
        .dispose = stook_home_put,
        .reap = stook_home_reap,
        .objects = stook_home_objects,
};
