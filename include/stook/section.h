/*
 * <stook/section.h> - pop and push: the two critical sections that are inlined
 *
 * Purpose: take an object from the main sheaf of this CPU, or put one there, by a restartable
 * sequence: a run of instructions with one store at its end that commits. If the thread is
 * preempted, is migrated or gets a signal between the first instruction and the commit, it goes to
 * the abort label, and nothing happened. So no instruction here is atomic, and no lock is taken.
 *
 * Place: <stook/inline.h> compiles them into callers; the library makes its own of the same pieces.
 * What they touch is layout version 1 (<stook/layout.h>). Their meaning, and the argument for it,
 * is in src/section/section.h.
 *
 * Invariants:
 *  I1 `rseq_cs` is the only field of the kernel's area that is written. It points at the descriptor
 *     of the last section. The kernel reads that descriptor at this thread's next preemption. So
 *     code that may be unloaded puts NULL back after each section. Code that never is defines
 *     STOOK_NEVER_UNLOADED.
 *  I2 a section has one commit, and it is the last instruction.
 *  I3 the abort label stands out of line, directly behind the kernel's signature, and goes where a
 *     miss goes. No input is changed before that, so the slow call finds its arguments as they
 *     were.
 *
 * Not an interface to program against: use <stook/inline.h>.
 */
#ifndef STOOK_SECTION_H
#define STOOK_SECTION_H

#include <stddef.h>
#include <stdint.h>
#include <stook/layout.h>

#if defined(__linux__) && defined(__LP64__) && (defined(__x86_64__) || defined(__AARCH64EL__)) && \
        (defined(__clang__) ? __clang_major__ >= 9 : defined(__GNUC__) && __GNUC__ >= 5) && \
        !defined(STOOK_DYNAMIC_TLS)
#define STOOK_SECTION_V1 1

