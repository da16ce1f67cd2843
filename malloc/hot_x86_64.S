/*
 * Purpose: malloc and free of the drop-in where the common case holds, in as few instructions as it takes: the
 * sections of <stook/section.h> with what malloc/malloc_hot.h does around them. C spends a third more on them:
 * gcc 12 cannot be trusted with an asm goto that has outputs, so a result is tested that is known.
 * Place: misses go to stook_malloc_miss and stook_drop_in_free_miss, which look at everything again.
 * Invariants: those of <stook/section.h>: rseq_cs is the only field of the kernel's area that is written; one
 *  commit, the last instruction of the section; the signature right before the abort label, and the arguments
 *  untouched until the commit, so that an aborted call goes to its miss as if it had just begun.
 *  A thread that has not enrolled has an area of zeros (its own_rseq, or libc's, not registered): what is
 *  stored there is harmless, and `ready` 0 sends it away. `ready` is read before all that, once: a handler may
 *  enrol the thread at any instruction, and a section that began before that is protected by nobody.
 */
#define READY      0                    /* <stook/layout.h> */
#define RSEQ_CS    8
#define MM_CID     24
#define SLOT_SHIFT 19
#define OBJECTS    32
#define CAPACITY   8
#define POP        0xffff
#define TABLE_MAX  4096                 /* STOOK_CLASS_TABLE_MAX */
#define SIGNATURE  0x53053053

        .hidden stook_sections
        .hidden stook_class_line
        .hidden stook_range
        .hidden stook_shapes
        .hidden stook_malloc_miss
        .hidden stook_drop_in_free_miss

/* A section from label 1 to label 2 that goes to \miss when aborted; its descriptor is label 3. */
.macro DESCRIBE miss
        .pushsection __rseq_cs, "aw"
        .balign 32
3:      .long 0, 0
        .quad 1f, 2f - 1f, 4f
        .popsection
        .pushsection .text.unlikely, "ax"
        .byte 0x0f, 0xb9, 0x3d          /* ud1: the signature is its displacement */
        .long SIGNATURE
4:      jmp \miss
        .popsection
.endm

/*
 * r10 = bytes from slot 0 to the slot whose index the kernel shows now. \miss if it is not ready, or the index is not
 * at its fixed place: stook_sections.area is 0 then, and the line's no_index is read. Uses rax, r11.
 */
.macro SLOT miss
        movq stook_thread@gottpoff(%rip), %rax
        leaq 3b(%rip), %r10
        movl %fs:READY(%rax), %r11d             /* before the area: see above */
        addq stook_sections(%rip), %rax
        movq %r10, %fs:RSEQ_CS(%rax)
1:      movl %fs:MM_CID(%rax), %r10d
        cmpl %r11d, %r10d
        jae \miss
        shlq $SLOT_SHIFT, %r10
.endm

        .text
        .globl malloc
        .type malloc, @function
        .p2align 6
malloc:
        .cfi_startproc
        endbr64
        cmpq $TABLE_MAX, %rdi
        ja stook_malloc_miss
        leaq 15(%rdi), %rdx
        leaq stook_class_line(%rip), %r11
        shrq $4, %rdx
        movq (%r11,%rdx,8), %rdx
        DESCRIBE stook_malloc_miss
        SLOT stook_malloc_miss
        movq (%r10,%rdx), %r9                   /* main */
        movq (%r9), %r10                        /* its word */
        movzwl %r10w, %r11d
        testl %r11d, %r11d
        jz stook_malloc_miss
        movq OBJECTS - 8(%r9,%r11,8), %rax
        addq $POP, %r10
        movq %r10, (%r9)
2:      ret
        .cfi_endproc
        .size malloc, . - malloc

        .globl free
        .type free, @function
        .p2align 6
free:
        .cfi_startproc
        endbr64
        movq %rdi, %rax
        subq stook_range(%rip), %rax
        cmpq 8+stook_range(%rip), %rax
        jae stook_drop_in_free_miss             /* NULL and foreign pointers, too */
        movq 16+stook_range(%rip), %rdx
        shrq $12, %rax
        leaq stook_shapes(%rip), %rcx
        movl %edi, %esi
        movq (%rdx,%rax,8), %rax                /* the entry */
        movq %rax, %rdx
        shrq $48, %rdx                          /* cache index * 8: bits 48 to 50 are zero. 0 has no magic: a miss */
        shll $12, %eax
        andl $0xfff, %esi
        andl $0x7f000, %eax
        orl %esi, %eax                          /* offset in the slab */
        cmpl %eax, 8(%rcx,%rdx,2)
        jb stook_drop_in_free_miss              /* behind the last object */
        movq (%rcx,%rdx,2), %rcx
        imulq %rcx, %rax
        cmpq %rcx, %rax
        jae stook_drop_in_free_miss             /* not the start of one */
        DESCRIBE stook_drop_in_free_miss
        SLOT stook_drop_in_free_miss
        addq 16+stook_sections(%rip), %r10
        movq (%r10,%rdx,8), %r9                 /* main: a line is 64 bytes */
        movq (%r9), %r10
        movzwl %r10w, %r11d
        cmpl CAPACITY(%r9), %r11d
        jae stook_drop_in_free_miss
        cmpq %rdi, OBJECTS - 8(%r9,%r11,8)
        je stook_drop_in_free_miss              /* free already */
        movq %rdi, OBJECTS(%r9,%r11,8)
        incq %r10
        movq %r10, (%r9)
2:      ret
        .cfi_endproc
        .size free, . - free

        .section .note.GNU-stack, "", @progbits
