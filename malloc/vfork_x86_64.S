/*
 * Purpose: vfork for the drop-in. The child runs in the parent's memory, thread-local line included, but the
 * kernel does not protect its sections. So it gets a line that sends it to the locked backend: ready 0, barred.
 * The parent, who sleeps meanwhile, gets both back as they were.
 *
 * Assembly, because the child returns through this frame first: all that the parent needs afterwards stays in
 * registers, which the two do not share. A handler that runs before the system call finds a barred thread.
 */
#include <sys/syscall.h>
#define READY  0                        /* <stook/layout.h> */
#define BARRED 5

        .text
        .globl vfork
        .type vfork, @function
        .p2align 4
vfork:
        .cfi_startproc
        endbr64
        popq %rdi                       /* the return address: the child overwrites the stack */
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rdi
        movq stook_thread@gottpoff(%rip), %rsi
        movl %fs:READY(%rsi), %edx
        movzbl %fs:BARRED(%rsi), %r8d
        movb $1, %fs:BARRED(%rsi)
        movl $0, %fs:READY(%rsi)
        movl $__NR_vfork, %eax
        syscall
        pushq %rdi
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rip, -8
        testl %eax, %eax
        jz 1f                           /* the child */
        movb %r8b, %fs:BARRED(%rsi)
        movl %edx, %fs:READY(%rsi)
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
