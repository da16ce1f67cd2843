/*
 * <stook/section.h> - pop and push: the two critical sections that are inlined
 *
 * Purpose: take an object from the main sheaf of this CPU, or put one there, by a restartable sequence: a
 * run of instructions with one store at its end that commits. A thread that is preempted, migrated or given
 * a signal between the first instruction and the commit goes to the abort label instead, and nothing
 * happened. So no instruction here is atomic and no lock is taken.
 *
 * Place: <stook/inline.h> compiles them into callers, src/slot/slot_fast.h into the library. What they touch
 * is layout version 1 (<stook/layout.h>); their meaning, and the argument for it, stands in src/slot/slot.h.
 *
 * Invariants:
 *  I1 `rseq_cs` is the only field of the kernel's area that is written. It points at the descriptor of the
 *     last section. The kernel reads that descriptor at this thread's next preemption, so code that may be
 *     unloaded puts NULL back after each section; code that never is says so by STOOK_NEVER_UNLOADED.
 *  I2 a section has one commit, and it is the last instruction.
 *  I3 the abort label stands in a section of its own, right behind the kernel's signature, and jumps to where
 *     a miss goes. No input is changed before that, so the slow path finds its arguments as they were.
 *
 * Not an interface to program against: use <stook/inline.h>.
 */
#ifndef STOOK_SECTION_H
#define STOOK_SECTION_H

#include <stddef.h>
#include <stdint.h>
#include <stook/layout.h>

#if defined(__linux__) && defined(__LP64__) && (defined(__x86_64__) || defined(__AARCH64EL__)) && \
        (defined(__clang__) ? __clang_major__ >= 14 : defined(__GNUC__) && __GNUC__ >= 11)
#define STOOK_SECTION_V1 1

