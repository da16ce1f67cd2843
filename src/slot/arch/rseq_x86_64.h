/*
 * Purpose: the critical sections of slot_rseq.c on x86-64, besides pop and push of <stook/section.h>, whose
 * pieces they are made of. Nothing but sections here; their contract and pseudo-code stand in slot/slot.h.
 * Place: slot_rseq.c only.
 * Invariants: <stook/section.h>. A section may be cut at any instruction, so what it
 *  wrote before its commit must lie where nobody looks: beyond the sheaf's size, or in the caller's array.
 */
#ifndef STOOK_RSEQ_X86_64_H
#define STOOK_RSEQ_X86_64_H

#include <stook/section.h>
#include "base/compiler.h"
#include "base/pair.h"

/* @n is not 0. Objects taken, the top one first. */
STOOK_INLINE size_t stook_section_pop_n(uint32_t offset, size_t n, void **objects)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t t, main, size, i, object;

        if (STOOK_UNLIKELY(!area))
                return 0;
        __asm__ volatile goto(
                STOOK_SECTION_DESCRIBE("miss")
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD
                STOOK_SECTION_POP_CHECK
                "cmpq %[n], %[size]\n\t"                /* n = min(n, size) */
                "cmovbq %[size], %[n]\n\t"
                "xorl %k[i], %k[i]\n\t"
                "6:\n\t"
                "movq " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-8(%[main],%[size],8), %[object]\n\t"
                "movq %[object], (%[objects],%[i],8)\n\t"
                "decq %[size]\n\t"
                "incq %[i]\n\t"
                "cmpq %[n], %[i]\n\t"
                "jne 6b\n\t"
                "shlq $16, %[i]\n\t"                    /* n pops more, n objects less */
                "subq %[n], %[i]\n\t"
                "addq %[i], %[t]\n\t"
                "movq %[t], (%[main])\n\t"
                "2:\n\t"
                : [n] "+&r"(n), [t] "=&r"(t), [main] "=&r"(main), [size] "=&r"(size), [i] "=&r"(i),
                  [object] "=&r"(object)
                : STOOK_SECTION_INPUTS(self, area), [offset] "r"((uint64_t)offset), [objects] "r"(objects)
                : STOOK_SECTION_CLOBBERS
                : miss);
        return n;
miss:
        return 0;
}

/* @n is not 0. Objects put, objects[0] first. */
STOOK_INLINE size_t stook_section_push_n(uint32_t offset, size_t n, void *const *objects)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t t, main, size, i, object;

        if (STOOK_UNLIKELY(!area))
                return 0;
        __asm__ volatile goto(
                STOOK_SECTION_DESCRIBE("miss")
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD
                STOOK_SECTION_PUSH_CHECK
                "movl " STOOK_SECTION_TEXT(STOOK_SHEAF_CAPACITY) "(%[main]), %k[i]\n\t"
                "subq %[size], %[i]\n\t"                /* n = min(n, capacity - size) */
                "cmpq %[n], %[i]\n\t"
                "cmovbq %[i], %[n]\n\t"
                "xorl %k[i], %k[i]\n\t"
                "6:\n\t"
                "movq (%[objects],%[i],8), %[object]\n\t"
                "movq %[object], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "(%[main],%[size],8)\n\t"
                "incq %[size]\n\t"
                "incq %[i]\n\t"
                "cmpq %[n], %[i]\n\t"
                "jne 6b\n\t"
                "addq %[n], %[t]\n\t"
                "movq %[t], (%[main])\n\t"
                "2:\n\t"
                : [n] "+&r"(n), [t] "=&r"(t), [main] "=&r"(main), [size] "=&r"(size), [i] "=&r"(i),
                  [object] "=&r"(object)
                : STOOK_SECTION_INPUTS(self, area), [offset] "r"((uint64_t)offset), [objects] "r"(objects)
                : STOOK_SECTION_CLOBBERS
                : miss);
        return n;
miss:
        return 0;
}

/* NULL: as pop, or the top object is not @expected. */
STOOK_INLINE void *stook_section_pop_if(uint32_t offset, void *expected)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t t, main, size;

        if (STOOK_UNLIKELY(!area))
                return NULL;
        __asm__ volatile goto(
                STOOK_SECTION_DESCRIBE("miss")
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD
                STOOK_SECTION_POP_CHECK
                "cmpq %[expected], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-8(%[main],%[size],8)\n\t"
                "jne %l[miss]\n\t"
                "addq $" STOOK_SECTION_TEXT(STOOK_SHEAF_POP) ", %[t]\n\t"
                "movq %[t], (%[main])\n\t"
                "2:\n\t"
                : [t] "=&r"(t), [main] "=&r"(main), [size] "=&r"(size)
                : STOOK_SECTION_INPUTS(self, area), [offset] "r"((uint64_t)offset), [expected] "r"(expected)
                : STOOK_SECTION_CLOBBERS
                : miss);
        return expected;
miss:
        return NULL;
}

/*
 * The commit is the compare-and-swap itself. That main is expected.lo all along follows from its success: on
 * this slot nobody else runs, and a drainer only ever puts the zero-capacity sheaf there.
 */
#ifndef STOOK_SECTION_EXCHANGE_CHECK
#define STOOK_SECTION_EXCHANGE_CHECK \
        "cmpw %w[size], (%%rax)\n\t" \
        "jne %l[miss]\n\t"
#endif
STOOK_INLINE bool stook_section_exchange(uint32_t offset, struct stook_pair expected, struct stook_pair desired,
                                         unsigned size, const uint32_t *config, uint32_t generation)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t t, from_lo = expected.lo, from_hi = expected.hi;

        if (STOOK_UNLIKELY(!area))
                return false;
        __asm__ volatile goto(
                STOOK_SECTION_DESCRIBE("miss")
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                "cmpl %[generation], (%[config])\n\t"
                "jne %l[miss]\n\t"
                STOOK_SECTION_EXCHANGE_CHECK
                "lock cmpxchg16b (%[t],%[offset])\n\t"
                "2:\n\t"
                "jne %l[miss]\n\t"
                : [t] "=&r"(t), "+a"(from_lo), "+d"(from_hi)
                : STOOK_SECTION_INPUTS(self, area), [offset] "r"((uint64_t)offset), [size] "r"(size),
                  [config] "r"(config), [generation] "r"(generation), "b"(desired.lo), "c"(desired.hi)
                : STOOK_SECTION_CLOBBERS
                : miss);
        return true;
miss:
        return false;
}

#endif
