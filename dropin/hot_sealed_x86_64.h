/*
 * Purpose: malloc, new, free and delete where malloc's objects have seals: src/watch/watch_sealed.c
 * in fewer instructions. The sections are those of hot_x86_64.h; what stands around them touches
 * only an object that is this call's, but for the compare-and-swap of its seal, by which of two
 * frees one succeeds (harden/seal.h).
 * Place: included by hot_x86_64.S alone. Calls come here from the bound, which is below the index
 *  of the thread record: with seals that is the area that other sections have (stook_direct_seal).
 *  Where there is no bound, they come from SWAP_POP and SWAP_PUSH: the line of a sealed cache's own
 *  index is always empty, and without room. stook_sealed_most and stook_sealed_first say whether
 *  this may be taken. Whatever is not the common case, or at fault, goes to \miss with its
 *  arguments as they were, and C looks at it from the start again.
 * Invariants: those of watch_sealed.c. dropin/entry.c compares the numbers.
 */
#define SEAL          8                 /* STOOK_SEAL_BYTES */
#define SEALED_MOST   0x1fffe           /* 1 less than the bytes that a seal can say */
#define SEAL_FACTOR   8                 /* of struct stook_seal_secret */
#define SEAL_TIE      16
#define SEAL_UNTIE    24
#define SEALED_AT     8                 /* of struct stook_sealed, behind its line */
#define SEALED_FIRST  12
#define SEALED_MASK   16
#define SEALED_SHIFT  5
#define BLOCK_PLACES  8
#define BLOCKS        64

        .hidden stook_class_of
        .hidden stook_sealed_classes
        .hidden stook_sealed_most
        .hidden stook_sealed_first
        .hidden stook_seal_secret
        .hidden stook_groups_exist
        .hidden stook_delay_blocks
        .hidden stook_watch_refuse
        .hidden stook_watch_gone
        .weak __libc_single_threaded

        .section .rodata.stook_sealed, "a"
        .balign 16
delay_factor:
        .quad 0x9e3779b97f4a7c15        /* STOOK_DELAY_FACTOR */
seal_ones:
        .quad 0x0101010101010101        /* STOOK_SEAL_ONES */
        .text

/* As FIND_AREA. */
.macro FIND_SEALED_AREA
#ifdef __GLIBC__
        movq SEALED_AREA+stook_direct(%rip), %r11
#endif
.endm

/*
 * \key = the key of the object in \object, \canary = its canary.
 */
.macro SEAL_KEY object, key, canary
        movq stook_seal_secret(%rip), \key
        xorq \object, \key
        imulq SEAL_FACTOR+stook_seal_secret(%rip), \key
        movq \key, \canary
        bswapq \canary
        orq seal_ones(%rip), \canary
.endm

/*
 * \seal, as loaded, becomes one less than the bytes that it says; to \bad if it is no seal of that
 * key, says something else than \says of them, or no bytes.
 */
.macro UNTIE seal, key, says, bad
        subq \key, \seal
        imulq SEAL_UNTIE+stook_seal_secret(%rip), \seal
        subq $\says + 16, \seal
        rorq $4, \seal
        cmpq $SEALED_MOST, \seal
        ja \bad
.endm

/*
 * rdi = the size; \says: what the seal says of it, but for the size. \zero 1: the object reads as
 * zeros. What the next call will look at is fetched: it is that of an earlier free.
 */
.macro SEALED_POP name, miss, says, checked, zero=0
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
        leaq -1(%rdi), %rax
        cmpq stook_sealed_most(%rip), %rax      /* 0, too */
        OTHERS_TO \checked, \miss
        cmpl $0, stook_groups_exist(%rip)
        jne \miss
        leaq SEAL + 15(%rdi), %rax
        shrq $4, %rax
        leaq stook_class_of(%rip), %rsi
        movzbl (%rsi,%rax), %eax
        leaq stook_sealed_classes(%rip), %rsi
        shll $SEALED_SHIFT, %eax
        addq %rax, %rsi                         /* the class, until the object is sealed */
        FIND_SEALED_AREA
        DESCRIBE \miss
        movq (%rsi), %r8
        FIND_SLOT \miss, \miss
        TAKE \miss, \miss
        movl SEALED_AT(%rsi), %esi
        prefetchw (%rdx)                        /* the next one, or no address */
        prefetchw (%rdx,%rsi)
        movq (%rax,%rsi), %r9                   /* the seal */
        SEAL_KEY %rax, %rcx, %r8
        UNTIE %r9, %rcx, 0, \name\()_bad
        andl $-8, %r9d                          /* the word that the last byte is in */
        cmpq %r8, (%rax)
        jne \name\()_bad
        cmpq %r8, (%rax,%r9)
        jne \name\()_bad
        movq %rdi, %rdx
        shlq $4, %rdx
        orq $\says, %rdx
        imulq SEAL_TIE+stook_seal_secret(%rip), %rdx
        addq %rcx, %rdx
        movq $0, (%rax)
        movq $0, (%rax,%r9)
        movq %r8, (%rax,%rdi)
        movq %rdx, (%rax,%rsi)
