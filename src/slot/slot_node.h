/*
 * Purpose: which node the current slot is of. A CPU is on one node for ever, and on several nodes slots are indexed by
 * CPU (with STOOK_TOPOLOGY by whatever index, modulo the nodes).
 * Place: slot, and cache and malloc above it.
 */
#ifndef STOOK_SLOT_NODE_H
#define STOOK_SLOT_NODE_H

#include "slot/slot.h"

/* Const after start: there are several nodes. */
extern bool stook_slots_by_node STOOK_HIDDEN;

/* Const after start: each allocation that names no node asks the task's policy. Then no thread enrols. */
extern bool stook_slots_strict STOOK_HIDDEN;

unsigned stook_slot_node_of_several(void);

/* The node of the slot that this thread is on now; a hint, for it may move on. May be one without memory. */
STOOK_INLINE unsigned stook_slot_node(void)
{
        return STOOK_LIKELY(!stook_slots_by_node) ? 0 : stook_slot_node_of_several();
}

/* ---- slot_remote.c: frees of objects of other nodes. Only on several nodes. ---- */

/* The words where a cache's remote-free sheaves are. False: no memory. */
bool   stook_slots_add_remote(struct stook_front *front);
/*
 * The common case of a free: the object is this node's, and there is room in main. False: nothing done. Then
 * stook_slot_free_miss finds out what it is.
 */
bool   stook_slot_push_home(struct stook_front *front, void *object);
/*
 * Takes an object that belongs into no sheaf of this slot: to this slot's sheaf for the object's home, which goes to
 * the barn there when it is full. False: the object is this node's (or this node has no memory), nothing done.
 */
bool   stook_slot_free_remote(struct stook_front *front, void *object, void (*on_double)(struct stook_front *, void *));
/* The same for many. Returns how many are left, at the front of the array. */
size_t stook_slot_free_remote_bulk(struct stook_front *front, size_t n, void **objects);
/* Empties all of a cache's remote-free sheaves into the slabs. */
void   stook_slot_drain_remote(struct stook_front *front);
/*
 * Of sheaves that nobody has put anything in since the same look last passed, the objects go into their slabs. Within a
 * visit of the barns. One slot's, by its hand (slot_idle.c); all slots', by a round: true: there were some.
 */
void   stook_slot_rest_remote(struct stook_barns *barns, const struct stook_line *own, struct stook_idle *idle);
bool   stook_slots_rest_remote(struct stook_barns *barns, const struct stook_slot_look *look);
/* The sheaf of a slot for a node, for who looks on (quiescent); NULL: none. */
struct stook_sheaf *stook_slot_remote_sheaf(struct stook_front *front, unsigned slot, unsigned node);
struct stook_remote_counts {
        uint64_t objects, sheaves;      /* atomic, relaxed: sent home to this node, and in how many sheaves */
};
struct stook_remote_counts stook_slot_remote_counts(const struct stook_front *front, unsigned node);

/* ---- slot_node.c: one object of a node ---- */
/*
 * @node: one that exists. @this_node: nothing else will do. Counts alloc_node_mismatch where the sheaves are of no use.
 * NULL: no memory, or none on that node.
 */
void  *stook_slot_alloc_node(struct stook_front *front, unsigned node, bool this_node);

#endif
