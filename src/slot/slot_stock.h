/*
 * Purpose: stocks: bytes that a slot has charged to a group in advance, so that charging an object is one critical
 * section and no atomic operation.
 * Place: called by group; calls nothing below.
 *
 * A stock is one word, group id << 32 | bytes, in a line of its own in each slot, STOOK_STOCK_LINE, where no cache is.
 * A slot has room for STOOK_STOCKS of them; a group's is the one at its id modulo that. Word 0: nobody's.
 *
 *   add(id, delta)  w = the slot's word; if it is not id's, or w + delta would leave 0..STOOK_STOCK_MAX: miss;   * w += delta
 *   set(from, to)   if the slot's word is not `from`: miss;                                                     * w = to
 *
 * Invariants:
 *  I1 a stock's bytes are charged to its group; whoever changes the word has the difference in hand.
 *  I2 a word with STOOK_STOCK_FROZEN is a drainer's: no section changes it. A section that loaded it before may
 *     still commit, and the word is not frozen then: the drainer looks again after a barrier (slot_stock.c).
 * Concurrency: a slot's own sections (rseq) or the holder of its trylock (locked); drainers by atomic operations.
 */
#ifndef STOOK_SLOT_STOCK_H
#define STOOK_SLOT_STOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "slot/slot.h"

#define STOOK_STOCKS       4
#define STOOK_STOCK_BITS   17
#define STOOK_STOCK_MAX    ((1u << STOOK_STOCK_BITS) - 1)       /* bytes */
#define STOOK_STOCK_FROZEN (UINT64_C(1) << 63)

#if defined(__x86_64__)
#include "slot/arch/stock_x86_64.h"
#elif defined(__aarch64__)
#include "slot/arch/stock_aarch64.h"
#endif

/* From the start of a slot: behind the words that every line is filled with (slot_regions.c). */
STOOK_INLINE uint32_t stook_stock_offset(uint16_t id)
{
        return (STOOK_STOCK_LINE << STOOK_LINE_SHIFT) + 32 + id % STOOK_STOCKS * 8;
}

STOOK_INLINE uint64_t stook_stock_tag(uint16_t id)
{
        return (uint64_t)id << 32;
}

/* add, inlined: false in a thread that is not enrolled, too. */
STOOK_INLINE bool stook_stock_add_fast(uint16_t id, int64_t delta)
{
        return stook_section_stock_add((uintptr_t)stook_sections.slots + stook_stock_offset(id), stook_stock_tag(id), delta);
}

/* On the backend this thread uses now. */
bool stook_stock_add(uint16_t id, int64_t delta);
bool stook_stock_set(uint16_t id, uint64_t from, uint64_t to);
/* The current slot's word where @id's stock would be, racily. */
uint64_t stook_stock_look(uint16_t id);

/* Bytes in the stocks of the groups for which @counts says so, racily; exact when quiescent. */
uint64_t stook_stocks_sum(bool (*counts)(uint16_t id, const void *data), const void *data);
/*
 * Takes the stocks of one group (@id 0: of all) out of all slots and hands them to @back. False: membarrier refused, or
 * another drain is under way and @wait is false; some may have been taken. With @wait not for handlers.
 */
bool stook_stocks_drain(uint16_t id, bool wait, void (*back)(uint16_t id, uint64_t bytes));

#endif
