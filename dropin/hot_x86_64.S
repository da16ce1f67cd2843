/*
 * Purpose: the drop-in's calls where the common case holds, in as few instructions as it takes: the
 * sections of <stook/section.h> with what malloc/malloc_hot.h does around them. The same in C takes
 * a third more instructions. A section in C returns its result in a variable, and C tests the
 * variable although the section has branched already. An asm goto could jump instead, but gcc 12
 * miscompiles one that has outputs. operator new is malloc with a miss of its own, which knows what
 * the language asks for (new_delete.c). Every delete, and every other name of free, is free itself.
 * Those with a size have a copy of it whose miss knows the size; no alignment is looked at.
 *
 * Each of malloc, new, free and delete has two sections. The first is direct: it takes the area and
 * the bound of ready slots from stook_direct, one for all threads, and asks no thread record. Where
 * that bound sends it away, the second does the same work, and asks the record: the checked one.
 * That is a slot which no thread has made ready, a vfork under way anywhere in the process, or a
 * process in which direct sections are off. src/slot/slot_direct.c has the argument. The other
 * calls, and the swaps behind these, are checked only.
 * Place: misses go to the functions of hot.h, which look at everything again.
 * Invariants: those of <stook/section.h>: rseq_cs is the only field of the kernel's area that is
 *  written; one commit, the last instruction of the section; the signature right before the abort
 *  label. The arguments stay untouched until the commit, so an aborted call goes to its miss as if
 *  it had just begun. A thread that has not enrolled has an area of zeros (its own_rseq, or libc's,
 *  not registered). What is stored there is harmless, and `ready` 0 makes the section miss. `ready`
 *  is read before all that, once: a handler may enrol the thread at any instruction, and the kernel
 *  does not protect a section that began before that. A direct section reads its bound inside: it
 *  is above 0 only where each thread was registered before it ran anything. One that began before
 *  the start has the thread record for its area, and the record's no_index for its index.
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
#define TABLE_MAX  4096                 /* STOOK_CLASS_TABLE_MAX */
#define CLASS_MAX  131072               /* STOOK_CLASS_MAX */
#define BY_CLASS   2056                 /* 8 * STOOK_CLASS_LINE_LARGE */
#define CLASSES    60                   /* STOOK_CLASSES */
#define CLEAR_MAX  128                  /* calloc clears so much itself: above, memset is faster */
#define SIGNATURE  0x53053053
#define AREA       0                    /* stook_direct: slot/slot_direct.h */
#define ALL_READY  8

        .hidden stook_sections
        .hidden stook_class_of_large
        .hidden stook_range
        .hidden stook_shapes
        .hidden stook_malloc_miss
        .hidden stook_malloc_object
        .hidden stook_drop_in_calloc_miss
        .hidden stook_aligned_alloc_miss
        .hidden stook_memalign_miss
        .hidden stook_posix_memalign_miss
        .hidden stook_new_aligned_miss
        .hidden stook_new_array_aligned_miss
        .hidden stook_new_aligned_nothrow_miss
        .hidden stook_new_array_aligned_nothrow_miss
        .hidden stook_new_miss
        .hidden stook_new_array_miss
        .hidden stook_new_nothrow_miss
        .hidden stook_new_array_nothrow_miss
        .hidden stook_drop_in_free_miss
        .hidden stook_drop_in_free_sized_miss

/*
 * malloc/malloc.h: uintptr_t[STOOK_CLASS_LINE_LARGE + STOOK_CLASSES]. It is here instead of in
 * size_class.c, for it stands at a known distance from all descriptors, so that one register
 * addresses both.
 */
        .section .data.rel.stook_hot, "aw"
        .globl stook_class_line
        .hidden stook_class_line
        .type stook_class_line, @object
        .balign 64
stook_class_line:
        .zero BY_CLASS + 8 * CLASSES
        .size stook_class_line, . - stook_class_line

