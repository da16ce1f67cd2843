/*
 * Purpose: what the library's own sections share, and the two of them that are inlined into it: pop and push. They
 * differ from those of <stook/section.h> in one thing: the slot index may be any field of the kernel's area.
 * Place: slot_fast.h, and the sections in arch/.
 * Invariants: those of <stook/section.h>. stook_self->rseq is not NULL only after the registration was proved, so
 *  `ready` may be read inside; the library is never unloaded, so rseq_cs is not cleared.
 */
#ifndef STOOK_SLOT_SECTION_H
#define STOOK_SLOT_SECTION_H

#include "base/compiler.h"
#include "slot/slot.h"

/*
 * The thread's line, by a pointer the compiler cannot see through. gcc 12 splits an asm goto that has an operand
 * in thread-local memory (%fs:...), and forgets its labels: the jumps are then to symbols that do not exist.
 */
STOOK_INLINE struct stook_thread_v1 *stook_slot_self(void)
{
        struct stook_thread_v1 *self = stook_self;

        __asm__("" : "+r"(self));
        return self;
}

STOOK_INLINE volatile uint32_t *stook_slot_index(const struct stook_thread_v1 *self)
{
        return (volatile uint32_t *)((uintptr_t)self + stook_sections.index);
}

#define STOOK_SECTION_INPUTS(self, area) \
        [rseq] "r"(area), [index] "m"(*stook_slot_index(self)), [ready] "m"((self)->ready)

/* NULL: empty, aborted, or not enrolled. @line: the cache's line in slot 0. */
STOOK_INLINE void *stook_section_pop(uintptr_t line)
{
        struct stook_thread_v1 *self = stook_slot_self();
        char *area = self->rseq;
        void *object;

        if (STOOK_UNLIKELY(!area))
                return NULL;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("object") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD
                STOOK_SECTION_POP_CHECK
                STOOK_SECTION_POP
                "2:\n\t"
                "5:\n\t"
                : [object] "=&r"(object)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line)
                : STOOK_SECTION_CLOBBERS);
        return object;
}

/* @object is not NULL. With size 0 the word compared for DOUBLE is the sheaf's header, which is no object. */
STOOK_INLINE enum stook_push stook_section_push(uintptr_t line, void *object)
{
        struct stook_thread_v1 *self = stook_slot_self();
        char *area = self->rseq;

        if (STOOK_UNLIKELY(!area))
                return STOOK_PUSH_MISS;
        __asm__ goto(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_GO("%l[miss]"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD
                STOOK_SECTION_PUSH_CHECK
                STOOK_SECTION_PUSH
                "2:\n\t"
                :
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line), [object] "r"(object)
                : STOOK_SECTION_CLOBBERS
                : miss, twice);
        return STOOK_PUSH_DONE;
miss:
        return STOOK_PUSH_MISS;
twice:
        return STOOK_PUSH_DOUBLE;
}

#endif
