/*
 * Purpose: which node this thread is on, and what goes by it. A CPU is on one node for ever. A slot
 * is not: its index, the concurrency id, may be that of a thread on another node next. (With
 * STOOK_TOPOLOGY a CPU's node is its number modulo the nodes; on the locked backend that of the
 * slot.)
 * Place: slot, and cache and malloc above it.
 */
#ifndef STOOK_SLOT_NODE_H
#define STOOK_SLOT_NODE_H

#include "slot/slot.h"

/* Const after start: there are several nodes. */
extern bool stook_slots_by_node STOOK_HIDDEN;

/*
 * Const after start: each allocation that names no node asks the task's policy. Then no thread
 * enrols.
 */
extern bool stook_slots_strict STOOK_HIDDEN;

unsigned stook_slot_node_of_several(void);

/*
 * The node of the CPU that this thread is on now; a hint, for it may move on. May be one without
 * memory.
 */
STOOK_INLINE unsigned stook_slot_node(void)
{
        return STOOK_LIKELY(!stook_slots_by_node) ? 0 : stook_slot_node_of_several();
}

unsigned stook_slot_node_by_policy(void);
/* stook_slot_get() of the node that the task's policy names. */
void *stook_slot_get_by_policy(struct stook_front *front);

/* From where an allocation that names no node takes: with STOOK_STRICT_NUMA the policy says. */
STOOK_INLINE unsigned stook_slot_node_to_use(void)
{
        return STOOK_UNLIKELY(stook_slots_strict) ? stook_slot_node_by_policy() : stook_slot_node();
}

/* ---- slot_remote.c: objects of other nodes. Only on several nodes. ---- */

/* The words where a cache's remote-free sheaves are. False: no memory. */
bool   stook_slots_add_remote(struct stook_front *front);
void   stook_slot_dispose_by_home(struct stook_front *front, int or_here,
                                  struct stook_sheaf *sheaf);
/*
 * Takes any sheaf from its sole owner, a caller that needs it no more. Its objects were freed on
 * node @or_here (-1: this thread's). Where all have one home, the sheaf goes to that home's barn as
 * it is. Otherwise its objects are divided by their homes. Where a barn has no room, objects go
 * into their slabs.
 */
STOOK_INLINE void stook_slot_dispose(struct stook_front *front, int or_here,
                                     struct stook_sheaf *sheaf)
{
        if (STOOK_UNLIKELY(stook_slots_by_node))
                stook_slot_dispose_by_home(front, or_here, sheaf);
        else
                stook_barn_put(front->below, 0, sheaf);
}
/* An object of another node that this thread popped, and gives to no user. */
void   stook_slot_send_home(struct stook_front *front, void *object);
/*
 * Of @n freed objects those of other nodes go towards their homes. Returns how many are left, at
 * the front of the array: all of one home, or on a node without memory.
 */
size_t stook_slot_free_remote_bulk(struct stook_front *front, size_t n, void **objects);
/*
 * By the slot's own reaper (slot_idle.c), within a visit of the barns. A sheaf into which no thread
 * has put an object since the last such look gives its objects back to their slabs.
 */
void   stook_slot_reap_remote(struct stook_barns *barns, const struct stook_slot_head *own,
                              struct stook_idle *idle);
/* The sheaf of a slot for a node, for validation (quiescent); NULL: none. */
struct stook_sheaf *stook_slot_remote_sheaf(struct stook_front *front, unsigned slot,
                                            unsigned node);
struct stook_remote_counts {
        /* Atomic, relaxed: sent home to this node, and in how many sheaves */
        uint64_t objects, sheaves;
};
struct stook_remote_counts stook_slot_remote_counts(const struct stook_front *front, unsigned node);

/* ---- slot_node.c: one object of a node ---- */
/*
 * @node: one that exists. @this_node: nothing else will do. Counts alloc_node_mismatch where the
 * sheaves are of no use. NULL: no memory, or none on that node.
 */
void  *stook_slot_alloc_node(struct stook_front *front, unsigned node, bool this_node);
/*
 * slot_bulk.c: stook_slot_alloc_bulk from whatever node, though the task's policy may say
 * otherwise.
 */
size_t stook_slot_alloc_bulk_any(struct stook_front *front, size_t n, void **objects);

#endif