#ifdef __cplusplus
extern "C" {
#endif

/* Answer of a push. */
enum stook_push {
        STOOK_PUSH_MISS,                /* no room, aborted, or not enrolled: ask the library */
        STOOK_PUSH_DONE,
        STOOK_PUSH_DOUBLE               /* the object lies on top of the sheaf already; nothing was done */
};

#define STOOK_SECTION_TEXT_(x) #x
#define STOOK_SECTION_TEXT(x)  STOOK_SECTION_TEXT_(x)

#define STOOK_SECTION_FUNCTION static inline __attribute__((always_inline, unused))

/*
 * Pieces, the same on both machines:
 *   DESCRIBE  the descriptor (label 3) of a section from label 1 to label 2, and its abort (label 4).
 *             "?" puts them into the group of the function, so that a linker that drops a copy of an inline
 *             C++ function drops them too.
 *   ARM       tells the kernel: store the descriptor's address into rseq_cs.
 *   SLOT      t = address of the slot whose index the kernel shows now; miss if it is not ready.
 *   LOAD      main = the sheaf, t = its word, size = the objects in it
 *   POP, PUSH up to the commit.
 * Tests define their own ARM and checks, to prove that they would notice a broken section.
 */
#ifdef STOOK_NEVER_UNLOADED
#define STOOK_SECTION_UNLOADABLE 0
#else
#define STOOK_SECTION_UNLOADABLE 1
#endif

#if defined(__x86_64__)

#define STOOK_SECTION_DESCRIBE(abort) \
        ".pushsection __rseq_cs, \"aw?\"\n\t" \
        ".balign 32\n\t" \
        "3: .long 0, 0\n\t" \
        ".quad 1f, 2f - 1f, 4f\n\t" \
        ".popsection\n\t" \
        ".pushsection __rseq_failure, \"ax?\"\n\t" \
        ".byte 0x0f, 0xb9, 0x3d\n\t"            /* ud1 with the signature as its displacement: never executed */ \
        ".long 0x53053053\n\t" \
        "4: jmp %l[" abort "]\n\t" \
        ".popsection\n\t"
#ifndef STOOK_SECTION_ARM
#define STOOK_SECTION_ARM \
        "leaq 3b(%%rip), %[t]\n\t" \
        "movq %[t], " STOOK_SECTION_TEXT(STOOK_RSEQ_CS) "(%[rseq])\n\t"
#endif
#define STOOK_SECTION_SLOT \
        "movq %[index], %[t]\n\t" \
        "movl (%[t]), %k[t]\n\t" \
        "cmpl %[ready], %k[t]\n\t" \
        "jae %l[miss]\n\t" \
        "shlq $" STOOK_SECTION_TEXT(STOOK_SLOT_SHIFT) ", %[t]\n\t" \
        "addq %[slots], %[t]\n\t"
#define STOOK_SECTION_INPUTS(self, area) \
        [rseq] "r"(area), [index] "m"((self)->index), [ready] "m"((self)->ready), [slots] "m"((self)->slots)
#ifndef STOOK_SECTION_POP_CHECK
#define STOOK_SECTION_POP_CHECK \
        "testl %k[size], %k[size]\n\t" \
        "jz %l[miss]\n\t"
#endif
#ifndef STOOK_SECTION_PUSH_CHECK
#define STOOK_SECTION_PUSH_CHECK \
        "cmpl " STOOK_SECTION_TEXT(STOOK_SHEAF_CAPACITY) "(%[main]), %k[size]\n\t" \
        "jae %l[miss]\n\t"
#endif

#define STOOK_SECTION_CLOBBERS "memory", "cc"
#define STOOK_SECTION_LOAD \
        "movq (%[t],%[offset]), %[main]\n\t" \
        "movq (%[main]), %[t]\n\t" \
        "movzwl %w[t], %k[size]\n\t"
#define STOOK_SECTION_POP \
        "movq " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-8(%[main],%[size],8), %[object]\n\t" \
        "addq $" STOOK_SECTION_TEXT(STOOK_SHEAF_POP) ", %[t]\n\t" \
        "movq %[t], (%[main])\n\t"
#define STOOK_SECTION_PUSH \
        "cmpq %[object], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-8(%[main],%[size],8)\n\t" \
        "je %l[twice]\n\t" \
        "movq %[object], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "(%[main],%[size],8)\n\t" \
        "incq %[t]\n\t" \
        "movq %[t], (%[main])\n\t"

#else /* __aarch64__ */

/* x16 and x17 are clobbered: the linker may lengthen the jump out of the cold section by a veneer. */
#define STOOK_SECTION_DESCRIBE(abort) \
        ".pushsection __rseq_cs, \"aw?\"\n\t" \
        ".balign 32\n\t" \
        "3: .long 0, 0\n\t" \
        ".quad 1f, 2f - 1f, 4f\n\t" \
        ".popsection\n\t" \
        ".pushsection __rseq_failure, \"ax?\"\n\t" \
        ".balign 4\n\t" \
        ".long 0xd428bc00\n\t"                  /* the signature: brk #0x45e0 */ \
        "4: b %l[" abort "]\n\t" \
        ".popsection\n\t"
#ifndef STOOK_SECTION_ARM
#define STOOK_SECTION_ARM \
        "adrp %[t], 3b\n\t" \
        "add %[t], %[t], :lo12:3b\n\t" \
        "str %[t], [%[rseq], #" STOOK_SECTION_TEXT(STOOK_RSEQ_CS) "]\n\t"
#endif
#define STOOK_SECTION_SLOT \
        "ldr %[t], [%[self], #" STOOK_SECTION_TEXT(STOOK_THREAD_INDEX) "]\n\t" \
        "ldr %w[t], [%[t]]\n\t" \
        "ldr w16, [%[self], #" STOOK_SECTION_TEXT(STOOK_THREAD_READY) "]\n\t" \
        "ldr x17, [%[self], #" STOOK_SECTION_TEXT(STOOK_THREAD_SLOTS) "]\n\t" \
        "cmp %w[t], w16\n\t" \
        "b.hs %l[miss]\n\t" \
        "add %[t], x17, %[t], lsl #" STOOK_SECTION_TEXT(STOOK_SLOT_SHIFT) "\n\t"
#define STOOK_SECTION_INPUTS(self_, area) [rseq] "r"(area), [self] "r"(self_)
#ifndef STOOK_SECTION_POP_CHECK
#define STOOK_SECTION_POP_CHECK "cbz %[size], %l[miss]\n\t"
#endif
#ifndef STOOK_SECTION_PUSH_CHECK
#define STOOK_SECTION_PUSH_CHECK \
        "ldr w16, [%[main], #" STOOK_SECTION_TEXT(STOOK_SHEAF_CAPACITY) "]\n\t" \
        "cmp %w[size], w16\n\t" \
        "b.hs %l[miss]\n\t"
#endif

#define STOOK_SECTION_CLOBBERS "memory", "cc", "x16", "x17"
#define STOOK_SECTION_LOAD \
        "ldr %[main], [%[t], %[offset]]\n\t" \
        "ldr %[t], [%[main]]\n\t" \
        "and %[size], %[t], #0xffff\n\t"
#define STOOK_SECTION_POP \
        "add x16, %[main], %[size], lsl #3\n\t" \
        "ldr %[object], [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) " - 8]\n\t" \
        "add %[t], %[t], #16, lsl #12\n\t"      /* one pop more, ... */ \
        "sub %[t], %[t], #1\n\t"                /* ... one object less */ \
        "str %[t], [%[main]]\n\t"
