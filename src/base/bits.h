/*
 * Purpose: set bits of a word: how many, the lowest ones, the first ones in some order.
 * Place: called by slab.
 */
#ifndef STOOK_BITS_H
#define STOOK_BITS_H

#include <stdint.h>
#include "base/compiler.h"

/* Of each byte, how many bits are set. */
STOOK_INLINE uint64_t stook_byte_counts(uint64_t x)
{
        x -= x >> 1 & UINT64_C(0x5555555555555555);
        x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
        return (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
}

/*
 * Set bits. The builtin would be a call, where the processor is not known to have an instruction
 * for it.
 */
STOOK_INLINE unsigned stook_popcount(uint64_t x)
{
#if defined(__POPCNT__) || !defined(__x86_64__)
        return (unsigned)__builtin_popcountll(x);
#else
        return (unsigned)(stook_byte_counts(x) * UINT64_C(0x0101010101010101) >> 56);
#endif
}

/*
 * Set bits of many words: their bytes' counts are added, up to STOOK_COUNTS of them, and only the
 * sum of these is spread over one number.
 */
#define STOOK_COUNTS 31                 /* of 8 bits each: a byte holds the sum */

STOOK_INLINE uint32_t stook_sum_of_bytes(uint64_t x)
{
        const uint64_t evens = UINT64_C(0x00ff00ff00ff00ff);

        return (uint32_t)(((x & evens) + (x >> 8 & evens)) * UINT64_C(0x0001000100010001) >> 48);
}

/*
 * The lowest @n set bits of @bits, which has more than @n. @n: at least one. The byte that holds
 * the last one is found by the sums of all bytes below it (S. Vigna, "Broadword implementation of
 * rank/select queries", 2008).
 */
static STOOK_NOINLINE uint64_t stook_lowest_scattered(uint64_t bits, uint32_t n)
{
        const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
        uint64_t sums = stook_byte_counts(bits) * ones, rest;
        unsigned at;

        /* A byte's top bit: at least n bits lie in this byte and below. No byte borrows. */
        at = (unsigned)__builtin_ctzll(((sums | tops) - n * ones) & tops) & ~7u;
        n -= (uint32_t)(sums << 8 >> at & 0xff);
        for (rest = bits >> at << at; n; n--)
                rest &= rest - 1;
        return bits ^ rest;
}

/* The same. In a new part these bits are neighbours. */
STOOK_INLINE uint64_t stook_lowest_bits(uint64_t bits, uint32_t n)
{
        uint64_t run = ((UINT64_C(1) << n) - 1) << __builtin_ctzll(bits);

        return STOOK_LIKELY((bits & run) == run) ? run : stook_lowest_scattered(bits, n);
}

/*
 * As many, the first ones in @order, which has the number of every set bit. The loop has no branch
 * on a bit: the processor would guess wrong half of the time.
 */
static STOOK_NOINLINE uint64_t stook_first_bits(const uint8_t *order, uint64_t bits, uint32_t n)
{
        uint64_t rest = bits;

        for (; n; order++) {
                n -= bits >> *order & 1;
                rest &= ~(UINT64_C(1) << *order);
        }
        return bits ^ rest;
}

#endif
