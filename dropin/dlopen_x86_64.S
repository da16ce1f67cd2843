/*
 * Purpose: dlopen for the drop-in, without RTLD_DEEPBIND. With that flag a library's calls go to
 * its own dependencies first, and libc is one of them: its free would get our objects. PHP opens
 * its extensions so.
 *
 * Assembly, because dlopen goes by its return address: it says whose RUNPATH, $ORIGIN and namespace
 * count. So the next dlopen is jumped to with everything but the flag as it came. foreign.c finds
 * it.
 */
#define DEEPBIND 8                      /* <dlfcn.h> of glibc; musl ignores the bit */

        .text
        .globl dlopen
        .type dlopen, @function
        .p2align 4
dlopen:
        .cfi_startproc
        endbr64
        andl $~DEEPBIND, %esi
        movq stook_next_dlopen(%rip), %rax
        testq %rax, %rax
        jz 1f
        jmp *%rax
1:      pushq %rdi
        .cfi_adjust_cfa_offset 8
        pushq %rsi
        .cfi_adjust_cfa_offset 8
        subq $8, %rsp                   /* aligned for the call */
        .cfi_adjust_cfa_offset 8
        call stook_find_next_dlopen
        addq $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq %rsi
        .cfi_adjust_cfa_offset -8
        popq %rdi
        .cfi_adjust_cfa_offset -8
        testq %rax, %rax
        jz 2f
        jmp *%rax
2:      ret                             /* NULL: there is no other */
        .cfi_endproc
        .size dlopen, . - dlopen

        .section .note.GNU-stack, "", @progbits
