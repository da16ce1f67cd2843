/*
 * Purpose: where the sheaves of other nodes' objects are; for slot_remote.c and for what empties
 * slots from outside.
 * Place: slot_remote.c and evacuate.
 * Invariants, Concurrency: slot_remote.c.
 */
#ifndef STOOK_SLOT_REMOTE_H
#define STOOK_SLOT_REMOTE_H

#include "slot/slot_node.h"
#include "slot/slot_regions.h"

/* Of each cache: counts for each node, then a word for each slot and node, slot by slot. */
struct stook_remote {
        struct stook_remote_counts sent[STOOK_NODES_MAX];
        uint32_t looked_ms;             /* atomic, relaxed, a hint: when a round last passed */
        uintptr_t word[];               /* atomic, slot_remote.c M1: sheaf | STOOK_REMOTE_SEEN_* */
};

/* In a word: since this look passed, no thread has put an object into the sheaf. */
#define STOOK_REMOTE_SEEN_BY_SLOT  1u   /* the slot's own reaper */
#define STOOK_REMOTE_SEEN_BY_ROUND 2u   /* a round over all slots */
#define STOOK_REMOTE_SEEN          \
        ((uintptr_t)(STOOK_REMOTE_SEEN_BY_SLOT | STOOK_REMOTE_SEEN_BY_ROUND))

STOOK_INLINE uintptr_t *stook_remote_word(struct stook_remote *remote, size_t slot, unsigned node)
{
        return remote->word + slot * stook_regions.nodes + node;
}

STOOK_INLINE struct stook_sheaf *stook_remote_sheaf_in(uintptr_t word)
{
        return (struct stook_sheaf *)(word & ~STOOK_REMOTE_SEEN);
}

/* The sheaf is the caller's; NULL: there was none. */
STOOK_INLINE struct stook_sheaf *stook_remote_take(uintptr_t *word)
{
        return stook_remote_sheaf_in(__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL));
}

/*
 * Within a visit of the barns: the objects go into their slabs if no thread has put one in since
 * the look @by passed, or if @now. Else the look is noted. True: they went.
 */
bool stook_remote_reap(struct stook_barns *barns, uintptr_t *word, unsigned home, bool now,
                       uintptr_t by);

#endif
