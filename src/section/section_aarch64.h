/*
 * Purpose: the critical sections of the library on aarch64, besides pop and push of section_hot.h,
 * made of the pieces of <stook/section.h>. Nothing but sections is here; their contract and
 * pseudo-code stand in section.h.
 * Place: section_rseq.c, and section_precharge.h for the charge.
 * Invariants: <stook/section.h>. A section may be cut at any instruction. So what it wrote before
 *  its commit must lie where no thread looks: beyond the sheaf's size, or in the caller's array.
 */
#ifndef STOOK_SECTION_AARCH64_H
#define STOOK_SECTION_AARCH64_H

#include "base/pair.h"
#include "section/section_hot.h"

/* @n is not 0. Objects taken, the top one first. */
STOOK_INLINE size_t stook_section_pop_n(uintptr_t line, size_t n, void **objects)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t i;

        if (STOOK_UNLIKELY(!area))
                return 0;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("n") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD
                STOOK_SECTION_POP_CHECK
                "cmp x13, %[n]\n\t"                     /* n = min(n, size, pops to the mark) */
                "csel %[n], x13, %[n], lo\n\t"
                "ubfx x16, x15, #16, #16\n\t"
                "mov x17, #" STOOK_SECTION_TEXT(STOOK_SHEAF_MARK) " >> 16\n\t"
                "sub x16, x17, x16\n\t"
                "cmp x16, %[n]\n\t"
                "csel %[n], x16, %[n], lo\n\t"
                "add x16, x14, x13, lsl #3\n\t"
                "add x16, x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "\n\t"
                "mov %[i], #0\n\t"
                "6:\n\t"
                "ldr x17, [x16, #-8]!\n\t"
                "str x17, [%[objects], %[i], lsl #3]\n\t"
                "add %[i], %[i], #1\n\t"
                "cmp %[i], %[n]\n\t"
                "b.ne 6b\n\t"
                "add x15, x15, %[n], lsl #16\n\t"       /* n pops more, n objects less */
                "sub x15, x15, %[n]\n\t"
                "str x15, [x14]\n\t"
                "2:\n\t"
                "5:\n\t"
                : [n] "+&r"(n), [i] "=&r"(i)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line), [objects] "r"(objects)
                : STOOK_SECTION_CLOBBERS);
        return n;
}

/* x16 = the capacity; miss if there is no room. */
#ifndef STOOK_SECTION_ROOM
#define STOOK_SECTION_ROOM \
        "ldrh w16, [x14, #" STOOK_SECTION_TEXT(STOOK_SHEAF_CAPACITY) "]\n\t" \
        "cmp w13, w16\n\t" \
        "b.hs 4b\n\t"
#endif

/* @n is not 0. Objects put, objects[0] first. */
STOOK_INLINE size_t stook_section_push_n(uintptr_t line, size_t n, void *const *objects)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t i;

        if (STOOK_UNLIKELY(!area))
                return 0;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("n") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD_SIZE
                STOOK_SECTION_ROOM
                "sub x16, x16, x13\n\t"                 /* n = min(n, capacity - size) */
                "cmp x16, %[n]\n\t"
                "csel %[n], x16, %[n], lo\n\t"
                "add x16, x14, x13, lsl #3\n\t"
                "add x16, x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "\n\t"
                "mov %[i], #0\n\t"
                "6:\n\t"
                "ldr x17, [%[objects], %[i], lsl #3]\n\t"
                "str x17, [x16], #8\n\t"
                "add %[i], %[i], #1\n\t"
                "cmp %[i], %[n]\n\t"
                "b.ne 6b\n\t"
                "add x15, x15, %[n]\n\t"
                "str x15, [x14]\n\t"
                "2:\n\t"
                "5:\n\t"
                : [n] "+&r"(n), [i] "=&r"(i)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line), [objects] "r"(objects)
                : STOOK_SECTION_CLOBBERS);
        return n;
}

/* True: main's word, which was @from, is @to. False: nothing was done. */
STOOK_INLINE bool stook_section_rearm(uintptr_t line, struct stook_sheaf *main, uint64_t from,
                                      uint64_t to)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t done = 1;

        if (STOOK_UNLIKELY(!area))
                return false;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("done") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                "ldr x14, [x15, %[line]]\n\t"
                "cmp x14, %[main]\n\t"
                "b.ne 4b\n\t"
                "ldr x15, [%[main]]\n\t"
                "cmp x15, %[from]\n\t"
                "b.ne 4b\n\t"
                "str %[to], [%[main]]\n\t"
                "2:\n\t"
                "5:\n\t"
                : [done] "+&r"(done)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line), [main] "r"(main),
                  [from] "r"(from), [to] "r"(to)
                : STOOK_SECTION_CLOBBERS);
        return done;
}

/* NULL: the top object is not @expected, or as pop; but a mark is passed: it is no allocation. */
STOOK_INLINE void *stook_section_pop_if(uintptr_t line, void *expected)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;

        if (STOOK_UNLIKELY(!area))
                return NULL;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("expected") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD_SIZE
                "cbz x13, 4b\n\t"
                "add x16, x14, x13, lsl #3\n\t"
                "ldr x17, [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) " - 8]\n\t"
                "cmp x17, %[expected]\n\t"
                "b.ne 4b\n\t"
                "add x15, x15, #16, lsl #12\n\t"
                "sub x15, x15, #1\n\t"
                "str x15, [x14]\n\t"
                "2:\n\t"
                "5:\n\t"
                : [expected] "+&r"(expected)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line)
                : STOOK_SECTION_CLOBBERS);
        return expected;
}

