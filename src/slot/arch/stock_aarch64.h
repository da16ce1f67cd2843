/*
 * Purpose: the two critical sections on a slot's stocks (slot/slot_stock.h) on aarch64.
 * Place: slot_rseq.c and slot_stock.h only.
 * Invariants: <stook/section.h>.
 */
#ifndef STOOK_STOCK_AARCH64_H
#define STOOK_STOCK_AARCH64_H

#include "slot/slot_section.h"
#include "base/compiler.h"

/* As in stock_x86_64.h. */
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
                "ldr x14, [x15, %[word]]\n\t"
                "sub x14, x14, %[tag]\n\t"
                "add x13, x14, %[delta]\n\t"
                "orr x14, x14, x13\n\t"
                "lsr x14, x14, #" STOOK_SECTION_TEXT(STOOK_STOCK_BITS) "\n\t"
                "cbnz x14, 4b\n\t"
                "add x13, x13, %[tag]\n\t"
                "str x13, [x15, %[word]]\n\t"
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
                "ldr x14, [x15, %[word]]\n\t"
                "cmp x14, %[expected]\n\t"
                "b.ne 4b\n\t"
                "str %[desired], [x15, %[word]]\n\t"
                "2:\n\t"
                "5:\n\t"
                : [done] "+&r"(done)
                : STOOK_SECTION_INPUTS(self, area), [word] "r"(word), [expected] "r"(expected), [desired] "r"(desired)
                : STOOK_SECTION_CLOBBERS);
        return done;
}

#endif