#ifdef __cplusplus
extern "C" {
#endif

/* Answer of a push. */
enum stook_push {
        STOOK_PUSH_MISS,                /* no room, aborted, or not enrolled: ask the library */
        STOOK_PUSH_DONE,
        STOOK_PUSH_DOUBLE               /* the object is on top already; nothing was done */
};

/* The library has names of its own for these, which need no dynamic linker. */
#ifndef STOOK_SECTION_RECORD
#define STOOK_SECTION_RECORD stook_thread_v1
#define STOOK_SECTION_AREA   stook_area_v1
#endif

#define STOOK_SECTION_TEXT_(x) #x
#define STOOK_SECTION_TEXT(x)  STOOK_SECTION_TEXT_(x)

#define STOOK_SECTION_FUNCTION static inline __attribute__((always_inline, unused))

/*
 * Pieces, the same on both machines. Registers are fixed: T, MAIN and SIZE below. Each section
 * clobbers them.
 *   DESCRIBE  the descriptor (label 3) of the section from label 1 to label 2, and what an abort
 *             does (label 4). A miss inside the section jumps to label 4, too.
 *   ARM       tells the kernel: store the descriptor's address into rseq_cs.
 *   SLOT      T = bytes from slot 0 to the slot whose index the kernel shows now; a miss if that
 *             slot is not ready.
 *   LOAD      MAIN = the sheaf, T = its word; LOAD_SIZE: SIZE = the objects in it, too.
 *   POP_CHECK SIZE = the objects in it; a miss if there are none, or the word is marked.
 *   POP, PUSH up to the commit.
 * Tests define their own ARM, checks and PUSH, to prove that they would notice a broken section.
 *
 * Inlined sections have BEGIN instead of ARM and SLOT. The area is at the same distance from every
 * thread's record (stook_area_v1), so there is no pointer to load and none to test. The index is
 * always the concurrency id. A thread that has not enrolled may so arm an area that the kernel does
 * not know of; `ready` then sends it to the library. `ready` is read before the section is armed: a
 * handler may enrol the thread at any instruction, and nothing protects what began before that.
 *
 * A pop is no asm goto, because that would need outputs there, and gcc before 12.4 compiles those
 * wrongly (its bug 113921; seen here: a miss that jumps into the section again). A pop leaves its
 * answer in the zero flag (x86-64). No instruction between POP_CHECK and the end may change it.
 */
#ifdef STOOK_NEVER_UNLOADED
#define STOOK_SECTION_UNLOADABLE 0
#define STOOK_SECTION_DISARM
#else
#define STOOK_SECTION_UNLOADABLE 1
#endif

/*
 * "?" puts it into the group of the function. A linker that drops a copy of an inline C++ function
 * then drops both.
 */
#define STOOK_SECTION_DESCRIPTOR \
        ".pushsection __rseq_cs, \"aw?\"\n\t" \
        ".balign 32\n\t" \
        "3: .long 0, 0\n\t" \
        ".quad 1f, 2f - 1f, 4f\n\t" \
        ".popsection\n\t"

#if defined(__x86_64__)

#define STOOK_SECTION_T    "%%r10"
#define STOOK_SECTION_MAIN "%%r9"
#define STOOK_SECTION_SIZE "%%r11"
#define STOOK_SECTION_CLOBBERS "r9", "r10", "r11", "memory", "cc"

/* The signature is the displacement of a ud1: never executed. */
#define STOOK_SECTION_DESCRIBE(on_miss) \
        STOOK_SECTION_DESCRIPTOR \
        ".pushsection __rseq_failure, \"ax?\"\n\t" \
        ".byte 0x0f, 0xb9, 0x3d\n\t" \
        ".long 0x53053053\n\t" \
        "4: " on_miss "\n\t" \
        ".popsection\n\t"
#define STOOK_SECTION_GO(label) "jmp " label
#define STOOK_SECTION_ZERO(operand) "xorl %k[" operand "], %k[" operand "]\n\t"

#ifndef STOOK_SECTION_ARM
#define STOOK_SECTION_ARM \
        "leaq 3b(%%rip), %%r10\n\t" \
        "movq %%r10, " STOOK_SECTION_TEXT(STOOK_RSEQ_CS) "(%[rseq])\n\t"
#endif
#define STOOK_SECTION_SLOT \
        "movl %[index], %%r10d\n\t" \
        "cmpl %[ready], %%r10d\n\t" \
        "jae 4b\n\t" \
        "shlq $" STOOK_SECTION_TEXT(STOOK_SLOT_SHIFT) ", %%r10\n\t"
/*
 * SELF is the record's distance from the thread pointer, so %fs addresses record and area. The
 * record's address would be the sum of two loads, and the slot index waits for it, as all else
 * waits for the index.
 */
STOOK_SECTION_FUNCTION intptr_t stook_section_self_v1(void)
{
        intptr_t self;

        __asm__("movq " STOOK_SECTION_TEXT(STOOK_SECTION_RECORD) "@gottpoff(%%rip), %0"
                : "=r"(self));
        return self;
}

#define STOOK_SECTION_OF_RECORD(field) "%%fs:" STOOK_SECTION_TEXT(field) "(%[self])"
#define STOOK_SECTION_OF_AREA(field)   "%%fs:" STOOK_SECTION_TEXT(field) "(%[self],%[area])"
#define STOOK_SECTION_BEGIN_INDEX \
        "leaq 3b(%%rip), %%r10\n\t" \
        "movq %%r10, " STOOK_SECTION_OF_AREA(STOOK_RSEQ_CS) "\n\t" \
        "1:\n\t" \
        "movl " STOOK_SECTION_OF_AREA(STOOK_RSEQ_MM_CID) ", %%r10d\n\t"
#define STOOK_SECTION_BEGIN_SLOT(ready) \
        "cmpl " ready ", %%r10d\n\t" \
        "jae 4b\n\t" \
        "shlq $" STOOK_SECTION_TEXT(STOOK_SLOT_SHIFT) ", %%r10\n\t"
/* Label 1 is in here. */
#define STOOK_SECTION_BEGIN \
        "movl " STOOK_SECTION_OF_RECORD(STOOK_THREAD_READY) ", %%r11d\n\t" \
        STOOK_SECTION_BEGIN_INDEX \
        STOOK_SECTION_BEGIN_SLOT("%%r11d")
#if STOOK_SECTION_UNLOADABLE
#define STOOK_SECTION_DISARM "movq $0, " STOOK_SECTION_OF_AREA(STOOK_RSEQ_CS) "\n\t"
#endif
#define STOOK_SECTION_LOAD \
        "movq (%%r10,%[line]), %%r9\n\t" \
        "movq (%%r9), %%r10\n\t"
#define STOOK_SECTION_LOAD_SIZE \
        STOOK_SECTION_LOAD \
        "movzwl %%r10w, %%r11d\n\t"
/* Of the lower half of main's word, in a register: an object is there to pop, or it is a miss. */
#define STOOK_SECTION_POPPABLE(half) \
        "testl $" STOOK_SECTION_TEXT(STOOK_SHEAF_POPPABLE) ", " half "\n\t" \
        "jle 4b\n\t"                          /* no size, or the mark, which is the sign */
#ifndef STOOK_SECTION_POP_CHECK
#define STOOK_SECTION_POP_CHECK \
        "movzwl %%r10w, %%r11d\n\t" \
        STOOK_SECTION_POPPABLE("%%r10d")
#endif
#define STOOK_SECTION_POP \
        "movq " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-8(%%r9,%%r11,8), %[object]\n\t" \
        "leaq " STOOK_SECTION_TEXT(STOOK_SHEAF_POP) "(%%r10), %%r10\n\t" \
        "movq %%r10, (%%r9)\n\t"
#ifndef STOOK_SECTION_PUSH_CHECK
#define STOOK_SECTION_PUSH_CHECK \
        "cmpl " STOOK_SECTION_TEXT(STOOK_SHEAF_BOUND) "(%%r9), %%r11d\n\t" \
        "jae 4b\n\t"
#endif
#ifndef STOOK_SECTION_PUSH
#define STOOK_SECTION_PUSH \
        "cmpq %[object], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "-8(%%r9,%%r11,8)\n\t" \
        "je %l[twice]\n\t" \
        "movq %[object], " STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "(%%r9,%%r11,8)\n\t" \
        "incq %%r10\n\t" \
        "movq %%r10, (%%r9)\n\t"
#endif

#else /* __aarch64__ */

/* T is x15, MAIN x14, SIZE x13. x16 and x17 are scratch. */
#define STOOK_SECTION_CLOBBERS "x13", "x14", "x15", "x16", "x17", "memory", "cc"

/* In a subsection: a conditional branch must reach it. The signature is brk #0x45e0. */
#define STOOK_SECTION_DESCRIBE(on_miss) \
        STOOK_SECTION_DESCRIPTOR \
        ".subsection 1\n\t" \
        ".long 0xd428bc00\n\t" \
        "4: " on_miss "\n\t" \
        ".previous\n\t"
#define STOOK_SECTION_GO(label) "b " label
#define STOOK_SECTION_ZERO(operand) "mov %[" operand "], #0\n\t"

#ifndef STOOK_SECTION_ARM
#define STOOK_SECTION_ARM \
        "adrp x15, 3b\n\t" \
        "add x15, x15, :lo12:3b\n\t" \
        "str x15, [%[rseq], #" STOOK_SECTION_TEXT(STOOK_RSEQ_CS) "]\n\t"
#endif
#define STOOK_SECTION_SLOT \
        "ldr w15, %[index]\n\t" \
        "ldr w16, %[ready]\n\t" \
        "cmp w15, w16\n\t" \
        "b.hs 4b\n\t" \
        "lsl x15, x15, #" STOOK_SECTION_TEXT(STOOK_SLOT_SHIFT) "\n\t"
/* SELF is the record's address. */
STOOK_SECTION_FUNCTION intptr_t stook_section_self_v1(void)
{
        return (intptr_t)&STOOK_SECTION_RECORD;
}

/* Label 1 is in here. */
#define STOOK_SECTION_BEGIN \
        "ldr w16, [%[self], #" STOOK_SECTION_TEXT(STOOK_THREAD_READY) "]\n\t" \
        "adrp x15, 3b\n\t" \
        "add x15, x15, :lo12:3b\n\t" \
        "add x17, %[self], %[area]\n\t" \
        "str x15, [x17, #" STOOK_SECTION_TEXT(STOOK_RSEQ_CS) "]\n\t" \
        "1:\n\t" \
        "ldr w15, [x17, #" STOOK_SECTION_TEXT(STOOK_RSEQ_MM_CID) "]\n\t" \
        "cmp w15, w16\n\t" \
        "b.hs 4b\n\t" \
        "lsl x15, x15, #" STOOK_SECTION_TEXT(STOOK_SLOT_SHIFT) "\n\t"
#if STOOK_SECTION_UNLOADABLE
#define STOOK_SECTION_DISARM \
        "add x17, %[self], %[area]\n\t" \
        "str xzr, [x17, #" STOOK_SECTION_TEXT(STOOK_RSEQ_CS) "]\n\t"
#endif
#define STOOK_SECTION_LOAD \
        "ldr x14, [x15, %[line]]\n\t" \
        "ldr x15, [x14]\n\t"
#define STOOK_SECTION_LOAD_SIZE \
        STOOK_SECTION_LOAD \
        "and x13, x15, #0xffff\n\t"
#ifndef STOOK_SECTION_POP_CHECK
#define STOOK_SECTION_POP_CHECK \
        "ands w13, w15, #" STOOK_SECTION_TEXT(STOOK_SHEAF_POPPABLE) "\n\t" \
        "b.le 4b\n\t"                         /* no size, or the mark, which is the sign */
#endif
#define STOOK_SECTION_POP \
        "add x16, x14, x13, lsl #3\n\t" \
        "ldr %[object], [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) " - 8]\n\t" \
        "add x15, x15, #16, lsl #12\n\t"        /* one pop more, ... */ \
        "sub x15, x15, #1\n\t"                  /* ... one object less */ \
        "str x15, [x14]\n\t"
