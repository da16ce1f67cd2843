/*
 * Purpose: malloc, new, free and delete where malloc's objects have seals: src/watch/watch_sealed.c
 * in fewer instructions. The sections are those of hot_x86_64.h; what stands around them touches
 * only an object that is this call's, but for the compare-and-swap of its seal, by which of two
 * frees one succeeds (harden/seal.h).
 * Place: included by hot_x86_64.S alone. Calls come here from SWAP_POP and SWAP_PUSH: the line of a
 *  sealed cache's own index is always empty, and without room. stook_sealed_short says whether this
 *  may be taken. Whatever is not the common case, or at fault, goes to \miss with its arguments as
 *  they were, and C looks at it from the start again.
 * Invariants: those of watch_sealed.c. dropin/entry.c compares the numbers.
 */
#define SEAL          8                 /* STOOK_SEAL_BYTES */
#define SEAL_SAYS     0x1fffff          /* STOOK_SEAL_SAYS */
#define SEAL_TIED     -0x200000         /* the other bits */
#define SEALED_AT     8                 /* of struct stook_sealed, behind its line */
#define SEALED_FIRST  12
#define SEALED_MASK   16
#define SEALED_SHIFT  5
#define BLOCK_PLACES  8
#define BLOCKS_SHIFT  58

        .hidden stook_class_of
        .hidden stook_sealed_classes
        .hidden stook_sealed_short
        .hidden stook_sealed_first
        .hidden stook_seal_secret
        .hidden stook_groups_exist
        .hidden stook_delay_blocks
        .hidden stook_watch_refuse
        .hidden stook_watch_gone
        .weak __libc_single_threaded

        .section .rodata.stook_sealed, "a"
        .balign 16
seal_mix:
        .quad 0x9e3779b97f4a7c15        /* STOOK_SEAL_MIX */
seal_ones:
        .quad 0x0101010101010101        /* STOOK_SEAL_ONES */
        .text

/*
 * rdi = the size; \says: what the seal says of it, but for the size. \zero 1: the object reads as
 * zeros. What the next call will look at is fetched: it is that of an earlier free.
 */
.macro SEALED_POP name, miss, says, zero=0
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
        cmpl $0, stook_sealed_short(%rip)
        je \miss
        cmpl $0, stook_groups_exist(%rip)
        jne \miss
        leaq -1(%rdi), %rax
        cmpq $TABLE_MAX - SEAL, %rax            /* 0, too */
        jae \miss
        leaq SEAL + 15(%rdi), %rax
        shrq $4, %rax
        leaq stook_class_of(%rip), %rsi
        movzbl (%rsi,%rax), %eax
        leaq stook_sealed_classes(%rip), %rsi
        shll $SEALED_SHIFT, %eax
        addq %rax, %rsi                         /* the class, until the object is sealed */
        FIND_AREA
        DESCRIBE \miss
        movq (%rsi), %r8
        FIND_SLOT \miss, \miss
        TAKE \miss, \miss
        movl SEALED_AT(%rsi), %esi
        prefetchw (%rdx)                        /* the next one, or no address */
        prefetchw (%rdx,%rsi)
        movq stook_seal_secret(%rip), %rcx
        movq 8+stook_seal_secret(%rip), %r8
        addq %rax, %rsi
        xorq %rax, %rcx
        movq (%rsi), %r9                        /* the seal */
        imulq %r8, %rcx                         /* the key */
        movl %r9d, %edx
        andl $SEAL_SAYS, %edx
        movq %rdx, %r11
        imulq %r8, %r11
        xorq %rcx, %r9
        xorq %r9, %r11
        testq $SEAL_TIED, %r11
        jne \name\()_bad
        testb $15, %dl
        jne \name\()_bad                        /* not free */
        movl $8, %r11d
        shrl $4, %edx
        cmpl $16, %edx
        cmovb %r11d, %edx                       /* where what was asked for ended */
        movq %rcx, %r9
        bswapq %r9
        orq seal_ones(%rip), %r9                /* the canary */
        movq %r9, %r11
        notq %r11
        cmpq %r11, (%rax)
        jne \name\()_bad
        cmpq %r11, -8(%rax,%rdx)
        jne \name\()_bad
        movq $0, (%rax)
        movq $0, -8(%rax,%rdx)
        movq %rdi, %rdx
        shlq $4, %rdx
        orq $\says, %rdx
        imulq %rdx, %r8
        xorq %r8, %rcx
        andq $SEAL_TIED, %rcx
        orq %rdx, %rcx
        movq %r9, (%rax,%rdi)
        movq %rcx, (%rsi)
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

