/*
 * Purpose: the charge of an object to a group, inlined: precharge_add of section.h as a restartable
 * sequence.
 * Place: group/precharge.h, for charges and uncharges; section_rseq.c. The instructions are in
 * section_x86_64.h and section_aarch64.h.
 * Invariants: <stook/section.h>.
 */
#ifndef STOOK_SECTION_PRECHARGE_H
#define STOOK_SECTION_PRECHARGE_H

#include "section/section_hot.h"

/* What charge_pop answers if the bytes are charged, and the pop missed. */
#define STOOK_CHARGED_ONLY ((void *)1)

#ifdef STOOK_SECTION_V1
#if defined(__x86_64__)
#include "section/section_x86_64.h"
#else
#include "section/section_aarch64.h"
#endif

#ifndef STOOK_SECTION_GUESSES           /* a machine's own: it guesses the top object */
STOOK_INLINE void *stook_section_pop_guessed_v1(uintptr_t line)
{
        return stook_section_pop_v1(line);
}

STOOK_INLINE enum stook_push stook_section_push_guessed_v1(uintptr_t line, void *object)
{
        return stook_section_push_v1(line, object);
}
#endif

/* @word: its address in slot 0. False: a miss; in a thread that is not enrolled always. */
STOOK_INLINE bool stook_section_precharge_add(uintptr_t word, uint64_t tag, int64_t delta)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;

        if (STOOK_UNLIKELY(!area))
                return false;
        __asm__ goto(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_GO("%l[miss]"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_PRECHARGE_ADD
                "2:\n\t"
                :
                : STOOK_SECTION_INPUTS(self, area), [word] "r"(word), [tag] "r"(tag),
                  [delta] "r"(delta)
                : STOOK_SECTION_CLOBBERS
                : miss);
        return true;
miss:
        return false;
}

/* The same where the slot index is the concurrency id, as in <stook/section.h>; else a miss. */
STOOK_INLINE bool stook_section_precharge_add_v1(uintptr_t word, uint64_t tag, int64_t delta)
{
        __asm__ goto(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_GO("%l[miss]"))
                STOOK_SECTION_BEGIN
                STOOK_SECTION_PRECHARGE_ADD
                "2:\n\t"
                :
                : [self] "r"(stook_section_self_v1()), [area] "r"(STOOK_SECTION_AREA),
                  [word] "r"(word), [tag] "r"(tag), [delta] "r"(delta)
                : STOOK_SECTION_CLOBBERS
                : miss);
        return true;
miss:
        return false;
}

/*
 * Charge, then pop, where the slot index is the concurrency id: what an accounted cache does with
 * each object. @offset: of the line of its sheaves, in slot 0; @delta: bytes. NULL: nothing
 * changed. STOOK_CHARGED_ONLY: the bytes are charged, and the pop missed.
 */
#ifndef STOOK_SECTION_CHARGED
STOOK_INLINE void *stook_section_charge_pop_v1(const uint32_t *offset, uintptr_t word, uint64_t tag,
                                               const int64_t *delta)
{
        void *object;

        if (STOOK_UNLIKELY(!stook_section_precharge_add_v1(word, tag, -*delta)))
                return NULL;
        object = stook_section_pop_v1((uintptr_t)stook_sections.slots + *offset);
        return STOOK_LIKELY(object != NULL) ? object : STOOK_CHARGED_ONLY;
}

/* Uncharge, then push. */
STOOK_INLINE enum stook_uncharged stook_section_uncharge_push_v1(const uint32_t *offset,
                                                                 uintptr_t word, uint64_t tag,
                                                                 const int64_t *delta, void *object)
{
        uintptr_t line = (uintptr_t)stook_sections.slots + *offset;

        if (STOOK_UNLIKELY(!stook_section_precharge_add_v1(word, tag, *delta)))
                return STOOK_STILL_CHARGED;
        return STOOK_LIKELY(stook_section_push_v1(line, object) == STOOK_PUSH_DONE) ?
                STOOK_UNCHARGED_PUSHED : STOOK_UNCHARGED;
}
#endif
#endif /* a machine with sections; else section_none.h */

#endif
