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

/* The same for a call of entry point \by: MISS of hot_x86_64.h. */
.macro MISS name, to, argument, by
        .hidden \to
        .globl \name
        .type \name, %function
        .p2align 2
\name:
        .cfi_startproc
        li \argument, \by
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
        MISS free, stook_drop_in_free_miss, a1, 0
        MISS stook_hot_free_known, stook_drop_in_free_miss, a1, 0
        .hidden stook_hot_free_known
        GO calloc, stook_drop_in_calloc_miss
        GO aligned_alloc, stook_aligned_alloc_miss
        GO memalign, stook_memalign_miss
        GO posix_memalign, stook_posix_memalign_miss
        MISS free_sized, stook_drop_in_free_sized_miss, a2, 0

        ALIAS cfree, free
        ALIAS free_aligned_sized, free

        MISS _Znwm, stook_new_miss, a1, 1
        MISS _Znam, stook_new_miss, a1, 2
        MISS _ZnwmRKSt9nothrow_t, stook_new_nothrow_miss, a2, 1
        MISS _ZnamRKSt9nothrow_t, stook_new_nothrow_miss, a2, 2
        MISS _ZnwmSt11align_val_t, stook_new_aligned_miss, a2, 3
        MISS _ZnamSt11align_val_t, stook_new_aligned_miss, a2, 4
        MISS _ZnwmSt11align_val_tRKSt9nothrow_t, stook_new_aligned_nothrow_miss, a3, 3
        MISS _ZnamSt11align_val_tRKSt9nothrow_t, stook_new_aligned_nothrow_miss, a3, 4

        MISS _ZdlPv, stook_drop_in_free_miss, a1, 1
        MISS _ZdaPv, stook_drop_in_free_miss, a1, 2
        MISS _ZdlPvm, stook_drop_in_free_sized_miss, a2, 1
        MISS _ZdaPvm, stook_drop_in_free_sized_miss, a2, 2
        MISS _ZdlPvSt11align_val_t, stook_drop_in_free_miss, a1, 3
        MISS _ZdaPvSt11align_val_t, stook_drop_in_free_miss, a1, 4
        ALIAS _ZdlPvRKSt9nothrow_t, _ZdlPv
        ALIAS _ZdaPvRKSt9nothrow_t, _ZdaPv
        ALIAS _ZdlPvmSt11align_val_t, _ZdlPvSt11align_val_t
        ALIAS _ZdaPvmSt11align_val_t, _ZdaPvSt11align_val_t
        ALIAS _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdlPvSt11align_val_t
        ALIAS _ZdaPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_t

        .section .note.GNU-stack, "", %progbits
