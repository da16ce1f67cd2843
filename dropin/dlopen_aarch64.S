/*
 * Purpose: dlopen for the drop-in, without RTLD_DEEPBIND: see dlopen_x86_64.S. The return address
 * stays in x30.
 */
#define DEEPBIND 8

        .text
        .globl dlopen
        .type dlopen, %function
        .p2align 4
dlopen:
        .cfi_startproc
        hint #34                        /* bti c */
        and w1, w1, #~DEEPBIND
        adrp x16, stook_next_dlopen
        ldr x16, [x16, #:lo12:stook_next_dlopen]
        cbz x16, 1f
        br x16
1:      stp x29, x30, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        stp x0, x1, [sp, #16]
        bl stook_find_next_dlopen
        mov x16, x0
        ldp x0, x1, [sp, #16]
        ldp x29, x30, [sp], #32
        .cfi_adjust_cfa_offset -32
        .cfi_restore x29
        .cfi_restore x30
        cbz x16, 2f
        br x16
2:      mov x0, #0                      /* NULL: there is no other */
        ret
        .cfi_endproc
        .size dlopen, . - dlopen

        .section .note.GNU-stack, "", %progbits
