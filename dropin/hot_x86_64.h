/*
 * Purpose: the sections of hot_x86_64.S, and what stands around them, as macros of the assembler:
 * the slot, a pop, a push, whole allocations and frees, and the swaps behind them.
 * Place: included by hot_x86_64.S alone, whose comment has the invariants.
 * Registers are named by each macro. Labels: 1 and 2 are the ends of a section, 3 is its
 * descriptor, 4 where the kernel sends it.
 */
#include <features.h>                   /* __GLIBC__ */
#define READY      0                    /* <stook/layout.h> */
#define RSEQ_CS    8
#define MM_CID     24
#define SLOT_SHIFT 19
#define OBJECTS    32
#define BOUND      8                    /* of `bound` in a sheaf: its capacity, for pushes */
#define SPARE      8                    /* in a line */
#define GUESS      48
#define POP_ONE    0xffff
#define POPPABLE   0x8000ffff           /* STOOK_SHEAF_POPPABLE */
#define TABLE_MAX  16384                /* STOOK_CLASS_TABLE_MAX */
#define ALIGNED_MAX 4096                /* STOOK_CLASS_ALIGNED_MAX */
#define CLASS_MAX  131072               /* STOOK_CLASS_MAX */
#define BY_CLASS   8200                 /* 8 * STOOK_CLASS_LINE_LARGE */
#define CLASSES    72                   /* STOOK_CLASSES */
#define CLEAR_MAX  128                  /* calloc clears so much itself: above, memset is faster */
#define SIGNATURE  0x53053053
#define AREA       0                    /* stook_direct: direct/direct.h */
#define ALL_READY  8
#define SEALED_AREA 16

/*
 * A section from label 1 to label 2 that goes to \miss when aborted; its descriptor is label 3.
 * r10 = the descriptor.
 */
.macro DESCRIBE miss
        .pushsection .data.rel.stook_hot, "aw"
        .balign 32
3:      .long 0, 0
        .quad 1f, 2f - 1f, 4f
        .popsection
        .pushsection .text.unlikely, "ax"
        .byte 0x0f, 0xb9, 0x3d          /* ud1: the signature is its displacement */
        .long SIGNATURE
4:      jmp \miss
        .popsection
        leaq 3b(%rip), %r10
.endm

/*
 * Behind DESCRIBE: the section begins. r10 = bytes from slot 0 to the slot whose index the kernel
 * shows now. \miss if it is not ready, or the index is not at its fixed place: stook_sections.area
 * is 0 then, and the record's no_index is read. Uses rax, r11.
 */
.macro SLOT miss
        movq stook_thread@gottpoff(%rip), %rax
        movl %fs:READY(%rax), %r11d             /* before the area: see above */
        addq stook_sections(%rip), %rax
        movq %r10, %fs:RSEQ_CS(%rax)
1:      movl %fs:MM_CID(%rax), %r10d
        cmpl %r11d, %r10d
        jae \miss
        shlq $SLOT_SHIFT, %r10
.endm

/*
 * r11 = the area of direct sections. It stands at the start of a call: the slot index waits for it,
 * and main, the word and the object wait for the index, one after the other.
 */
.macro FIND_AREA
#ifdef __GLIBC__
        movq AREA+stook_direct(%rip), %r11
#endif
.endm

/*
 * Behind DESCRIBE and FIND_AREA: as SLOT, of a direct section where there may be one. An index that
 * is not below the bound of all threads goes to \checked: other registers are as they were. Uses
 * rax, r11.
 */
.macro FIND_SLOT miss, checked
#ifdef __GLIBC__
        movq %r10, %fs:RSEQ_CS(%r11)
1:      movl %fs:MM_CID(%r11), %r10d
        cmpl ALL_READY+stook_direct(%rip), %r10d
        jae \checked
        shlq $SLOT_SHIFT, %r10
#else
        SLOT \miss
#endif
.endm

/*
 * \name: where a call of entry point \by (enum stook_entry_point) misses: \to, with \by in its
 * \argument, which is the first that the call has not.
 */
