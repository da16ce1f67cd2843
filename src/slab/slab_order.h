/*
 * Purpose: in which order a slab's fresh objects are handed out: upwards, or by the source's permutation from
 * a random start. A slab that is smaller than its kind (slab_birth.c, fallback) goes round from a random
 * start: the permutation names objects that it does not have.
 * Nothing but the count of objects handed out so far is kept: from it follows which one is next, and whether
 * a given one was handed out.
 */
#ifndef STOOK_SLAB_ORDER_H
#define STOOK_SLAB_ORDER_H

#include "slab/slab_state.h"

/* Index of the object that is handed out as the @nth, from 0. */
STOOK_INLINE uint32_t stook_slab_nth(const struct stook_slab *slab, uint32_t nth)
{
        const struct stook_slabs *slabs = slab->slabs;
        uint32_t at = slab->start + nth;

        if (at >= slab->objects)
                at -= slab->objects;
        return slabs->sequence && slab->objects == slabs->objects ? slabs->sequence[at] : at;
}

/* Was the object at @index among the first @fresh? */
STOOK_INLINE bool stook_slab_was_out(const struct stook_slab *slab, uint32_t index, uint32_t fresh)
{
        const struct stook_slabs *slabs = slab->slabs;
        uint32_t at = index;

        if (index >= slab->objects)
                return false;
        if (slabs->sequence && slab->objects == slabs->objects)
                at = slabs->sequence[slabs->objects + index];
        at = at >= slab->start ? at - slab->start : at + slab->objects - slab->start;
        return at < fresh;
}

#endif
