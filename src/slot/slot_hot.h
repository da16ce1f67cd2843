/*
 * Purpose: the hot path, for the library's own inlining: malloc and cache take and give objects
 * here first, and so does rcu with those that wait for readers.
 * Place: called by malloc, cache and rcu. The sections are in section/section_hot.h, and in a file
 * for each machine.
 *
 * A call that misses goes on in cache/cache_slow.c, which makes the gate's check. Then it descends:
 *
 *      object = stook_slot_pop(offset);
 *      if (!object)
 *              object = stook_slot_get(front);
 *
 *      if (!stook_slot_push(offset, object))
 *              stook_slot_put(front, object, on_double);
 *
 * Concurrency: any thread, any instruction. Threads that are not enrolled, and the locked backend,
 *  miss.
 */
#ifndef STOOK_SLOT_HOT_H
#define STOOK_SLOT_HOT_H

#include "section/section_precharge.h"
#include "slot/slot.h"

/* @offset: cache index << STOOK_LINE_SHIFT. NULL: a miss. */
STOOK_INLINE void *stook_slot_pop(uint32_t offset)
{
        return stook_section_pop((uintptr_t)stook_sections.slots + offset);
}

/* False: a miss, or a double free: stook_slot_put finds out which. @object is not NULL. */
STOOK_INLINE bool stook_slot_push(uint32_t offset, void *object)
{
        uintptr_t line = (uintptr_t)stook_sections.slots + offset;

        return STOOK_LIKELY(stook_section_push(line, object) == STOOK_PUSH_DONE);
}

/* Into the slot's rcu sheaf. True: @object was put. False: a miss, or one place is left in it. */
STOOK_INLINE bool stook_slot_rcu_push(uint32_t offset, void *object)
{
        return stook_section_rcu_push((uintptr_t)stook_sections.slots + offset, object) == object;
}

/* The same for callers that have the cache at hand, and so the address of its line. */
STOOK_INLINE void *stook_front_pop(const struct stook_front *front)
{
        return stook_section_pop(front->line);
}

STOOK_INLINE bool stook_front_push(const struct stook_front *front, void *object)
{
        return STOOK_LIKELY(stook_section_push(front->line, object) == STOOK_PUSH_DONE);
}

#endif
