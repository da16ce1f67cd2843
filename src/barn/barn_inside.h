/*
 * Purpose: what the files of src/barn call of each other. Other layers include barn/barn.h.
 * Place: barn_stacks.c is below the others; barn.c, with the two verbs, is above them.
 */
#ifndef STOOK_BARN_INSIDE_H
#define STOOK_BARN_INSIDE_H

#include "barn/barn.h"
#include "base/probe.h"

/* Bytes that a full sheaf keeps from its slabs. */
STOOK_INLINE uint64_t stook_barn_bytes(const struct stook_barns *barns,
                                       const struct stook_sheaf *sheaf)
{
        return (uint64_t)stook_sheaf_capacity(sheaf) * barns->below->stride;
}

/* A cache without sheaves, until its objects have swung between the slabs and its users. */
STOOK_INLINE bool stook_barns_begin_with_none(const struct stook_barns *barns)
{
        return !__atomic_load_n(&barns->growth.at_least, __ATOMIC_RELAXED);
}

/* ---- barn_stacks.c: whole sheaves in and out of a node's two stacks; no call down ---- */

/* False: at its limit; the sheaf is still the caller's. push_full counts barn_put(_fail). */
bool stook_barn_push_full(struct stook_barns *barns, unsigned node, struct stook_sheaf *full);
bool stook_barn_push_empty(struct stook_barns *barns, unsigned node, struct stook_sheaf *empty);
/* NULL: none. */
struct stook_sheaf *stook_barn_pop_full(struct stook_barns *barns, unsigned node);
struct stook_sheaf *stook_barn_pop_empty(struct stook_barns *barns, unsigned node);
/* pop_full for a caller that wants objects: an ask. Counts barn_get(_fail). */
struct stook_sheaf *stook_barn_ask_full(struct stook_barns *barns, unsigned node);
/* So many full sheaves came since the last ask that the barn keeps none. */
bool stook_barn_is_unasked(struct stook_barns *barns, unsigned node);
/* Room for a full sheaf, seen racily: a hint before a sheaf is filled. */
bool stook_barn_has_room(struct stook_barns *barns, unsigned node);

/* ---- barn_refill.c ---- */

/*
 * A sheaf with @most objects from the slabs, or with as many as it holds: @empty, or a new one if
 * that is NULL. Return NULL: no memory. What was got is back in the slabs then, and @empty is still
 * the caller's. Counts sheaf_refill.
 */
struct stook_sheaf *stook_barn_refill(struct stook_barns *barns, unsigned node,
                                      struct stook_sheaf *empty, unsigned most);
/*
 * All objects of a sheaf go into the slabs; nothing else is done. Counts sheaf_flush. Inlined:
 * below a free's deepest call the stack has no room for one more frame. A flush, and a put, take
 * stook_barn_step after it.
 */
STOOK_INLINE void stook_barn_drain(struct stook_barns *barns, struct stook_sheaf *sheaf)
{
        unsigned size = stook_sheaf_size(sheaf);

        if (!size)
                return;
        stook_slab_drain(barns->below, size, sheaf->objects);
        stook_sheaf_set_size(sheaf, 0);
        stook_count(barns->below->counters, STOOK_STAT_sheaf_flush, size);
        STOOK_PROBE2(sheaf_flush, barns->cache_index, size);
}
/* Work that every refill, flush and draining put does for the program. */
void stook_barn_step(void);
/* Drains and deletes one full sheaf of a barn. False: there was none. */
bool stook_barn_evict(struct stook_barns *barns, unsigned node);

/* ---- barn_growth.c ---- */

/* A sheaf was flushed for lack of room; was filled from the slabs. What swings so grows. */
void stook_barns_flushed(struct stook_barns *barns);
void stook_barns_refilled(struct stook_barns *barns);
/* A full sheaf came from the barn: a swing, too, where sheaves are short. */
void stook_barns_swung(struct stook_barns *barns);
/* stook_barns_used was called since the last call. */
bool stook_barns_was_used(struct stook_barns *barns);
/* For barn_idle.c: no full sheaf was asked for since the last reap. What has grown shrinks. */
void stook_barns_shrink(struct stook_barns *barns);

/* ---- barn_budget.c ---- */

/*
 * Books room for @bytes more in full sheaves of @node; stook_barn_unbook gives it back. False: no
 * room.
 */
bool stook_barn_book(unsigned node, uint64_t bytes);
void stook_barn_unbook(unsigned node, uint64_t bytes);
/* Bytes that the barns of a node may keep at most. */
uint64_t stook_barn_budget(void);
/* From here on they may keep at least @bytes more, within that. 0: no more than before bursts. */
void stook_barn_expect_burst(uint64_t bytes);

#endif
