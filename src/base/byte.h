/*
 * Purpose: a byte changed by a read-modify-write. RISC-V has such instructions for words only, and
 * gcc before 13 calls libatomic for bytes, which the library does without. There the word around
 * the byte is compared and swapped: a store to one of its other bytes makes that fail and try
 * again.
 * Concurrency: as the orders below say; elsewhere the compiler's own operation.
 */
#ifndef STOOK_BYTE_H
#define STOOK_BYTE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"

#if defined(__riscv)

STOOK_INLINE uint32_t *stook_word_around(uint8_t *byte, unsigned *shift)
{
        *shift = (unsigned)((uintptr_t)byte & 3) * 8;
        return (uint32_t *)((uintptr_t)byte & ~(uintptr_t)3);
}

#endif

/* Replaces *@byte by @desired if it equals @expected. Acquire-release; a refusal orders nothing. */
STOOK_INLINE bool stook_byte_cas(uint8_t *byte, uint8_t expected, uint8_t desired)
{
#if defined(__riscv)
        unsigned shift;
        uint32_t *word = stook_word_around(byte, &shift);
        uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED), new;

        do {
                if ((uint8_t)(old >> shift) != expected)
                        return false;
                new = (old & ~(UINT32_C(0xff) << shift)) | (uint32_t)desired << shift;
        } while (!__atomic_compare_exchange_n(word, &old, new, true, __ATOMIC_ACQ_REL,
                                              __ATOMIC_RELAXED));
        return true;
#else
        return __atomic_compare_exchange_n(byte, &expected, desired, false, __ATOMIC_ACQ_REL,
                                           __ATOMIC_RELAXED);
#endif
}

/* *@byte += @n, modulo 256. Relaxed. */
STOOK_INLINE void stook_byte_add(uint8_t *byte, uint8_t n)
{
#if defined(__riscv)
        unsigned shift;
        uint32_t *word = stook_word_around(byte, &shift);
        uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED), new;

        do {
                new = (old & ~(UINT32_C(0xff) << shift)) |
                      (uint32_t)(uint8_t)((old >> shift) + n) << shift;
        } while (!__atomic_compare_exchange_n(word, &old, new, true, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED));
#else
        __atomic_fetch_add(byte, n, __ATOMIC_RELAXED);
#endif
}

#endif
