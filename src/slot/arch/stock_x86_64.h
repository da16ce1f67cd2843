/*
 * Purpose: the two critical sections on a slot's stocks (slot/slot_stock.h) on x86-64.
 * Place: slot_rseq.c and slot_stock.h only.
 * Invariants: <stook/section.h>.
 */
#ifndef STOOK_STOCK_X86_64_H
#define STOOK_STOCK_X86_64_H

#include "slot/slot_section.h"
#include "base/compiler.h"

/*
 * u = *word - tag, u + delta: neither has a bit outside STOOK_STOCK_BITS, or it is not this tag's word, or it has not
 * enough, or too much.
 */
STOOK_INLINE bool stook_section_stock_add(uintptr_t word, uint64_t tag, int64_t delta)
{
        struct stook_thread_v1 *self = stook_slot_self();
        char *area = self->rseq;
        uint64_t done = 1;

        if (STOOK_UNLIKELY(!area))
                return false;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("done") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                "movq (%%r10,%[word]), %%r11\n\t"
                "subq %[tag], %%r11\n\t"
                "leaq (%%r11,%[delta]), %%r9\n\t"
                "orq %%r9, %%r11\n\t"
                "shrq $" STOOK_SECTION_TEXT(STOOK_STOCK_BITS) ", %%r11\n\t"
                "jnz 4b\n\t"
                "addq %[tag], %%r9\n\t"
                "movq %%r9, (%%r10,%[word])\n\t"
                "2:\n\t"
                "5:\n\t"
                : [done] "+&r"(done)
                : STOOK_SECTION_INPUTS(self, area), [word] "r"(word), [tag] "r"(tag), [delta] "r"(delta)
                : STOOK_SECTION_CLOBBERS);
        return done;
}

STOOK_INLINE bool stook_section_stock_set(uintptr_t word, uint64_t expected, uint64_t desired)
{
        struct stook_thread_v1 *self = stook_slot_self();
        char *area = self->rseq;
        uint64_t done = 1;

        if (STOOK_UNLIKELY(!area))
                return false;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("done") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                "cmpq %[expected], (%%r10,%[word])\n\t"
                "jne 4b\n\t"
                "movq %[desired], (%%r10,%[word])\n\t"
                "2:\n\t"
                "5:\n\t"
                : [done] "+&r"(done)
                : STOOK_SECTION_INPUTS(self, area), [word] "r"(word), [expected] "r"(expected), [desired] "r"(desired)
                : STOOK_SECTION_CLOBBERS);
        return done;
}

#endif