#ifndef STOOK_SECTION_PUSH_CHECK
#define STOOK_SECTION_PUSH_CHECK \
        "ldr w16, [x14, #" STOOK_SECTION_TEXT(STOOK_SHEAF_BOUND) "]\n\t" \
        "cmp w13, w16\n\t" \
        "b.hs 4b\n\t"
#endif
#ifndef STOOK_SECTION_PUSH
#define STOOK_SECTION_PUSH \
        "add x16, x14, x13, lsl #3\n\t" \
        "ldr x17, [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) " - 8]\n\t" \
        "cmp x17, %[object]\n\t" \
        "b.eq %l[twice]\n\t" \
        "str %[object], [x16, #" STOOK_SECTION_TEXT(STOOK_SHEAF_OBJECTS) "]\n\t" \
        "add x15, x15, #1\n\t" \
        "str x15, [x14]\n\t"
#endif

#endif

STOOK_SECTION_FUNCTION void stook_section_disarm(intptr_t self, intptr_t area)
{
        if (STOOK_SECTION_UNLOADABLE)
                __asm__ volatile(STOOK_SECTION_DISARM ""
                                 : : [self] "r"(self), [area] "r"(area) : STOOK_SECTION_CLOBBERS);
}

/* NULL: empty, aborted, or not enrolled. @line: the cache's line in slot 0. */
STOOK_SECTION_FUNCTION void *stook_section_pop_v1(uintptr_t line)
{
        intptr_t self = stook_section_self_v1();
        intptr_t area = STOOK_SECTION_AREA;
        void *object;
#if defined(__x86_64__)
        int done;
#endif

        __asm__ volatile(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("object") STOOK_SECTION_GO("5f"))
                STOOK_SECTION_BEGIN
                STOOK_SECTION_LOAD
                STOOK_SECTION_POP_CHECK
                STOOK_SECTION_POP
                "2:\n\t"
                "5:\n\t"
                STOOK_SECTION_DISARM
                : [object] "=&r"(object)
#if defined(__x86_64__)
                , "=@ccnz"(done)
#endif
                : [self] "r"(self), [area] "r"(area), [line] "r"(line)
                : STOOK_SECTION_CLOBBERS);
#if defined(__x86_64__)
        if (__builtin_expect(!done, 0))
                return NULL;
        if (!object)
                __builtin_unreachable();        /* no second test of it */
#endif
        return object;
}

/*
 * @object: not NULL. With size 0 the word compared for DOUBLE is the sheaf's header, which is no
 * object.
 */
STOOK_SECTION_FUNCTION enum stook_push stook_section_push_v1(uintptr_t line, void *object)
{
        intptr_t self = stook_section_self_v1();
        intptr_t area = STOOK_SECTION_AREA;

        __asm__ goto(
                STOOK_SECTION_DESCRIBE(STOOK_SECTION_GO("%l[miss]"))
                STOOK_SECTION_BEGIN
                STOOK_SECTION_LOAD_SIZE
                STOOK_SECTION_PUSH_CHECK
                STOOK_SECTION_PUSH
                "2:\n\t"
                :
                : [self] "r"(self), [area] "r"(area), [line] "r"(line), [object] "r"(object)
                : STOOK_SECTION_CLOBBERS
                : miss, twice);
        stook_section_disarm(self, area);
        return STOOK_PUSH_DONE;
miss:
        stook_section_disarm(self, area);
        return STOOK_PUSH_MISS;
twice:
        stook_section_disarm(self, area);
        return STOOK_PUSH_DOUBLE;
}

#ifdef __cplusplus
}
#endif
#endif /* a machine and compiler with sections */
#endif