.macro MISS name, to, argument, by
        .type \name, @function
\name:
        .cfi_startproc
        movl $\by, \argument
        jmp \to
        .cfi_endproc
        .size \name, . - \name
.endm

.macro ENTRY name
        .globl \name
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
#ifdef __CET__                          /* -fcf-protection */
        endbr64
#endif
.endm

.macro END name
        .cfi_endproc
        .set .L\name\()_bytes, . - \name
        .size \name, .L\name\()_bytes
.endm

/* Weak, so that debuggers and profilers show the name that the code has here. */
.macro ALIAS name, to
        .weak \name
        .type \name, @function
        .set \name, \to
        .size \name, .L\to\()_bytes
.endm

/* Behind DESCRIBE: r8 = the line of the class for \bytes, at most TABLE_MAX; they may be in r8. */
.macro LINE bytes
        leaq 15(\bytes), %r8
        shrq $4, %r8
        movq stook_class_line-3b(%r10,%r8,8), %r8
.endm

/* Behind DESCRIBE: r8 = the line of the class for \bytes above TABLE_MAX. Uses r9. */
.macro LINE_LARGE bytes, miss
        cmpq $CLASS_MAX, \bytes
        ja \miss
        leaq 63(\bytes), %r8
        leaq stook_class_of_large(%rip), %r9
        shrq $6, %r8
        movzbl (%r9,%r8), %r8d
        movq BY_CLASS+stook_class_line-3b(%r10,%r8,8), %r8
.endm

/*
 * Behind DESCRIBE: r8 = the line for \size bytes at a multiple of \align: malloc_miss.c. The
 * rounded size is 0, which misses, for size 0, for alignment 0, and where it overflows; as a
 * multiple of the alignment it is above ALIGNED_MAX if that is above a page. Uses rax, r9.
 */
.macro ALIGNED align, size, miss
        leaq -1(\align), %rax
        testq \align, %rax
        jnz \miss                               /* no power of two */
        leaq (%rax,\size), %r8
        notq %rax
        andq %rax, %r8
        leaq -1(%r8), %r9
        cmpq $ALIGNED_MAX, %r9
        jae \miss
        LINE %r8
.endm

/*
 * rax = an object from the line r8 of the slot r10; to \empty where main has none or is marked, to
 * \checked where the guess is wrong. Uses rcx, rdx, r9, r11.
 *
 * The guess (struct stook_line) is the top object, or was. The object that is returned is the
 * guess, and the top is only compared with it. So what the program does with the object waits for
 * one load, and not for main's word and then for the top: both were stored a moment ago, as a rule.
 * A processor holds loads that often meet such a store back until the addresses of all stores
 * before them are known, those into the last object included. The next call's loads then wait for
 * this call's object. With sizes in turn that was a third of the time of a pair
 * (docs/decisions/guess.md).
 */
.macro TAKE empty, checked
        movq (%r10,%r8), %r9                    /* main */
        movq GUESS(%r10,%r8), %rax
        movq (%r9), %rcx                        /* its word */
        movzwl %cx, %r11d
        testl $POPPABLE, %ecx
        jle \empty                              /* no object, or the mark, which is the sign */
        cmpq OBJECTS - 8(%r9,%r11,8), %rax
        jne \checked
        movq OBJECTS - 16(%r9,%r11,8), %rdx      /* below the last object: no object's address */
        addq $POP_ONE, %rcx
        movq %rdx, GUESS(%r10,%r8)
        movq %rcx, (%r9)
2:
.endm

/*
 * Behind DESCRIBE: the same, checked, and without the guess, which it sets. Arguments stay as they
 * are for \miss, and r8 for \empty.
 */
.macro POP miss, empty
        SLOT \miss
        movq (%r10,%r8), %r9                    /* main */
        movq (%r9), %rax                        /* its word */
        movzwl %ax, %r11d
        testl $POPPABLE, %eax
        jle \empty
        addq %r8, %r10
        movq OBJECTS - 16(%r9,%r11,8), %r8
        addq $POP_ONE, %rax
        movq %r8, GUESS(%r10)
        movq OBJECTS - 8(%r9,%r11,8), %r8
        movq %rax, (%r9)
