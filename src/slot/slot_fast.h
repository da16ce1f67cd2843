/*
 * Purpose: the hot path, for the library's own inlining: malloc and cache take and give objects here first.
 * Place: called by malloc and cache; a miss goes to slot_miss.c. The sections are in slot_section.h.
 *
 *      object = stook_slot_pop(offset);
 *      if (STOOK_UNLIKELY(!object))
 *              object = stook_slot_alloc_miss(front);
 *
 *      if (STOOK_UNLIKELY(!stook_slot_push(offset, object)))
 *              stook_slot_free_miss(front, object, on_double);
 *
 * Concurrency: any thread, any instruction. Threads that are not enrolled, and the locked backend, miss.
 */
#ifndef STOOK_SLOT_FAST_H
#define STOOK_SLOT_FAST_H

#include "slot/slot_section.h"

/* @offset: cache index << STOOK_LINE_SHIFT. NULL: a miss. */
STOOK_INLINE void *stook_slot_pop(uint32_t offset)
{
        return stook_section_pop((uintptr_t)stook_sections.slots + offset);
}

/* False: a miss, or a double free: stook_slot_free_miss finds out which. @object is not NULL. */
STOOK_INLINE bool stook_slot_push(uint32_t offset, void *object)
{
        return STOOK_LIKELY(stook_section_push((uintptr_t)stook_sections.slots + offset, object) == STOOK_PUSH_DONE);
}

/* The same for who has the cache at hand, and so the address. */
STOOK_INLINE void *stook_front_pop(const struct stook_front *front)
{
        return stook_section_pop(front->line);
}

STOOK_INLINE bool stook_front_push(const struct stook_front *front, void *object)
{
        return STOOK_LIKELY(stook_section_push(front->line, object) == STOOK_PUSH_DONE);
}

#endif
