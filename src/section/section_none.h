/*
 * Purpose: what stands for the sections on machines that Stook has none for (RISC-V), and with
 * STOOK_DYNAMIC_TLS: each is a miss, which the compiler sees. So hot paths go to the library's slow
 * calls at once, and these use the locked backend.
 * Place: section_hot.h and section_precharge.h, in place of what they have. No thread enrols there
 *  (os/rseq.c), so the table of section_rseq.c is never chosen.
 */
#ifndef STOOK_SECTION_NONE_H
#define STOOK_SECTION_NONE_H

#include "base/compiler.h"
#include "section/section.h"

STOOK_INLINE volatile uint32_t *stook_section_index(const struct stook_thread_v1 *self)
{
        return (volatile uint32_t *)((uintptr_t)self + stook_sections.index);
}

#define STOOK_SECTION_MISS(type, name, answer, ...) \
        STOOK_INLINE type stook_section_##name(__VA_ARGS__) \
        { \
                return answer; \
        }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

STOOK_SECTION_MISS(void *, pop, NULL, uintptr_t line)
STOOK_SECTION_MISS(void *, pop_v1, NULL, uintptr_t line)
STOOK_SECTION_MISS(enum stook_push, push, STOOK_PUSH_MISS, uintptr_t line, void *object)
STOOK_SECTION_MISS(enum stook_push, push_v1, STOOK_PUSH_MISS, uintptr_t line, void *object)
STOOK_SECTION_MISS(void *, pop_guessed_v1, NULL, uintptr_t line)
STOOK_SECTION_MISS(enum stook_push, push_guessed_v1, STOOK_PUSH_MISS, uintptr_t line, void *object)
STOOK_SECTION_MISS(size_t, pop_n, 0, uintptr_t line, size_t n, void **objects)
STOOK_SECTION_MISS(size_t, push_n, 0, uintptr_t line, size_t n, void *const *objects)
STOOK_SECTION_MISS(void *, pop_if, NULL, uintptr_t line, void *expected)
STOOK_SECTION_MISS(bool, rearm, false, uintptr_t line, struct stook_sheaf *main, uint64_t from,
                   uint64_t to)
STOOK_SECTION_MISS(bool, exchange, false, uintptr_t line, struct stook_pair expected,
                   struct stook_pair desired, unsigned size, const uint32_t *config,
                   uint32_t generation)
STOOK_SECTION_MISS(void *, rcu_push, NULL, uintptr_t line, void *object)
STOOK_SECTION_MISS(struct stook_sheaf *, rcu_fill, NULL, uintptr_t line, void *object)
STOOK_SECTION_MISS(bool, precharge_add, false, uintptr_t word, uint64_t tag, int64_t delta)
STOOK_SECTION_MISS(bool, precharge_add_v1, false, uintptr_t word, uint64_t tag, int64_t delta)
STOOK_SECTION_MISS(bool, precharge_set, false, uintptr_t word, uint64_t expected, uint64_t desired)
STOOK_SECTION_MISS(void *, charge_pop_v1, NULL, const uint32_t *offset, uintptr_t word,
                   uint64_t tag, const int64_t *delta)
STOOK_SECTION_MISS(enum stook_uncharged, uncharge_push_v1, STOOK_STILL_CHARGED,
                   const uint32_t *offset, uintptr_t word, uint64_t tag, const int64_t *delta,
                   void *object)

#pragma GCC diagnostic pop

#undef STOOK_SECTION_MISS

#endif
