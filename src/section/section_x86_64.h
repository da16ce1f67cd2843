/*
 * Purpose: the critical sections of the library on x86-64, besides pop and push of section_hot.h,
 * made of the pieces of <stook/section.h>. Nothing but sections is here; their contract and
 * pseudo-code stand in section.h.
 * Place: section_rseq.c, and section_precharge.h for the charge.
 * Invariants: <stook/section.h>. A section may be cut at any instruction. So what it wrote before
 *  its commit must do no harm: it lies beyond the sheaf's size, or in the caller's array, or it is
 *  the line's guess, which every pop that asks it compares with the real top object.
 */
#ifndef STOOK_SECTION_X86_64_H
#define STOOK_SECTION_X86_64_H

#include "base/pair.h"
#include "section/section_hot.h"

/* @n is not 0. Objects taken, the top one first. */
STOOK_INLINE size_t stook_section_pop_n(uintptr_t line, size_t n, void **objects)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t i, object;

        if (STOOK_UNLIKELY(!area))
                return 0;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("n") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD
                STOOK_SECTION_POP_CHECK
                "cmpq %[n], %%r11\n\t"                  /* n = min(n, size, pops to the mark) */
                "cmovbq %%r11, %[n]\n\t"
                "movl %%r10d, %k[i]\n\t"
                "shrl $16, %k[i]\n\t"
                "negl %k[i]\n\t"
                "addl $" STOOK_SECTION_TEXT(STOOK_SHEAF_MARK) " >> 16, %k[i]\n\t"
                "cmpq %[n], %[i]\n\t"
                "cmovbq %[i], %[n]\n\t"
                "leaq " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "(%%r9,%%r11,8), %%r11\n\t"
                "xorl %k[i], %k[i]\n\t"
                "movl %k[n], %k[object]\n\t"
                "andl $-2, %k[object]\n\t"            /* those that go in twos */
                "jz 7f\n\t"
                "6:\n\t"
                "movups -16(%%r11), %%xmm0\n\t"
                "pshufd $0x4e, %%xmm0, %%xmm0\n\t"
                "movups %%xmm0, (%[objects],%[i],8)\n\t"
                "subq $16, %%r11\n\t"
                "addq $2, %[i]\n\t"
                "cmpq %[object], %[i]\n\t"
                "jne 6b\n\t"
                "7:\n\t"
                "cmpq %[n], %[i]\n\t"
                "je 8f\n\t"
                "movq -8(%%r11), %[object]\n\t"
                "movq %[object], (%[objects],%[i],8)\n\t"
                "movl %k[n], %k[i]\n\t"
                "8:\n\t"
                "shlq $16, %[i]\n\t"                    /* n pops more, n objects less */
                "subq %[n], %[i]\n\t"
                "addq %[i], %%r10\n\t"
                "movq %%r10, (%%r9)\n\t"
                "2:\n\t"
                "5:\n\t"
                : [n] "+&r"(n), [i] "=&r"(i), [object] "=&r"(object)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line), [objects] "r"(objects)
                : STOOK_SECTION_CLOBBERS, "xmm0");
        return n;
}

/* i = the capacity; miss if there is no room. */
#ifndef STOOK_SECTION_ROOM
#define STOOK_SECTION_ROOM \
        "movzwl " STOOK_SECTION_TEXT(STOOK_SHEAF_CAPACITY) "(%%r9), %k[i]\n\t" \
        "cmpl %k[i], %%r11d\n\t" \
        "jae 4b\n\t"
#endif