/*
 * slot/slot_direct.h. Before the start the area is the thread record: its distance from the thread
 * pointer is known when this file is relocated. Linkers refuse a relocation that would store it
 * (R_X86_64_TPOFF64), so a function returns it: "the address" of an indirect function. The loader
 * stores that behind all other relocations of this file, and before it can be called.
 */
        .globl stook_direct
        .hidden stook_direct
        .type stook_direct, @object
        .balign 64
stook_direct:
#ifdef __GLIBC__
        .quad area_at_first, 0
#else
        .quad 0, 0
#endif
        .size stook_direct, . - stook_direct

#ifdef __GLIBC__
        .text
        .type area_at_first, @gnu_indirect_function
area_at_first:
        .cfi_startproc
#ifdef __CET__
        endbr64
#endif
        movq stook_thread@gottpoff(%rip), %rax
        ret
        .cfi_endproc
        .size area_at_first, . - area_at_first
#endif

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
 * Behind DESCRIBE: r8 = the line for \size bytes at a multiple of \align: malloc_aligned.c. The
 * rounded size is 0, which misses, for size 0, for alignment 0, and where it overflows; as a
 * multiple of the alignment it is above the table if that is above a page. Uses rax, r9.
 */
.macro ALIGNED align, size, miss
        leaq -1(\align), %rax
        testq \align, %rax
        jnz \miss                               /* no power of two */
        leaq (%rax,\size), %r8
        notq %rax
        andq %rax, %r8
        leaq -1(%r8), %r9
        cmpq $TABLE_MAX, %r9
        jae \miss
        LINE %r8
.endm

/*
 * rax = an object from the line r8 of the slot r10; to \empty where main has none, to \checked
 * where the guess is wrong. Uses rcx, rdx, r9, r11.
 *
 * The guess (struct stook_line) is the top object, or was. The object that is returned is the
 * guess, and the top is only compared with it. So what the program does with the object waits for
 * one load, and not for main's word and then for the top: both were stored a moment ago, as a rule.
 * A processor holds loads that often meet such a store back until the addresses of all stores
 * before them are known, those into the last object included. The next call's loads then wait for
 * this call's object. With sizes in turn that was a third of the time of a pair (docs/TRIED.md).
 */
.macro TAKE empty, checked
        movq (%r10,%r8), %r9                    /* main */
        movq GUESS(%r10,%r8), %rax
        movq (%r9), %rcx                        /* its word */
        movzwl %cx, %r11d
        testl %r11d, %r11d
        jz \empty
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
        testl %r11d, %r11d
        jz \empty
        addq %r8, %r10
        movq OBJECTS - 16(%r9,%r11,8), %r8
        addq $POP_ONE, %rax
        movq %r8, GUESS(%r10)
        movq OBJECTS - 8(%r9,%r11,8), %r8
        movq %rax, (%r9)
2:      movq %r8, %rax
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

/* \large: where sizes above the table go. */
.macro ALLOC miss, checked, empty, large
        FIND_AREA
        cmpq $TABLE_MAX, %rdi
        ja \large
        DESCRIBE \miss
        LINE %rdi
        FIND_SLOT \miss, \checked
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
 * Main is empty. It and a spare with objects change places (the swap of slot/slot.h), and the pop
 * is tried once more. r8: the line in slot 0. The other registers that a miss looks at, rdi and
 * rsi, stay as they are.
 */
.macro SWAP_POP name, miss
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
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
 * rdi goes onto main of its cache; to \full where that has no room. rsi stays as it is for \miss.
 * \known, behind FIND_AREA: rdi and the cache's index * 8 in rdx have been looked at.
 *
 * The entry is loaded in two parts. They are of one entry: that of a page with an object in use
 * does not change. For a pointer that the program has freed before they may differ. Then it may
 * pass for an object of a cache that it is not of, as it may when the entry changes right behind
 * one load of all. A flush of the sheaf looks at the entry again, and reports it.
 */