#define STOOK_SECTION_PUSH \
        "add x16, %[main], %[size], lsl #3\n\t" \
        "ldr x17, [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) " - 8]\n\t" \
        "cmp x17, %[object]\n\t" \
        "b.eq %l[twice]\n\t" \
        "str %[object], [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "]\n\t" \
        "add %[t], %[t], #1\n\t" \
        "str %[t], [%[main]]\n\t"

#endif

/*
 * The thread's line, by a pointer the compiler cannot see through. gcc 12 splits an asm goto that has an operand
 * in thread-local memory (%fs:...), and forgets its labels: the jumps are then to symbols that do not exist.
 */
STOOK_SECTION_FUNCTION struct stook_thread_v1 *stook_section_self(void)
{
        struct stook_thread_v1 *self = &stook_thread_v1;

        __asm__("" : "+r"(self));
        return self;
}

STOOK_SECTION_FUNCTION void stook_section_disarm(char *area)
{
        if (STOOK_SECTION_UNLOADABLE)
                *(volatile uint64_t *)(area + STOOK_RSEQ_CS) = 0;
}

/* NULL: empty, aborted, or not enrolled. @offset: of the cache's line in a slot. */
STOOK_SECTION_FUNCTION void *stook_section_pop_v1(uint32_t offset)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        void *object;
        uint64_t t, main, size;

        if (__builtin_expect(!area, 0))
                return NULL;
        __asm__ volatile goto(
                STOOK_SECTION_DESCRIBE("miss")
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD
                STOOK_SECTION_POP_CHECK
                STOOK_SECTION_POP
                "2:\n\t"
                : [object] "=r"(object), [t] "=&r"(t), [main] "=&r"(main), [size] "=&r"(size)
                : STOOK_SECTION_INPUTS(self, area), [offset] "r"((uint64_t)offset)
                : STOOK_SECTION_CLOBBERS
                : miss);
        stook_section_disarm(area);
        if (!object)
                __builtin_unreachable();        /* saves the caller's test: no sheaf holds NULL */
        return object;
miss:
        stook_section_disarm(area);
        return NULL;
}

/* @object is not NULL. With size 0 the word compared for DOUBLE is the sheaf's header, which is no object. */
STOOK_SECTION_FUNCTION enum stook_push stook_section_push_v1(uint32_t offset, void *object)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t t, main, size;

        if (__builtin_expect(!area, 0))
                return STOOK_PUSH_MISS;
        __asm__ volatile goto(
                STOOK_SECTION_DESCRIBE("miss")
                STOOK_SECTION_ARM
                "1:\n\t"
                STOOK_SECTION_SLOT
                STOOK_SECTION_LOAD
                STOOK_SECTION_PUSH_CHECK
                STOOK_SECTION_PUSH
                "2:\n\t"
                : [t] "=&r"(t), [main] "=&r"(main), [size] "=&r"(size)
                : STOOK_SECTION_INPUTS(self, area), [offset] "r"((uint64_t)offset), [object] "r"(object)
                : STOOK_SECTION_CLOBBERS
                : miss, twice);
        stook_section_disarm(area);
        return STOOK_PUSH_DONE;
miss:
        stook_section_disarm(area);
        return STOOK_PUSH_MISS;
twice:
        stook_section_disarm(area);
        return STOOK_PUSH_DOUBLE;
}

#ifdef __cplusplus
}
#endif
#endif /* a machine and compiler with sections */
#endif