/* @n is not 0. Objects put, objects[0] first. */
STOOK_INLINE size_t stook_section_push_n(uintptr_t line, size_t n, void *const *objects)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t i, object;

        if (STOOK_UNLIKELY(!area))
                return 0;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("n") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD_SIZE
                STOOK_SECTION_ROOM
                "subq %%r11, %[i]\n\t"                  /* n = min(n, capacity - size) */
                "cmpq %[n], %[i]\n\t"
                "cmovbq %[i], %[n]\n\t"
                "leaq " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "(%%r9,%%r11,8), %%r11\n\t"
                "xorl %k[i], %k[i]\n\t"
                "movl %k[n], %k[object]\n\t"
                "andl $-2, %k[object]\n\t"            /* those that go in twos */
                "jz 7f\n\t"
                "6:\n\t"
                "movups (%[objects],%[i],8), %%xmm0\n\t"
                "movups %%xmm0, (%%r11,%[i],8)\n\t"
                "addq $2, %[i]\n\t"
                "cmpq %[object], %[i]\n\t"
                "jne 6b\n\t"
                "7:\n\t"
                "cmpq %[n], %[i]\n\t"
                "je 8f\n\t"
                "movq (%[objects],%[i],8), %[object]\n\t"
                "movq %[object], (%%r11,%[i],8)\n\t"
                "8:\n\t"
                "addq %[n], %%r10\n\t"
                "movq %%r10, (%%r9)\n\t"
                "2:\n\t"
                "5:\n\t"
                : [n] "+&r"(n), [i] "=&r"(i), [object] "=&r"(object)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line), [objects] "r"(objects)
                : STOOK_SECTION_CLOBBERS, "xmm0");
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
                "cmpq %[main], (%%r10,%[line])\n\t"
                "jne 4b\n\t"
                "cmpq %[from], (%[main])\n\t"
                "jne 4b\n\t"
                "movq %[to], (%[main])\n\t"
                "2:\n\t"
                "5:\n\t"
                : [done] "+&r"(done)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line), [main] "r"(main),
                  [from] "r"(from), [to] "r"(to)
                : "r10", "memory", "cc");
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
                "testl %%r11d, %%r11d\n\t"
                "jz 4b\n\t"
                "cmpq %[expected], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-8(%%r9,%%r11,8)\n\t"
                "jne 4b\n\t"
                "addq $" STOOK_SECTION_TEXT(STOOK_SHEAF_POP) ", %%r10\n\t"
                "movq %%r10, (%%r9)\n\t"
                "2:\n\t"
                "5:\n\t"
                : [expected] "+&r"(expected)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line)
                : STOOK_SECTION_CLOBBERS);
        return expected;
}

/*
 * The commit is the compare-and-swap itself. That main is expected.lo all along follows from its
 * success: on this slot no other thread runs, and an evacuation only ever puts the zero-capacity
 * sheaf there.
 */
#ifndef STOOK_SECTION_EXCHANGE_CHECK
#define STOOK_SECTION_EXCHANGE_CHECK \
        "cmpw %w[size], (%%rax)\n\t" \
        "jne 4b\n\t"
#endif
STOOK_INLINE bool stook_section_exchange(uintptr_t line, struct stook_pair expected,
                                         struct stook_pair desired, unsigned size,
                                         const uint32_t *config, uint32_t generation)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t from_lo = expected.lo, from_hi = expected.hi;

        if (STOOK_UNLIKELY(!area))
                return false;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("size") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                "cmpl %[generation], (%[config])\n\t"
                "jne 4b\n\t"
                STOOK_SECTION_EXCHANGE_CHECK
                "lock cmpxchg16b (%%r10,%[line])\n\t"
                "2:\n\t"
                "sete %b[size]\n\t"
                "movzbl %b[size], %k[size]\n\t"
                "5:\n\t"
                : "+a"(from_lo), "+d"(from_hi), [size] "+&r"(size)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line),
                  [config] "r"(config), [generation] "r"(generation), "b"(desired.lo),
                  "c"(desired.hi)
                : "r10", "memory", "cc"); /* no others: without optimisation registers are short */
        return size;
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
                                       "\n\t6: movl $1, %k[object]\n\t" STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                "movq " STOOK_SECTION_TEXT(STOOK_LINE_RCU) "(%%r10,%[line]), %%r9\n\t"
                "testq %%r9, %%r9\n\t"
                "jz 4b\n\t"
                "movq (%%r9), %%r10\n\t"
                "movzwl %%r10w, %%r11d\n\t"
                "incl %%r11d\n\t"
                "cmpw " STOOK_SECTION_TEXT(STOOK_SHEAF_CAPACITY) "(%%r9), %%r11w\n\t"
                "jae 6b\n\t"
                "movq %[object], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-8(%%r9,%%r11,8)\n\t"
                "incq %%r10\n\t"
                "movq %%r10, (%%r9)\n\t"
                "2:\n\t"
                "5:\n\t"
                : [object] "+&r"(object)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line)
                : STOOK_SECTION_CLOBBERS);
        return object;
}