2:      movq %r8, %rax
.endm

/* Where the bound sends a call: with seals to \sealed, else to \checked. */
.macro FROM_BOUND name, checked, sealed
        .type \name, @function
\name:
        .cfi_startproc
        cmpl $0, stook_malloc_seal_bytes(%rip)
        jne \sealed
        jmp \checked
        .cfi_endproc
        .size \name, . - \name
.endm

/*
 * Where there is no bound, calls go to \sealed when main is found empty, or full. Behind \sealed
 * what is none of its calls goes on to \others, or \miss.
 */
.macro SEALED_BEHIND sealed, miss
#ifdef __GLIBC__
        jne \miss
#else
        jne \sealed
#endif
.endm
.macro OTHERS_TO others, miss
#ifdef __GLIBC__
        jae \others
#else
        jae \miss
#endif
.endm

/* rdi onto the main sheaf of \line; to \full where it has no room. Uses rcx, r9, r11. */
.macro PUSH line, miss, full
        movq (\line), %r9
        movq (%r9), %rcx                        /* its word */
        movzwl %cx, %r11d
        cmpl BOUND(%r9), %r11d
        jae \full
        cmpq %rdi, OBJECTS - 8(%r9,%r11,8)
        je \miss                                /* free already */
        movq %rdi, OBJECTS(%r9,%r11,8)
        movq %rdi, GUESS(\line)
        incq %rcx
        movq %rcx, (%r9)
2:
.endm

/* \large: where sizes above the table go. \bound: where the bound sends the call. */
.macro ALLOC miss, checked, empty, large, bound
        FIND_AREA
        cmpq $TABLE_MAX, %rdi
        ja \large
        DESCRIBE \miss
        LINE %rdi
        FIND_SLOT \miss, \bound
        TAKE \empty, \checked
        ret
.endm

/* Behind ALLOC: r11 = the area. */
.macro ALLOC_LARGE name, miss, checked, empty
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
        DESCRIBE \miss
        LINE_LARGE %rdi, \miss
        FIND_SLOT \miss, \checked
        TAKE \empty, \checked
        ret
        .cfi_endproc
        .size \name, . - \name
.endm

/* Behind both: rdi = the size, r8 = the line. */
.macro ALLOC_CHECKED name, miss, empty
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
        DESCRIBE \miss
        POP \miss, \empty
        ret
        .cfi_endproc
        .size \name, . - \name
.endm

.macro ALLOC_ALIGNED align, size, miss
        DESCRIBE \miss
        ALIGNED \align, \size, \miss
        POP \miss, \miss
        ret
.endm

/*
 * With rbx on the stack. r10 = the line, of which r9 is the one in slot 0, rax = main, rdx = the
 * spare.
 */
.macro SWAP_BEGIN miss
        DESCRIBE \miss
        SLOT \miss
        addq %r9, %r10
        movq (%r10), %rax
        movq SPARE(%r10), %rdx
        testq %rdx, %rdx
        jz \miss
.endm

/* They change places; the commit is the compare-and-swap. */
.macro SWAP_END miss
        movq %rdx, %rbx
        movq %rax, %rcx
        lock cmpxchg16b (%r10)
2:      popq %rbx
        .cfi_remember_state
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        jne \miss
.endm

.macro SWAP_MISS miss
        .cfi_restore_state
        popq %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        jmp \miss
.endm

/*
 * Main is empty, or marked, which is a miss. It and a spare with objects change places (the swap of
 * slot/slot.h), and the pop is tried once more. r8: the line in slot 0. The other registers that a
 * miss looks at, rdi and rsi, stay as they are. Where malloc's objects have seals, no class has a
 * sheaf at its own line.
 */
