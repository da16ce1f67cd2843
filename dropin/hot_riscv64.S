/*
 * Purpose: the drop-in's calls on a machine without sections: each goes where hot_x86_64.S goes
 * when it misses, with its arguments as they are, and that uses the locked backend. The names, and
 * what they are called in debuggers, are those of the other machines.
 */
.macro GO name, to
        .hidden \to
        .globl \name
        .type \name, %function
        .p2align 2
\name:
        .cfi_startproc
        tail \to
        .cfi_endproc
        .set .L\name\()_bytes, . - \name
        .size \name, .L\name\()_bytes
.endm

/* Weak, so that debuggers and profilers show the name that the code has here. */
.macro ALIAS name, to
        .weak \name
        .type \name, %function
        .set \name, \to
        .size \name, .L\to\()_bytes
.endm

        .text
        GO malloc, stook_malloc_miss
        GO stook_hot_object, stook_malloc_object
        .hidden stook_hot_object
        GO free, stook_drop_in_free_miss
        GO stook_hot_free_known, stook_drop_in_free_miss
        .hidden stook_hot_free_known
        GO calloc, stook_drop_in_calloc_miss
        GO aligned_alloc, stook_aligned_alloc_miss
        GO memalign, stook_memalign_miss
        GO posix_memalign, stook_posix_memalign_miss
        GO free_sized, stook_drop_in_free_sized_miss

        ALIAS cfree, free
        ALIAS free_aligned_sized, free

        GO _Znwm, stook_new_miss
        GO _Znam, stook_new_miss
        GO _ZnwmRKSt9nothrow_t, stook_new_nothrow_miss
        GO _ZnamRKSt9nothrow_t, stook_new_nothrow_miss
        GO _ZnwmSt11align_val_t, stook_new_aligned_miss
        GO _ZnamSt11align_val_t, stook_new_aligned_miss
        GO _ZnwmSt11align_val_tRKSt9nothrow_t, stook_new_aligned_nothrow_miss
        GO _ZnamSt11align_val_tRKSt9nothrow_t, stook_new_aligned_nothrow_miss

        ALIAS _ZdlPv, free
        ALIAS _ZdaPv, free
        ALIAS _ZdlPvm, free_sized
        ALIAS _ZdaPvm, free_sized
        ALIAS _ZdlPvSt11align_val_t, free
        ALIAS _ZdaPvSt11align_val_t, free
        ALIAS _ZdlPvmSt11align_val_t, free
        ALIAS _ZdaPvmSt11align_val_t, free
        ALIAS _ZdlPvRKSt9nothrow_t, free
        ALIAS _ZdaPvRKSt9nothrow_t, free
        ALIAS _ZdlPvSt11align_val_tRKSt9nothrow_t, free
        ALIAS _ZdaPvSt11align_val_tRKSt9nothrow_t, free

        .section .note.GNU-stack, "", %progbits