.if \zero
        movq %rdi, %rdx
        movq %rax, %rdi
        xorl %esi, %esi
        jmp *memset@GOTPCREL(%rip)              /* returns the object */
.else
        ret
.endif
\name\()_bad:
        pushq %rdi
        .cfi_adjust_cfa_offset 8
        movq %rax, %rdi
        call stook_watch_refuse
        popq %rdi
        .cfi_adjust_cfa_offset -8
        jmp \miss
        .cfi_endproc
        .size \name, . - \name
.endm

/* Behind FIND_SEALED_AREA: rcx = the block of the slot of now, which others may share; or 0. */
.macro FIND_BLOCK
#ifdef __GLIBC__
        movl %fs:MM_CID(%r11), %eax
#else
        movq stook_thread@gottpoff(%rip), %rax
        addq stook_sections(%rip), %rax
        movl %fs:MM_CID(%rax), %eax
#endif
        leaq stook_delay_blocks(%rip), %rcx
        andl $BLOCKS - 1, %eax
        movq (%rcx,%rax,8), %rcx
.endm

/*
 * The end of a free. rdi = the object, r8 = its class, r9 = one less than the bytes that were asked
 * for, r11 = the canary, rdx = its new seal. \lock: of the compare-and-swap, where other threads
 * are.
 */
.macro WAIT name, lock
        andl $-8, %r9d
        movq %r11, (%rdi)                       /* it is filled */
        movq %r11, (%rdi,%r9)
        FIND_SEALED_AREA
        FIND_BLOCK
        testq %rcx, %rcx
        jz \name\()_gone
        movq (%rcx), %rax                       /* which place: the calls before decided it */
        xorq %rax, %rdx
        imulq delay_factor(%rip), %rdx
        shrq $40, %rax
        movq %rdx, (%rcx)
        andl SEALED_MASK(%r8), %eax
        addl SEALED_FIRST(%r8), %eax
        leaq BLOCK_PLACES(%rcx,%rax,8), %rcx
        movq (%r8), %r8
5:      movq (%rcx), %rax
        \lock cmpxchgq %rdi, (%rcx)
        jne 5b
        movq %rax, %rdi
        testq %rax, %rax
        jz 6f
        DESCRIBE \name\()_gone
        FIND_SLOT \name\()_gone, \name\()_gone
        addq %r8, %r10
        PUSH %r10, \name\()_gone, \name\()_gone
6:
.endm

/*
 * rdi = an object of the cache of the index rdx / 8, or rdx 0. \says: what its seal has to say, but
 * for the size. \sized 1: rsi = the size that it has to say.
 */
.macro SEALED_PUSH name, miss, says, sized, checked
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
        movl %edx, %ecx
        subl stook_sealed_first(%rip), %ecx
        cmpl $CLASSES * 16, %ecx                /* no class's cache, or not the short way */
        OTHERS_TO \checked, \miss
        leaq stook_sealed_classes(%rip), %r8
        leaq (%r8,%rcx,1 << (SEALED_SHIFT - 4)), %r8    /* the class */
        movl SEALED_AT(%r8), %ecx
        movq (%rdi,%rcx), %rax                  /* the seal */
        SEAL_KEY %rdi, %r10, %r11
        movq %rax, %r9
        UNTIE %r9, %r10, \says, \miss
.if \sized
        leaq 1(%r9), %rdx
        cmpq %rsi, %rdx
        jne \miss
.endif
        movl %ecx, %edx
        subl %r9d, %edx                         /* one more than the canary's bytes */
        cmpl $9, %edx
        jb 7f
        cmpq %r11, 1(%rdi,%r9)
        jne \miss
\name\()_whole:
        imulq $-(\says), SEAL_TIE+stook_seal_secret(%rip), %rdx
        addq %rax, %rdx                         /* that it is free */
        movq __libc_single_threaded@GOTPCREL(%rip), %r10
        cmpb $0, (%r10)
        je \name\()_shared
        cmpxchgq %rdx, (%rdi,%rcx)
        jne \miss
        WAIT \name
        ret
\name\()_shared:
        lock cmpxchgq %rdx, (%rdi,%rcx)
        jne \miss
        WAIT \name, lock
        ret
7:      cmpl $1, %edx                           /* as many bytes as there are before the seal */
        je \name\()_whole
        pushq %rcx
        .cfi_adjust_cfa_offset 8
        leal (,%rdx,8), %ecx
        movq 1(%rdi,%r9), %rdx
        negl %ecx
        xorq %r11, %rdx
        addl $72, %ecx
        shlq %cl, %rdx
        popq %rcx
        .cfi_adjust_cfa_offset -8
        testq %rdx, %rdx
        jz \name\()_whole
        jmp \miss
\name\()_gone:
        jmp stook_watch_gone
        .cfi_endproc
        .size \name, . - \name
.endm
