/*
 * Purpose: precharges: bytes that a slot has charged to a group in advance, so that charging an
 * object is one critical section and no atomic operation.
 * Place: called by group, and inlined into account/account.c. The sections are section's, the
 * way to take precharges back is evacuate's.
 *
 * A precharge is a word, group id << 32 | bytes, in the line STOOK_PRECHARGE_LINE of each slot. The
 * contract of the operations on it, and its invariants, stand in section/section.h.
 * Concurrency: a slot's own sections (rseq) or the holder of its trylock (locked); evacuations by
 * atomic operations.
 */
#ifndef STOOK_GROUP_PRECHARGE_H
#define STOOK_GROUP_PRECHARGE_H

#include <stdbool.h>
#include <stdint.h>
#include "section/section_precharge.h"

/* Bytes from the start of a slot to the word of @id. */
STOOK_INLINE uint32_t stook_precharge_offset(uint16_t id)
{
        return (uint32_t)((STOOK_PRECHARGE_LINE << STOOK_LINE_SHIFT) +
                          offsetof(struct stook_precharge_line, word) +
                          id % STOOK_PRECHARGE_WORDS * sizeof(uint64_t));
}

/* What a word of @id with no bytes is. */
STOOK_INLINE uint64_t stook_precharge_tag(uint16_t id)
{
        return (uint64_t)id << 32;
}

/* The address in slot 0, as sections want it. */
STOOK_INLINE uintptr_t stook_precharge_word(uint16_t id)
{
        return (uintptr_t)stook_sections.slots + stook_precharge_offset(id);
}

/* On restartable sequences only: elsewhere always false. */
STOOK_INLINE bool stook_precharge_add_hot(uint16_t id, int64_t delta)
{
        return stook_section_precharge_add(stook_precharge_word(id), stook_precharge_tag(id),
                                           delta);
}

/* On the backend this thread uses now. */
bool stook_precharge_add(uint16_t id, int64_t delta);
bool stook_precharge_set(uint16_t id, uint64_t from, uint64_t to);
/* The current slot's word where @id's precharge would be, racily. */
uint64_t stook_precharge_look(uint16_t id);

/*
 * Bytes in the precharges of those groups for which @counts returns true. Racy; exact when no
 * thread charges.
 */
uint64_t stook_precharges_sum(bool (*counts)(uint16_t id, const void *data), const void *data);
/*
 * Takes the precharges of all groups out of all slots and hands them to @back. False: membarrier
 * was refused, or another evacuation is under way and @wait is false. Some may have been taken
 * then. With @wait not for handlers.
 */
bool stook_precharges_evacuate(bool wait, void (*back)(uint16_t id, uint64_t bytes));

#endif