/*
 * The compare-and-swap is locked: an evacuation may have taken the sheaf since it was loaded. It
 * cannot have come back, for a thread that opened it here again would have run on this slot.
 */
STOOK_INLINE struct stook_sheaf *stook_section_rcu_fill(uintptr_t line, void *object)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        struct stook_sheaf *sheaf;

        if (STOOK_UNLIKELY(!area))
                return NULL;
        __asm__ volatile(
                STOOK_SECTION_DESCRIBE("xorl %%eax, %%eax\n\t" STOOK_SECTION_GO("5f"))
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                "leaq " STOOK_SECTION_TEXT(STOOK_LINE_RCU) "(%%r10,%[line]), %%r10\n\t"
                "movq (%%r10), %%rax\n\t"
                "testq %%rax, %%rax\n\t"
                "jz 4b\n\t"
                "movzwl (%%rax), %%r11d\n\t"
                "incl %%r11d\n\t"
                "cmpw " STOOK_SECTION_TEXT(STOOK_SHEAF_CAPACITY) "(%%rax), %%r11w\n\t"
                "jne 4b\n\t"
                "movq %[object], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-8(%%rax,%%r11,8)\n\t"
                "xorl %%r9d, %%r9d\n\t"
                "lock cmpxchgq %%r9, (%%r10)\n\t"
                "2:\n\t"
                "cmovneq %%r9, %%rax\n\t"
                "5:\n\t"
                : "=&a"(sheaf)
                : STOOK_SECTION_INPUTS(self, area), [line] "r"(line), [object] "r"(object)
                : STOOK_SECTION_CLOBBERS);
        return sheaf;
}

/*
 * w = *word, v = w + delta, or - for "subq". From STOOK_PRECHARGE_BITS up v must be as the tag. So
 * must w be then: there the bits below the id are 0 in every word, and a delta is below 2^31. A
 * carry out of the lower bits would leave one of them set.
 */
#ifndef STOOK_SECTION_PRECHARGE         /* tests break it */
#define STOOK_SECTION_PRECHARGE(by) \
        "movq (%%r10,%[word]), %%r9\n\t" \
        by " %[delta], %%r9\n\t" \
        "movq %%r9, %%r11\n\t" \
        "xorq %[tag], %%r11\n\t" \
        "shrq $" STOOK_SECTION_TEXT(STOOK_PRECHARGE_BITS) ", %%r11\n\t" \
        "jnz 4b\n\t" \
        "movq %%r9, (%%r10,%[word])\n\t"
#endif
#define STOOK_SECTION_PRECHARGE_ADD STOOK_SECTION_PRECHARGE("addq")

/*
 * ---- with a guess of the top object ----
 *
 * The pop returns the line's guess, and compares the top with it, as the drop-in's does
 * (dropin/hot_x86_64.h, TAKE). What its caller stores into the object waits for one load then, and
 * the next section's loads wait for the address of that store. Where the guess is wrong, a section
 * behind it pops without it. r10 is the line; main and its size are where STOOK_SECTION_LOAD has
 * them. Main's word is in a register, or is changed in memory by the commit where registers are
 * short. That takes up to two cycles more.
 */
#define STOOK_SECTION_GUESSES 1
#define STOOK_SECTION_OWN [self] "r"(stook_section_self_v1()), [area] "r"(STOOK_SECTION_AREA)
/*
 * Behind another section of the same call, which proved that the thread has enrolled: `ready` is
 * read inside.
 */
#define STOOK_SECTION_BEGIN_AGAIN \
        STOOK_SECTION_BEGIN_INDEX \
        STOOK_SECTION_BEGIN_SLOT(STOOK_SECTION_OF_RECORD(STOOK_THREAD_READY))
#define STOOK_SECTION_LOAD_LINE(line) \
        line \
        "movq (%%r10), %%r9\n\t"
#define STOOK_SECTION_SIZE_OF_MAIN "movzwl (%%r9), %%r11d\n\t"
/* What a pop looks at; the size is in r11. */
#define STOOK_SECTION_POP_CHECK_OF_MAIN \
        "movl (%%r9), %%r11d\n\t" \
        STOOK_SECTION_POPPABLE("%%r11d") \
        "movzwl %%r11w, %%r11d\n\t"
