/*
 * Purpose: dlopen for the drop-in, without RTLD_DEEPBIND: see dlopen_x86_64.S. The return address
 * stays in ra.
 */
#define DEEPBIND 8

        .text
        .globl dlopen
        .type dlopen, %function
        .p2align 2
dlopen:
        .cfi_startproc
        andi a1, a1, ~DEEPBIND
        lla t1, stook_next_dlopen
        ld t1, 0(t1)
        beqz t1, 1f
        jr t1
1:      addi sp, sp, -32
        .cfi_adjust_cfa_offset 32
        sd ra, 24(sp)
        .cfi_rel_offset ra, 24
        sd a0, 0(sp)
        sd a1, 8(sp)
        call stook_find_next_dlopen
        mv t1, a0
        ld a0, 0(sp)
        ld a1, 8(sp)
        ld ra, 24(sp)
        .cfi_restore ra
        addi sp, sp, 32
        .cfi_adjust_cfa_offset -32
        beqz t1, 2f
        jr t1
2:      li a0, 0                        /* NULL: there is no other */
        ret
        .cfi_endproc
        .size dlopen, . - dlopen

        .section .note.GNU-stack, "", %progbits