/*
 * rdi = an object of the cache of the index rdx / 8, or rdx 0. \says: what its seal has to say, but
 * for the size. \sized 1: rsi = the size that it has to say.
 */
.macro SEALED_PUSH name, miss, says, sized
        .type \name, @function
        .p2align 6
\name:
        .cfi_startproc
        subl stook_sealed_first(%rip), %edx
        cmpl $CLASSES * 16, %edx                /* no class's cache, or not the short way */
        jae \miss
        leaq stook_sealed_classes(%rip), %r8
        leaq (%r8,%rdx,1 << (SEALED_SHIFT - 4)), %r8    /* the class */
        movl SEALED_AT(%r8), %ecx
        movq stook_seal_secret(%rip), %r10
        movq 8+stook_seal_secret(%rip), %r11
        movq (%rdi,%rcx), %rax                  /* the seal */
        xorq %rdi, %r10
        imulq %r11, %r10                        /* the key */
        movl %eax, %r9d
        andl $SEAL_SAYS, %r9d
        imulq %r9, %r11
        xorq %r10, %r11
        xorq %rax, %r11
        testq $SEAL_TIED, %r11
        jne \miss
        movl %r9d, %r11d
        andl $15, %r11d
        shrl $4, %r9d                           /* the size */
        cmpl $\says, %r11d
        jne \miss
.if \sized
        cmpq %rsi, %r9
        jne \miss
.endif
        movq %r10, %r11
        movl %ecx, %edx
        bswapq %r11
        subl %r9d, %edx
        orq seal_ones(%rip), %r11               /* the canary */
        cmpl $8, %edx
        jb 7f
        cmpq %r11, (%rdi,%r9)
        jne \miss
\name\()_whole:
        movl %eax, %r9d
        movq 8+stook_seal_secret(%rip), %rdx
        andl $SEAL_SAYS - 15, %r9d
        addq %rdi, %rcx
        imulq %r9, %rdx
        xorq %r10, %rdx
        andq $SEAL_TIED, %rdx
        orq %r9, %rdx
        movq __libc_single_threaded@GOTPCREL(%rip), %r9
        cmpb $0, (%r9)
        je \name\()_shared
        cmpxchgq %rdx, (%rcx)
9:      jne \miss
        andl $SEAL_SAYS, %edx
        movl $8, %eax
        shrl $4, %edx
        notq %r11
        cmpl $16, %edx
        cmovb %eax, %edx
        movq %r11, (%rdi)                       /* it is filled */
        movq %r11, -8(%rdi,%rdx)
        movq stook_thread@gottpoff(%rip), %rax
        addq %fs:0, %rax
        imulq seal_mix(%rip), %rax
        leaq stook_delay_blocks(%rip), %rcx
        shrq $BLOCKS_SHIFT, %rax
        movq (%rcx,%rax,8), %rcx
        testq %rcx, %rcx
        jz \name\()_gone
        xorq (%rcx), %r10
        imulq seal_mix(%rip), %r10
        movq %r10, (%rcx)
        shrq $40, %r10
        andl SEALED_MASK(%r8), %r10d
        addl SEALED_FIRST(%r8), %r10d
        leaq BLOCK_PLACES(%rcx,%r10,8), %rcx
        movl SEALED_AT(%r8), %edx
        movq (%r8), %r8
\name\()_place:
        movq (%rcx), %rax
        cmpb $0, (%r9)
        je 6f
        cmpxchgq %rdi, (%rcx)
5:      jne \name\()_place
        movq %rax, %rdi
        testq %rax, %rax
        jz 8f
        prefetchw (%rax)                        /* the next allocation's */
        prefetchw (%rax,%rdx)
        FIND_AREA
        DESCRIBE \name\()_gone
        FIND_SLOT \name\()_gone, \name\()_gone
        addq %r8, %r10
        PUSH %r10, \name\()_gone, \name\()_gone
8:      ret
6:      lock cmpxchgq %rdi, (%rcx)
        jmp 5b
\name\()_shared:
        lock cmpxchgq %rdx, (%rcx)
        jmp 9b
7:      testl %edx, %edx                        /* as many bytes as there are before the seal */
        jz \name\()_whole
        negl %edx
        movq (%rdi,%r9), %r9
        leal 64(,%rdx,8), %edx
        xorq %r11, %r9
        xchgl %ecx, %edx
        shlq %cl, %r9
        movl %edx, %ecx
        testq %r9, %r9
        jz \name\()_whole
        jmp \miss
\name\()_gone:
        jmp stook_watch_gone
        .cfi_endproc
        .size \name, . - \name
.endm