.macro FREE miss, checked, full, known
        FIND_AREA
        movq %rdi, %rax
        subq stook_range(%rip), %rax
        cmpq 8+stook_range(%rip), %rax
        jae \miss                               /* NULL and foreign pointers, too */
        movq 16+stook_range(%rip), %r8
        shrq $12, %rax
        movl (%r8,%rax,8), %ecx                 /* the entry's lower half */
        movzwl 6(%r8,%rax,8), %edx      /* cache index * 8: bits 48-50 are zero. 0: a miss */
        leaq stook_shapes(%rip), %r9
        shll $12, %ecx
        addl %edi, %ecx
        andl $0x7ffff, %ecx                     /* offset in the slab */
        imulq (%r9,%rdx,2), %rcx
        cmpq %rcx, 8(%r9,%rdx,2)
        jbe \miss                               /* no object starts there */
\known:
        DESCRIBE \miss
        FIND_SLOT \miss, \checked
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
.macro SWAP_PUSH name, miss
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
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

        .text
        ENTRY malloc
        ALLOC stook_malloc_miss, malloc_checked, malloc_swap, malloc_large
        END malloc
        ALLOC_LARGE malloc_large, stook_malloc_miss, malloc_checked, malloc_swap
        ALLOC_CHECKED malloc_checked, stook_malloc_miss, malloc_swap
        SWAP_POP malloc_swap, stook_malloc_miss

        .hidden stook_hot_object
        ENTRY stook_hot_object
        ALLOC stook_malloc_object, object_checked, stook_malloc_object, stook_malloc_object
        END stook_hot_object
        ALLOC_CHECKED object_checked, stook_malloc_object, stook_malloc_object

        ENTRY free
        FREE stook_drop_in_free_miss, free_checked, free_swap, .Lknown
        END free
        FREE_CHECKED free_checked, stook_drop_in_free_miss, free_swap
        SWAP_PUSH free_swap, stook_drop_in_free_miss

        .hidden stook_hot_free_known
        ENTRY stook_hot_free_known
        FIND_AREA
        jmp .Lknown
        END stook_hot_free_known

        ENTRY calloc
        movq %rdi, %rax
        mulq %rsi
        jo stook_drop_in_calloc_miss
        leaq -1(%rax), %rdx
        cmpq $TABLE_MAX, %rdx                   /* 0, too */
        jae stook_drop_in_calloc_miss
        movq %rax, %rcx
        DESCRIBE stook_drop_in_calloc_miss
        LINE %rcx
        POP stook_drop_in_calloc_miss, stook_drop_in_calloc_miss
        cmpl $CLEAR_MAX, %ecx
        ja 5f
        /* In whole 16 bytes, as classes are; from both ends: few jumps depend on the size. */
        andl $-16, %edx                         /* where the last ones begin */
        pxor %xmm0, %xmm0
        movups %xmm0, (%rax)
        movups %xmm0, (%rax,%rdx)
        cmpl $16, %edx
        jbe 6f
        movups %xmm0, 16(%rax)
        movups %xmm0, -16(%rax,%rdx)
        cmpl $48, %edx
        jbe 6f
        movups %xmm0, 32(%rax)
        movups %xmm0, 48(%rax)
        movups %xmm0, -48(%rax,%rdx)
        movups %xmm0, -32(%rax,%rdx)
