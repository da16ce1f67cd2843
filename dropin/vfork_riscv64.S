/*
 * Purpose: vfork for the drop-in: see vfork_x86_64.S. As on aarch64 it is a clone with CLONE_VM |
 * CLONE_VFORK on the same stack.
 */
#include <sys/syscall.h>
#define READY  0                        /* <stook/layout.h> */
#define INSIDE 4                        /* and BARRED: two bytes in one load and store */
#define BARRED 5
#define FLAGS  (0x100 | 0x4000 | 17)    /* CLONE_VM | CLONE_VFORK | SIGCHLD */

        .text
        .globl vfork
        .type vfork, %function
        .p2align 2
vfork:
        .cfi_startproc
        la.tls.ie t0, stook_thread
        add t0, t0, tp
        lw t1, READY(t0)
        lhu t2, INSIDE(t0)
        li t3, 1
        sb t3, BARRED(t0)
        sw zero, READY(t0)
        li a0, FLAGS
        li a1, 0                        /* the same stack; the return address is in ra */
        li a2, 0
        li a3, 0
        li a4, 0
        li a7, __NR_clone
        ecall
        beqz a0, 1f                     /* the child */
        sh t2, INSIDE(t0)
        sw t1, READY(t0)
        bltz a0, 2f
1:      ret
2:      addi sp, sp, -16
        .cfi_adjust_cfa_offset 16
        sd ra, 8(sp)
        .cfi_rel_offset ra, 8
        neg a0, a0
        sd a0, 0(sp)
        call __errno_location@plt
        ld t0, 0(sp)
        sw t0, 0(a0)
        ld ra, 8(sp)
        .cfi_restore ra
        addi sp, sp, 16
        .cfi_adjust_cfa_offset -16
        li a0, -1
        ret
        .cfi_endproc
        .size vfork, . - vfork

        .section .note.GNU-stack, "", %progbits
