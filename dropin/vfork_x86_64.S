/*
 * Purpose: vfork for the drop-in. The child runs in the parent's memory, thread record
 * included, but the kernel does not protect its sections. So it gets a record that sends it to the
 * locked backend: ready 0, barred. The parent sleeps meanwhile, and gets `ready`, `barred` and
 * `inside` back as they were. Direct sections ask no record, so none is used in the process while a
 * vfork is under way (src/direct/direct.c D1).
 *
 * It is assembly because the child returns through this frame first. All that the parent needs
 * afterwards stays in registers, which the two do not share. A handler that runs before the system
 * call finds a barred thread.
 */
#include <sys/syscall.h>
#define READY  0                        /* <stook/layout.h> */
#define INSIDE 4                        /* and BARRED: two bytes in one load and store */
#define BARRED 5

        .hidden stook_direct_begin_vfork
        .hidden stook_direct_end_vfork

        .text
        .globl vfork
        .type vfork, @function
        .p2align 4
vfork:
        .cfi_startproc
        endbr64
        movq stook_thread@gottpoff(%rip), %rsi
        movq %fs:READY(%rsi), %rdx      /* INSIDE, too */
        movb $1, %fs:BARRED(%rsi)
        movl $0, %fs:READY(%rsi)
        pushq %rdx
        .cfi_adjust_cfa_offset 8
        call stook_direct_begin_vfork
        popq %rdx
        .cfi_adjust_cfa_offset -8
        movq stook_thread@gottpoff(%rip), %rsi
        popq %rdi                       /* the return address: the child overwrites the stack */
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rdi
        movl $__NR_vfork, %eax
        syscall
        pushq %rdi
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rip, -8
        testl %eax, %eax
        jz 1f                           /* the child */
        pushq %rax
        .cfi_adjust_cfa_offset 8
        pushq %rdx
        .cfi_adjust_cfa_offset 8
        pushq %rsi
        .cfi_adjust_cfa_offset 8
        call stook_direct_end_vfork
        popq %rsi
        .cfi_adjust_cfa_offset -8
        popq %rdx
        .cfi_adjust_cfa_offset -8
        popq %rax
        .cfi_adjust_cfa_offset -8
        movq %rdx, %rcx
        shrq $8 * INSIDE, %rcx
        movw %cx, %fs:INSIDE(%rsi)
        movl %edx, %fs:READY(%rsi)
        testl %eax, %eax
        js 2f
1:      ret
2:      negl %eax
        pushq %rax
        .cfi_adjust_cfa_offset 8
        call __errno_location@PLT       /* aligned: two words below the caller's call */
        popq %rdx
        .cfi_adjust_cfa_offset -8
        movl %edx, (%rax)
        movl $-1, %eax
        ret
        .cfi_endproc
        .size vfork, . - vfork

        .section .note.GNU-stack, "", @progbits