6:      ret
5:      movq %rax, %rdi
        xorl %esi, %esi
        movq %rcx, %rdx
        jmp *memset@GOTPCREL(%rip)              /* returns the object */
        END calloc

        ENTRY aligned_alloc
        ALLOC_ALIGNED %rdi, %rsi, stook_aligned_alloc_miss
        END aligned_alloc

        ENTRY memalign
        ALLOC_ALIGNED %rdi, %rsi, stook_memalign_miss
        END memalign

        ENTRY posix_memalign
        testb $7, %sil                          /* no multiple of a pointer's size */
        jnz stook_posix_memalign_miss
        DESCRIBE stook_posix_memalign_miss
        ALIGNED %rsi, %rdx, stook_posix_memalign_miss
        POP stook_posix_memalign_miss, stook_posix_memalign_miss
        movq %rax, (%rdi)
        xorl %eax, %eax
        ret
        END posix_memalign

        /* The common case is free's; a miss knows the size. */
        ENTRY free_sized
        FREE stook_drop_in_free_sized_miss, free_sized_checked, free_sized_swap, .Lsized
        END free_sized
        FREE_CHECKED free_sized_checked, stook_drop_in_free_sized_miss, free_sized_swap
        SWAP_PUSH free_sized_swap, stook_drop_in_free_sized_miss

        ALIAS cfree, free
        ALIAS free_aligned_sized, free

        ENTRY _Znwm
        ALLOC stook_new_miss, new_checked, new_swap, new_large
        END _Znwm
        ALLOC_LARGE new_large, stook_new_miss, new_checked, new_swap
        ALLOC_CHECKED new_checked, stook_new_miss, new_swap
        SWAP_POP new_swap, stook_new_miss

        ENTRY _Znam
        ALLOC stook_new_array_miss, new_array_checked, stook_new_array_miss, new_array_large
        END _Znam
        ALLOC_LARGE new_array_large, stook_new_array_miss, new_array_checked, stook_new_array_miss
        ALLOC_CHECKED new_array_checked, stook_new_array_miss, stook_new_array_miss

        ENTRY _ZnwmRKSt9nothrow_t
        ALLOC stook_new_nothrow_miss, nothrow_checked, stook_new_nothrow_miss, \
              stook_new_nothrow_miss
        END _ZnwmRKSt9nothrow_t
        ALLOC_CHECKED nothrow_checked, stook_new_nothrow_miss, stook_new_nothrow_miss

        ENTRY _ZnamRKSt9nothrow_t
        ALLOC stook_new_array_nothrow_miss, array_nothrow_checked, stook_new_array_nothrow_miss, \
              stook_new_array_nothrow_miss
        END _ZnamRKSt9nothrow_t
        ALLOC_CHECKED array_nothrow_checked, stook_new_array_nothrow_miss, \
                      stook_new_array_nothrow_miss

        ENTRY _ZnwmSt11align_val_t
        ALLOC_ALIGNED %rsi, %rdi, stook_new_aligned_miss
        END _ZnwmSt11align_val_t

        ENTRY _ZnamSt11align_val_t
        ALLOC_ALIGNED %rsi, %rdi, stook_new_array_aligned_miss
        END _ZnamSt11align_val_t

        ENTRY _ZnwmSt11align_val_tRKSt9nothrow_t
        ALLOC_ALIGNED %rsi, %rdi, stook_new_aligned_nothrow_miss
        END _ZnwmSt11align_val_tRKSt9nothrow_t

        ENTRY _ZnamSt11align_val_tRKSt9nothrow_t
        ALLOC_ALIGNED %rsi, %rdi, stook_new_array_aligned_nothrow_miss
        END _ZnamSt11align_val_tRKSt9nothrow_t

        ALIAS _ZdlPv, free
        ALIAS _ZdaPv, free
        ALIAS _ZdlPvm, free_sized
        ALIAS _ZdaPvm, free_sized
        ALIAS _ZdlPvSt11align_val_t, free
        ALIAS _ZdaPvSt11align_val_t, free
        ALIAS _ZdlPvmSt11align_val_t, free
        ALIAS _ZdaPvmSt11align_val_t, free
        ALIAS _ZdlPvRKSt9nothrow_t, free
        ALIAS _ZdaPvRKSt9nothrow_t, free
        ALIAS _ZdlPvSt11align_val_tRKSt9nothrow_t, free
        ALIAS _ZdaPvSt11align_val_tRKSt9nothrow_t, free

        .section .note.GNU-stack, "", @progbits
