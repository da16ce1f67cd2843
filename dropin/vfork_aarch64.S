/*
 * Purpose: vfork for the drop-in: see vfork_x86_64.S. aarch64 has no such system call: it is a
 * clone with CLONE_VM | CLONE_VFORK on the same stack. The kernel keeps all registers but x0.
 */
#include <sys/syscall.h>
#define READY  0                        /* <stook/layout.h> */
#define INSIDE 4                        /* and BARRED: two bytes in one load and store */
#define BARRED 5
#define FLAGS  (0x100 | 0x4000 | 17)    /* CLONE_VM | CLONE_VFORK | SIGCHLD */

        .hidden stook_direct_begin_vfork
        .hidden stook_direct_end_vfork

        .text
        .globl vfork
        .type vfork, %function
        .p2align 4
vfork:
        .cfi_startproc
        hint #34                        /* bti c */
        mrs x9, tpidr_el0
        adrp x10, :gottprel:stook_thread
        ldr x10, [x10, #:gottprel_lo12:stook_thread]
        add x9, x9, x10
        ldr w11, [x9, #READY]
        ldrh w12, [x9, #INSIDE]
        mov w13, #1
        strb w13, [x9, #BARRED]
        str wzr, [x9, #READY]
        stp x30, x9, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        .cfi_rel_offset x30, 0
        stp x11, x12, [sp, #16]
        bl stook_direct_begin_vfork
        ldp x11, x12, [sp, #16]
        ldp x30, x9, [sp], #32          /* the child overwrites the stack */
        .cfi_adjust_cfa_offset -32
        .cfi_restore x30
        mov x0, #FLAGS
        mov x1, #0                      /* the same stack; the return address is in x30 */
        mov x2, #0
        mov x3, #0
        mov x4, #0
        mov x8, #__NR_clone
        svc #0
        cbz x0, 1f                      /* the child */
        stp x30, x9, [sp, #-48]!
        .cfi_adjust_cfa_offset 48
        .cfi_rel_offset x30, 0
        stp x11, x12, [sp, #16]
        str x0, [sp, #32]
        bl stook_direct_end_vfork
        ldr x0, [sp, #32]
        ldp x11, x12, [sp, #16]
        ldp x30, x9, [sp], #48
        .cfi_adjust_cfa_offset -48
        .cfi_restore x30
        strh w12, [x9, #INSIDE]
        str w11, [x9, #READY]
        tbnz x0, #63, 2f
1:      ret
2:      neg w0, w0
        stp x29, x30, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        str w0, [sp, #16]
        bl __errno_location
        ldr w1, [sp, #16]
        str w1, [x0]
        ldp x29, x30, [sp], #32
        .cfi_adjust_cfa_offset -32
        mov w0, #-1
        ret
        .cfi_endproc
        .size vfork, . - vfork

        .section .note.GNU-stack, "", %progbits