/* See the x86-64 version for why main's identity needs no look of its own. */
#ifndef STOOK_SECTION_EXCHANGE_CHECK
#define STOOK_SECTION_EXCHANGE_CHECK \
        "ldrh w16, [%[from_lo]]\n\t" \
        "cmp w16, %w[size]\n\t" \
        "b.ne 4b\n\t"
#endif
STOOK_INLINE bool stook_section_exchange(uintptr_t line, struct stook_pair expected,
                                         struct stook_pair desired, unsigned size,
                                         const uint32_t *config, uint32_t generation)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint32_t failed;

        if (STOOK_UNLIKELY(!area))
                return false;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE("mov %w[failed], #1\n\t" STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                "add x15, x15, %[line]\n\t"
                "ldr w16, [%[config]]\n\t"
                "cmp w16, %w[generation]\n\t"
                "b.ne 4b\n\t"
                STOOK_SECTION_EXCHANGE_CHECK
                "ldaxp x16, x17, [x15]\n\t"
                "cmp x16, %[from_lo]\n\t"
                "ccmp x17, %[from_hi], #0, eq\n\t"
                "b.ne 4b\n\t"
                "stlxp %w[failed], %[to_lo], %[to_hi], [x15]\n\t"
                "2:\n\t"
                "5:\n\t"
                : [failed] "=&r"(failed)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line), [size] "r"(size),
                  [config] "r"(config), [generation] "r"(generation),
                  [from_lo] "r"(expected.lo), [from_hi] "r"(expected.hi),
                  [to_lo] "r"(desired.lo), [to_hi] "r"(desired.hi)
                : STOOK_SECTION_CLOBBERS);
        return !failed;
}

/*
 * See section.h. The answer is in `object` where the section ends: its own value, NULL, or
 * STOOK_RCU_LAST.
 */
STOOK_INLINE void *stook_section_rcu_push(uintptr_t line, void *object)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;

        if (STOOK_UNLIKELY(!area))
                return NULL;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("object") STOOK_SECTION_GO("5f")
                                       "\n\t6: mov %[object], #1\n\t" STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                "add x15, x15, %[line]\n\t"
                "ldr x14, [x15, #" STOOK_SECTION_TEXT(STOOK_LINE_RCU) "]\n\t"
                "cbz x14, 4b\n\t"
                "ldr x15, [x14]\n\t"
                "and x13, x15, #0xffff\n\t"
                "add x13, x13, #1\n\t"
                "ldrh w16, [x14, #" STOOK_SECTION_TEXT(STOOK_SHEAF_CAPACITY) "]\n\t"
                "cmp w13, w16\n\t"
                "b.hs 6b\n\t"
                "add x16, x14, x13, lsl #3\n\t"
                "str %[object], [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) " - 8]\n\t"
                "add x15, x15, #1\n\t"
                "str x15, [x14]\n\t"
                "2:\n\t"
                "5:\n\t"
                : [object] "+&r"(object)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line)
                : STOOK_SECTION_CLOBBERS);
        return object;
}

/*
 * An evacuation may have taken the sheaf since it was loaded; it cannot have come back, for a
 * thread that opened it here again would have run on this slot. No store between the two exclusive
 * accesses.
 */
STOOK_INLINE struct stook_sheaf *stook_section_rcu_fill(uintptr_t line, void *object)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        struct stook_sheaf *sheaf;
        uint32_t failed;

        if (STOOK_UNLIKELY(!area))
                return NULL;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE("mov %w[failed], #1\n\t" STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                "add x15, x15, %[line]\n\t"
                "add x15, x15, #" STOOK_SECTION_TEXT(STOOK_LINE_RCU) "\n\t"
                "ldr %[sheaf], [x15]\n\t"
                "cbz %[sheaf], 4b\n\t"
                "ldrh w13, [%[sheaf]]\n\t"
                "add w13, w13, #1\n\t"
                "ldrh w16, [%[sheaf], #" STOOK_SECTION_TEXT(STOOK_SHEAF_CAPACITY) "]\n\t"
                "cmp w13, w16\n\t"
                "b.ne 4b\n\t"
                "add x16, %[sheaf], x13, lsl #3\n\t"
                "str %[object], [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) " - 8]\n\t"
                "ldaxr x16, [x15]\n\t"
                "cmp x16, %[sheaf]\n\t"
                "b.ne 4b\n\t"
                "stlxr %w[failed], xzr, [x15]\n\t"
                "2:\n\t"
                "5:\n\t"
                : [sheaf] "=&r"(sheaf), [failed] "=&r"(failed)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line), [object] "r"(object)
                : STOOK_SECTION_CLOBBERS);
        return failed ? NULL : sheaf;
}

/* As in section_x86_64.h. */
#define STOOK_SECTION_PRECHARGE_ADD \
        "ldr x14, [x15, %[word]]\n\t" \
        "add x13, x14, %[delta]\n\t" \
        "eor x14, x13, %[tag]\n\t" \
        "lsr x14, x14, #" STOOK_SECTION_TEXT(STOOK_PRECHARGE_BITS) "\n\t" \
        "cbnz x14, 4b\n\t" \
        "str x13, [x15, %[word]]\n\t"

STOOK_INLINE bool stook_section_precharge_set(uintptr_t word, uint64_t expected, uint64_t desired)
{
        struct stook_thread_v1 *self = stook_section_self();
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
                : STOOK_SECTION_INPUTS(self, area), [word] "r"(word), [expected] "r"(expected),
                  [desired] "r"(desired)
                : STOOK_SECTION_CLOBBERS);
        return done;
}

#endif
