/*
 * Purpose: what the library's own sections share, and the two of them that are inlined into it: pop
 * and push. They differ from the _v1 sections of <stook/section.h> in two things: the slot index
 * may be any field of the kernel's area, and that area is found by a pointer, stook_self->rseq. So
 * they test that pointer, and `ready` is read inside the section.
 * Place: slot/slot_hot.h for hot paths; section_rseq.c, and the sections of each machine.
 * Invariants: those of <stook/section.h>. stook_self->rseq is not NULL only after the registration
 *  was proved, so `ready` may be read inside. The library is never unloaded, so rseq_cs is not
 *  cleared.
 */
#ifndef STOOK_SECTION_HOT_H
#define STOOK_SECTION_HOT_H

#include "base/compiler.h"
#include "section/section.h"

#ifndef STOOK_SECTION_V1
#include "section/section_none.h"
#else

/*
 * The thread record, by a pointer that the compiler cannot see through. gcc 12 splits an asm goto
 * that has an operand in thread-local memory (%fs:...), and forgets its labels: the jumps then go
 * to symbols that do not exist.
 */
STOOK_INLINE struct stook_thread_v1 *stook_section_self(void)
{
        struct stook_thread_v1 *self = stook_self;

        __asm__("" : "+r"(self));
        return self;
}

STOOK_INLINE volatile uint32_t *stook_section_index(const struct stook_thread_v1 *self)
{
        return (volatile uint32_t *)((uintptr_t)self + stook_sections.index);
}

#define STOOK_SECTION_INPUTS(self, area) \
        [rseq] "r"(area), [index] "m"(*stook_section_index(self)), [ready] "m"((self)->ready)

/* NULL: empty, aborted, or not enrolled. @line: the cache's line in slot 0. */
STOOK_INLINE void *stook_section_pop(uintptr_t line)
{
        struct stook_thread_v1 *self = stook_section_self();
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

/*
 * @object is not NULL. With size 0 the word compared for DOUBLE is the sheaf's header, which is no
 * object.
 */
STOOK_INLINE enum stook_push stook_section_push(uintptr_t line, void *object)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;

        if (STOOK_UNLIKELY(!area))
                return STOOK_PUSH_MISS;
        __asm__ goto(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_GO("%l[miss]"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD_SIZE
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

#endif /* a machine with sections */
#endif