.macro SWAP_POP name, miss, sealed
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
        cmpl $0, stook_malloc_seal_bytes(%rip)
        SEALED_BEHIND \sealed, \miss
        movq %r8, %r9
        pushq %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        SWAP_BEGIN \name\()_miss
        cmpw $0, (%rax)
        jne \name\()_miss
        cmpl $0, BOUND(%rax)                 /* the sheaf without room is never a spare */
        je \name\()_miss
        cmpw $0, (%rdx)
        je \name\()_miss
        SWAP_END \miss
        DESCRIBE \miss
        POP \miss, \miss
        ret
\name\()_miss:
        SWAP_MISS \miss
        .cfi_endproc
        .size \name, . - \name
.endm

/* rdi onto main of the slot r10, of the cache with its index * 8 in rdx. */
.macro FREE_PUSH miss, full
        addq 16+stook_sections(%rip), %r10
        PUSH "%r10,%rdx,8", \miss, \full        /* a line is 64 bytes */
        ret
.endm

/*
 * rdi goes onto main of its cache; to \full where that has no room, to \bound where the bound sends
 * it. rsi stays as it is for \miss.
 * \known, behind FIND_AREA: rdi and the cache's index * 8 in rdx have been looked at.
 *
 * The entry is loaded in two parts. They are of one entry: that of a page with an object in use
 * does not change. For a pointer that the program has freed before they may differ. Then it may
 * pass for an object of a cache that it is not of, as it may when the entry changes right behind
 * one load of all. What takes it to its slab looks at the entry again, and reports it.
 */
.macro FREE miss, bound, full, known
        FIND_AREA
        movq %rdi, %rax
        subq stook_range(%rip), %rax
        cmpq 8+stook_range(%rip), %rax
        jae \miss                               /* NULL and foreign pointers, too */
        movq 16+stook_range(%rip), %r8
        shrq $12, %rax
        movl (%r8,%rax,8), %ecx                 /* the entry's lower half */
        movzwl 6(%r8,%rax,8), %edx      /* cache index * 8: bits 48-50 are zero. 0: full */
        leaq stook_shapes(%rip), %r9
        shll $12, %ecx
        addl %edi, %ecx
        andl $0x7ffff, %ecx                     /* offset in the slab */
        imulq (%r9,%rdx,2), %rcx
        cmpq %rcx, 8(%r9,%rdx,2)
        jbe \miss                               /* no object starts there */
\known:
        DESCRIBE \miss
        FIND_SLOT \miss, \bound
        FREE_PUSH \miss, \full
.endm

/* Behind both: rdi, rdx as above. */
.macro FREE_CHECKED name, miss, full
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
        DESCRIBE \miss
        SLOT \miss
        FREE_PUSH \miss, \full
        .cfi_endproc
        .size \name, . - \name
.endm

/*
 * Main is full. It and a spare that is not change places, and the push is tried once more. rdx: the
 * cache's index * 8; the line in slot 0 goes on in r9.
 */
.macro SWAP_PUSH name, miss, sealed
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
        cmpl $0, stook_malloc_seal_bytes(%rip)
        SEALED_BEHIND \sealed, \miss
        leaq (,%rdx,8), %r9
        addq 16+stook_sections(%rip), %r9
        pushq %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        SWAP_BEGIN \name\()_miss
        movzwl (%rax), %r11d
        testl %r11d, %r11d
        jz \name\()_miss                        /* the sheaf without room, too */
        cmpl BOUND(%rax), %r11d
        jb \name\()_miss
        cmpq %rdi, OBJECTS - 8(%rax,%r11,8)
        je \name\()_miss                        /* free already */
        movzwl (%rdx), %r11d
        cmpl BOUND(%rdx), %r11d
        jae \name\()_miss
        SWAP_END \miss
        DESCRIBE \miss
        SLOT \miss
        addq %r9, %r10
        PUSH %r10, \miss, \miss
        ret
\name\()_miss:
        SWAP_MISS \miss
        .cfi_endproc
        .size \name, . - \name
.endm