#define STOOK_SECTION_WORD_OF_MAIN(word, low) \
        "movq (%%r9), " word "\n\t" \
        "movzwl " low ", %%r11d\n\t"
#define STOOK_SECTION_GUESS STOOK_SECTION_TEXT(STOOK_LINE_GUESS) "(%%r10)"
#define STOOK_SECTION_TOP STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-8(%%r9,%%r11,8)"
#define STOOK_SECTION_BELOW_TOP STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-16(%%r9,%%r11,8)"
#define STOOK_SECTION_POP_IN_MEMORY "addq $" STOOK_SECTION_TEXT(STOOK_SHEAF_POP) ", (%%r9)\n\t"
#define STOOK_SECTION_POP_GUESSED \
        "movq " STOOK_SECTION_GUESS ", %[object]\n\t" \
        "cmpq " STOOK_SECTION_TOP ", %[object]\n\t" \
        "jne 6f\n\t" \
        "movq " STOOK_SECTION_BELOW_TOP ", %%r11\n\t" \
        "movq %%r11, " STOOK_SECTION_GUESS "\n\t"
#define STOOK_SECTION_POP_UNGUESSED \
        "movq " STOOK_SECTION_BELOW_TOP ", %[object]\n\t" \
        "movq %[object], " STOOK_SECTION_GUESS "\n\t" \
        "movq " STOOK_SECTION_TOP ", %[object]\n\t" \
        STOOK_SECTION_POP_IN_MEMORY
#define STOOK_SECTION_PUSH_GUESSED \
        "cmpq %[object], " STOOK_SECTION_TOP "\n\t" \
        "je %l[twice]\n\t" \
        "movq %[object], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "(%%r9,%%r11,8)\n\t" \
        "movq %[object], " STOOK_SECTION_GUESS "\n\t"
/*
 * Both sections of a pop, up to label 5. @begin: how the first one begins. @line adds the line in
 * slot 0 to r10. @check and @commit: of main's word. @on_miss says what the answer is then. The
 * zero flag is set after a miss whose answer is NULL, and after no pop.
 */
#define STOOK_SECTION_POP_BY_GUESS(begin, line, check, commit, on_miss) \
        STOOK_SECTION_DESCRIBE(on_miss STOOK_SECTION_GO("5f")) \
        begin \
        STOOK_SECTION_LOAD_LINE(line) \
        check \
        STOOK_SECTION_POP_GUESSED \
        commit \
        "2:\n\t" \
        ".pushsection .text.unlikely, \"ax?\"\n\t" \
        "6:\n\t" \
        STOOK_SECTION_DESCRIBE(on_miss STOOK_SECTION_GO("5f")) \
        STOOK_SECTION_BEGIN \
        STOOK_SECTION_LOAD_LINE(line) \
        STOOK_SECTION_POP_CHECK_OF_MAIN \
        STOOK_SECTION_POP_UNGUESSED \
        "2:\n\t" \
        "jmp 5f\n\t" \
        ".popsection\n\t" \
        "5:\n\t"

/* stook_section_pop_v1 with a guess. */
STOOK_INLINE void *stook_section_pop_guessed_v1(uintptr_t line)
{
        void *object;
        uint64_t word;
        int done;

        __asm__ volatile(
                STOOK_SECTION_POP_BY_GUESS(STOOK_SECTION_BEGIN,
                                           "addq %[line], %%r10\n\t",
                                           STOOK_SECTION_WORD_OF_MAIN("%[word]", "%w[word]")
                                           STOOK_SECTION_POPPABLE("%k[word]"),
                                           "addq $" STOOK_SECTION_TEXT(STOOK_SHEAF_POP)
                                           ", %[word]\n\t"
                                           "movq %[word], (%%r9)\n\t",
                                           STOOK_SECTION_ZERO("object"))
                : [object] "=&r"(object), [word] "=&r"(word), "=@ccnz"(done)
                : STOOK_SECTION_OWN, [line] "r"(line)
                : STOOK_SECTION_CLOBBERS);
        if (STOOK_UNLIKELY(!done))
                return NULL;
        if (!object)
                __builtin_unreachable();        /* no second test of it */
        return object;
}

