/*
 * Purpose: machines of several nodes. Where does a sheaf go that leaves its slot, which of many
 * objects are not of here, and which object is of a given node? (On which node a thread is says
 * stook_slot_node.)
 * Place: called by cache and malloc, by evacuate, and by slot, through the table stook_home_duties
 *  of slot/slot.h, where stook_slots_by_node says so. Calls slot, barn, and slab for an object of a
 *  given node.
 */
#ifndef STOOK_HOME_H
#define STOOK_HOME_H

#include "slot/slot.h"
#include "slot/slot_regions.h"

/* ---- home.c: objects of a given node ---- */

unsigned stook_home_by_policy(void);

/* From where an allocation that names no node takes: with STOOK_STRICT_NUMA the policy says. */
STOOK_INLINE unsigned stook_home_to_use(void)
{
        return STOOK_UNLIKELY(stook_slots_strict) ? stook_home_by_policy() : stook_slot_node();
}

/*
 * @node: one that exists. @this_node: nothing else will do. Counts alloc_node_mismatch where the
 * sheaves are of no use. NULL: no memory, or none on that node.
 */
void  *stook_home_get(struct stook_front *front, unsigned node, bool this_node);

/* ---- home_remote.c: objects of other nodes. Only on several nodes. ---- */

struct stook_remote_counts {
        /* Atomic, relaxed: sent home to this node, and in how many sheaves */
        uint64_t objects, sheaves;
};

/* Of each cache: counts for each node, then a word for each slot and node, slot by slot. */
struct stook_remote {
        struct stook_remote_counts sent[STOOK_NODES_MAX];
        uint32_t looked_ms;             /* atomic, relaxed, a hint: when a round last passed */
        uintptr_t word[];               /* atomic, home_remote.c M1: sheaf | looks that saw it */
};

/* The words where a cache's remote-free sheaves are. False: no memory. */
bool   stook_home_add_cache(struct stook_front *front);
/*
 * Of @n freed objects those of other nodes go towards their homes. Returns how many are left, at
 * the front of the array: all of one home, or on a node without memory.
 */
size_t stook_home_sort(struct stook_front *front, size_t n, void **objects);
/*
 * Within a visit of the barns: sheaves of @slot into which no thread has put an object since the
 * last look of that kind give their objects back to their slabs, @work of them at most. Return: how
 * many did.
 */
unsigned stook_home_reap(struct stook_barns *barns, size_t slot, enum stook_home_look look,
                         unsigned work);
/* Gives back all of a cache's, into the slabs. */
void   stook_home_evacuate(struct stook_front *front);
/* The sheaf of a slot for a node, for validation (quiescent); NULL: none. */
struct stook_sheaf *stook_home_sheaf(struct stook_front *front, unsigned slot, unsigned node);
struct stook_remote_counts stook_home_counts(const struct stook_front *front, unsigned node);

/* What slot.h says of stook_slot_dispose. */
void   stook_home_put(struct stook_front *front, int or_here, struct stook_sheaf *sheaf);
/* An object of another node that this thread popped, and gives to no user. */
void   stook_home_put_object(struct stook_front *front, void *object);
/* Objects in a cache's sheaves for other nodes, racily. */
size_t stook_home_objects(struct stook_front *front);

#endif
