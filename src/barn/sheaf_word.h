/*
 * Purpose: the word of a sheaf. One store commits an operation, and counts it: objects, and pops up
 * to a mark, at which the pops of all hot paths miss (<stook/layout.h>).
 *
 *   63 SAMPLE | 62..60 session | 59..32 base | 31 MARK | 30..16 count | 15..0 size
 *
 * A pop adds 0xffff, so count goes up to MARK, and a marked sheaf is popped by nobody until it has
 * a new count. Who gives it one: on a slot the call whose pop missed, by a section
 * (slot/slot_trip.c); elsewhere the sole owner, by a store.
 * SAMPLE: the pop at the mark is a sample of the session (slot/slot_trip.h). Without it the mark
 * says only that the count has come to its end.
 * Invariants:
 *  I1 pops so far = base + (MARK, count), modulo 1 << 28. So a new count moves pops into base, or
 *     out of it.
 *  I2 base never wraps: the call that gives a new count folds half of the range into the cache's
 *     counters, as pops and as pushes alike. (Pushes are what size, pops and `moved` leave: sheaf.h
 *     I2.) A jump out of the call in between leaves both short by the same.
 *  I3 pop_if passes marks (section.h). It takes back a free that was a misuse, so 32,767 of them
 *     never meet between two new counts; and if they did, statistics alone would be wrong.
 * Place: sheaf.h; section, slot, prefill.
 */
#ifndef STOOK_BARN_SHEAF_WORD_H
#define STOOK_BARN_SHEAF_WORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stook/layout.h>
#include "base/compiler.h"

#define STOOK_WORD_COUNT_SHIFT 16
#define STOOK_WORD_COUNTS (STOOK_SHEAF_MARK >> STOOK_WORD_COUNT_SHIFT)  /* pops to MARK, at most */
#define STOOK_WORD_BASE_SHIFT 32
#define STOOK_WORD_BASE ((UINT64_C(1) << 28) - 1)
#define STOOK_WORD_FOLD (UINT64_C(1) << 27)                             /* I2 */
#define STOOK_WORD_SAMPLE (UINT64_C(1) << 63)
#define STOOK_WORD_SESSION_SHIFT 60
#define STOOK_WORD_SESSION (UINT64_C(7) << STOOK_WORD_SESSION_SHIFT)

STOOK_INLINE uint64_t stook_word_pops(uint64_t word)
{
        return ((word >> STOOK_WORD_BASE_SHIFT) + (word >> STOOK_WORD_COUNT_SHIFT & 0xffff)) &
               STOOK_WORD_BASE;
}

STOOK_INLINE bool stook_word_is_marked(uint64_t word)
{
        return word & STOOK_SHEAF_MARK;
}

/* Pops until it is marked. */
STOOK_INLINE unsigned stook_word_to_mark(uint64_t word)
{
        return stook_word_is_marked(word)
                ? 0 : STOOK_WORD_COUNTS - ((unsigned)word >> STOOK_WORD_COUNT_SHIFT);
}

STOOK_INLINE bool stook_word_folds(uint64_t word)
{
        return stook_word_pops(word) >= STOOK_WORD_FOLD;
}

/* The same word, marked after @pops more. */
STOOK_INLINE uint64_t stook_word_set_left(uint64_t word, unsigned pops)
{
        uint64_t count = STOOK_WORD_COUNTS - pops;
        uint64_t base = (stook_word_pops(word) - count) & STOOK_WORD_BASE;

        return (word & (STOOK_WORD_SAMPLE | STOOK_WORD_SESSION | 0xffff)) |
               base << STOOK_WORD_BASE_SHIFT | count << STOOK_WORD_COUNT_SHIFT;
}

/* The same word, without what folds, of no session, and marked after @pops more, 0 to _COUNTS. */
STOOK_INLINE uint64_t stook_word_rearmed(uint64_t word, unsigned pops)
{
        uint64_t count = STOOK_WORD_COUNTS - pops;
        uint64_t folded = stook_word_folds(word) ? STOOK_WORD_FOLD : 0;
        uint64_t base = stook_word_pops(word) - count - folded;

        return (base & STOOK_WORD_BASE) << STOOK_WORD_BASE_SHIFT | count << STOOK_WORD_COUNT_SHIFT |
               (word & 0xffff);
}

#endif