/* stook_section_push_v1 that leaves a guess. */
STOOK_INLINE enum stook_push stook_section_push_guessed_v1(uintptr_t line, void *object)
{
        __asm__ goto(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_GO("%l[miss]"))
                STOOK_SECTION_BEGIN
                STOOK_SECTION_LOAD_LINE("addq %[line], %%r10\n\t")
                STOOK_SECTION_WORD_OF_MAIN("%%rcx", "%%cx")
                STOOK_SECTION_PUSH_CHECK
                STOOK_SECTION_PUSH_GUESSED
                "incq %%rcx\n\t"
                "movq %%rcx, (%%r9)\n\t"
                "2:\n\t"
                :
                : STOOK_SECTION_OWN, [line] "r"(line), [object] "r"(object)
                : STOOK_SECTION_CLOBBERS, "rcx"
                : miss, twice);
        return STOOK_PUSH_DONE;
miss:
        return STOOK_PUSH_MISS;
twice:
        return STOOK_PUSH_DOUBLE;
}

/*
 * Two sections behind each other, in as few registers as they need: a function with these and a
 * cache saves none. The line is that at @offset in slot 0.
 */
#define STOOK_SECTION_CHARGED 1
#define STOOK_SECTION_LINE_AT \
        "movl %[offset], %%r9d\n\t" \
        "addq %[slots], %%r10\n\t" \
        "addq %%r9, %%r10\n\t"
#define STOOK_SECTION_CHARGED_INPUTS \
        STOOK_SECTION_OWN, [word] "r"(word), [tag] "r"(tag), [delta] "m"(*delta), \
        [offset] "m"(*offset), [slots] "m"(stook_sections.slots)

/* Contract: section_precharge.h. */
STOOK_INLINE void *stook_section_charge_pop_v1(const uint32_t *offset, uintptr_t word, uint64_t tag,
                                               const int64_t *delta)
{
        void *object;

        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("object") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_BEGIN
                STOOK_SECTION_PRECHARGE("subq")
                "2:\n\t"
                STOOK_SECTION_POP_BY_GUESS(STOOK_SECTION_BEGIN_AGAIN, STOOK_SECTION_LINE_AT,
                                           STOOK_SECTION_POP_CHECK_OF_MAIN,
                                           STOOK_SECTION_POP_IN_MEMORY,
                                           "movl $1, %k[object]\n\t")
                : [object] "=&r"(object)
                : STOOK_SECTION_CHARGED_INPUTS
                : STOOK_SECTION_CLOBBERS);
        return object;
}

STOOK_INLINE enum stook_uncharged stook_section_uncharge_push_v1(const uint32_t *offset,
                                                                 uintptr_t word, uint64_t tag,
                                                                 const int64_t *delta, void *object)
{
        __asm__ goto(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_GO("%l[charged]"))
                STOOK_SECTION_BEGIN
                STOOK_SECTION_PRECHARGE("addq")
                "2:\n\t"
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_GO("%l[twice]"))
                STOOK_SECTION_BEGIN_AGAIN
                STOOK_SECTION_LOAD_LINE(STOOK_SECTION_LINE_AT)
                STOOK_SECTION_SIZE_OF_MAIN
                STOOK_SECTION_PUSH_CHECK
                STOOK_SECTION_PUSH_GUESSED
                "incq (%%r9)\n\t"
                "2:\n\t"
                :
                : STOOK_SECTION_CHARGED_INPUTS, [object] "r"(object)
                : STOOK_SECTION_CLOBBERS
                : charged, twice);
        return STOOK_UNCHARGED_PUSHED;
charged:
        return STOOK_STILL_CHARGED;
twice:                                          /* or a miss: the same to the caller */
        return STOOK_UNCHARGED;
}

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
                "cmpq %[expected], (%%r10,%[word])\n\t"
                "jne 4b\n\t"
                "movq %[desired], (%%r10,%[word])\n\t"
                "2:\n\t"
                "5:\n\t"
                : [done] "+&r"(done)
                : STOOK_SECTION_INPUTS(self, area), [word] "r"(word), [expected] "r"(expected),
                  [desired] "r"(desired)
                : STOOK_SECTION_CLOBBERS);
        return done;
}

#endif
