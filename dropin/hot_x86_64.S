/*
 * Purpose: the drop-in's calls where the common case holds, in as few instructions as it takes: the
 * sections of <stook/section.h> with what malloc/malloc_hot.h does around them. The same in C takes
 * a quarter (malloc) to a third (free) more instructions, and has no guess. A section in C returns
 * its result in a variable, and C tests the variable although the section has branched already. An
 * asm goto could jump instead, but gcc 12 miscompiles one that has outputs. operator new is malloc
 * with a miss of its own, which knows what the language asks for (new_delete.c). Every delete, and
 * every other name of free, is free itself. Those with a size have a copy of it whose miss knows
 * the size; no alignment is looked at.
 *
 * Each of malloc, new, free and delete has two sections. The first is direct: it takes the area and
 * the bound of ready slots from stook_direct, one for all threads, and asks no thread record. The
 * second is checked: it asks the record, and pops without the guess of the top object. A call goes
 * there where the bound sends it away, and an allocation also where the guess is wrong (TAKE). The
 * bound sends a call away on a slot that no thread has made ready, while a vfork is under way
 * anywhere in the process, where direct sections are off, and where malloc's objects have seals
 * (hot_sealed_x86_64.h). src/direct/direct.c has the
 * argument. The other calls, and the swaps behind these, are checked only.
 * Place: made of the macros of hot_x86_64.h. Misses go to stook_malloc_miss and stook_malloc_object
 *  (malloc/malloc.h), and to the functions of hot.h. These look at everything again.
 * Invariants: those of <stook/section.h>: rseq_cs is the only field of the kernel's area that is
 *  written; one commit, the last instruction of the section; the signature right before the abort
 *  label. The arguments stay untouched until the commit, so an aborted call goes to its miss as if
 *  it had just begun. A thread that has not enrolled has an area of zeros (its own_rseq, or libc's,
 *  not registered). What is stored there is harmless, and `ready` 0 makes the section miss. `ready`
 *  is read before all that, once: a handler may enrol the thread at any instruction, and the kernel
 *  does not protect a section that began before that. A direct section reads its bound inside: it
 *  is above 0 only where each thread was registered before it ran anything. One that began before
 *  the start has the thread record for its area, and the record's no_index for its index.
 */
#include "hot_x86_64.h"
#include "hot_sealed_x86_64.h"

        .hidden stook_sections
        .hidden stook_class_of_large
        .hidden stook_range
        .hidden stook_shapes
        .hidden stook_malloc_seal_bytes
        .hidden stook_malloc_miss
        .hidden stook_malloc_object
        .hidden stook_drop_in_calloc_miss
        .hidden stook_aligned_alloc_miss
        .hidden stook_memalign_miss
        .hidden stook_posix_memalign_miss
        .hidden stook_new_aligned_miss
        .hidden stook_new_aligned_nothrow_miss
        .hidden stook_new_miss
        .hidden stook_new_nothrow_miss
        .hidden stook_drop_in_free_miss
        .hidden stook_drop_in_free_sized_miss

/*
 * malloc/malloc.h: uintptr_t[STOOK_CLASS_LINE_LARGE + STOOK_CLASSES]. It is here instead of in
 * size_class.c, for it stands at a known distance from all descriptors, so that one register
 * addresses both.
 */
        .section .data.rel.stook_hot, "aw"
        .globl stook_class_line
        .hidden stook_class_line
        .type stook_class_line, @object
        .balign 64
stook_class_line:
        .zero BY_CLASS + 8 * CLASSES
        .size stook_class_line, . - stook_class_line

/*
 * direct/direct.h. Before the start the area is the thread record: its distance from the thread
 * pointer is known when this file is relocated. Linkers refuse a relocation that would store it
 * (R_X86_64_TPOFF64), so a function returns it: "the address" of an indirect function. The loader
 * stores that behind all other relocations of this file, and before it can be called.
 */
        .globl stook_direct
        .hidden stook_direct
        .type stook_direct, @object
        .balign 64
stook_direct:
#ifdef __GLIBC__
        .quad area_at_first, 0, 0
#else
        .quad 0, 0, 0
#endif
        .size stook_direct, . - stook_direct

#ifdef __GLIBC__
        .section .text.startup.stook_hot, "ax", %progbits       /* src/order.ld */
        .type area_at_first, @gnu_indirect_function
area_at_first:
        .cfi_startproc
#ifdef __CET__
        endbr64
#endif
        movq stook_thread@gottpoff(%rip), %rax
        ret
        .cfi_endproc
        .size area_at_first, . - area_at_first
#endif

        /* enum stook_entry_point; an aligned new and an aligned delete are kinds of their own. */
        .section .text.stook_miss, "ax", %progbits              /* src/order.ld */
        MISS free_miss, stook_drop_in_free_miss, %esi, 0
        MISS free_sized_miss, stook_drop_in_free_sized_miss, %edx, 0
        MISS delete_miss, stook_drop_in_free_miss, %esi, 1
        MISS delete_array_miss, stook_drop_in_free_miss, %esi, 2
        MISS delete_sized_miss, stook_drop_in_free_sized_miss, %edx, 1
        MISS delete_array_sized_miss, stook_drop_in_free_sized_miss, %edx, 2
        MISS delete_aligned_miss, stook_drop_in_free_miss, %esi, 3
        MISS delete_array_aligned_miss, stook_drop_in_free_miss, %esi, 4
        MISS new_miss, stook_new_miss, %esi, 1
        MISS new_array_miss, stook_new_miss, %esi, 2
        MISS nothrow_miss, stook_new_nothrow_miss, %edx, 1
        MISS array_nothrow_miss, stook_new_nothrow_miss, %edx, 2
        MISS new_aligned_miss, stook_new_aligned_miss, %edx, 3
        MISS new_array_aligned_miss, stook_new_aligned_miss, %edx, 4
        MISS aligned_nothrow_miss, stook_new_aligned_nothrow_miss, %ecx, 3
        MISS array_aligned_nothrow_miss, stook_new_aligned_nothrow_miss, %ecx, 4

        .text
        ENTRY malloc
        ALLOC stook_malloc_miss, malloc_checked, malloc_swap, malloc_large, malloc_bound
        END malloc
        ALLOC_LARGE malloc_large, stook_malloc_miss, malloc_checked, malloc_swap
        FROM_BOUND malloc_bound, malloc_checked, malloc_sealed
        ALLOC_CHECKED malloc_checked, stook_malloc_miss, malloc_swap
        SWAP_POP malloc_swap, stook_malloc_miss, malloc_sealed
        SEALED_POP malloc_sealed, stook_malloc_miss, 1, malloc_checked

        .hidden stook_hot_object
        ENTRY stook_hot_object
        ALLOC stook_malloc_object, object_checked, stook_malloc_object, stook_malloc_object, \
              object_checked
        END stook_hot_object
        ALLOC_CHECKED object_checked, stook_malloc_object, stook_malloc_object

        ENTRY free
        FREE free_miss, free_bound, free_swap, .Lknown
        END free
        FROM_BOUND free_bound, free_checked, free_sealed
        FREE_CHECKED free_checked, free_miss, free_swap
        SWAP_PUSH free_swap, free_miss, free_sealed
        SEALED_PUSH free_sealed, free_miss, 1, 0, free_checked

        .hidden stook_hot_free_known
        ENTRY stook_hot_free_known
        FIND_AREA
        jmp .Lknown
        END stook_hot_free_known

        ENTRY calloc
        movq %rdi, %rax
        mulq %rsi
        jo stook_drop_in_calloc_miss
        leaq -1(%rax), %rdx
        cmpq $TABLE_MAX, %rdx                   /* 0, too */
        jae stook_drop_in_calloc_miss
        movq %rax, %rcx
        DESCRIBE stook_drop_in_calloc_miss
        LINE %rcx
        POP stook_drop_in_calloc_miss, calloc_empty
        cmpl $CLEAR_MAX, %ecx
        ja 5f
        /* In whole 16 bytes, as classes are; from both ends: few jumps depend on the size. */
        andl $-16, %edx                         /* where the last ones begin */
        pxor %xmm0, %xmm0
        movups %xmm0, (%rax)
        movups %xmm0, (%rax,%rdx)
        cmpl $16, %edx
        jbe 6f
        movups %xmm0, 16(%rax)
        movups %xmm0, -16(%rax,%rdx)
        cmpl $48, %edx
        jbe 6f
        movups %xmm0, 32(%rax)
        movups %xmm0, 48(%rax)
        movups %xmm0, -48(%rax,%rdx)
        movups %xmm0, -32(%rax,%rdx)
6:      ret
5:      movq %rax, %rdi
        xorl %esi, %esi
        movq %rcx, %rdx
        jmp *memset@GOTPCREL(%rip)              /* returns the object */
calloc_empty:
        cmpl $0, stook_malloc_seal_bytes(%rip)
        je stook_drop_in_calloc_miss
        movq %rcx, %rdi
        jmp calloc_sealed
        END calloc
        MISS calloc_sealed_miss, stook_drop_in_calloc_miss, %esi, 1     /* one of so many bytes */
        SEALED_POP calloc_sealed, calloc_sealed_miss, 1, calloc_sealed_miss, 1

        ENTRY aligned_alloc
        ALLOC_ALIGNED %rdi, %rsi, stook_aligned_alloc_miss
        END aligned_alloc

        ENTRY memalign
        ALLOC_ALIGNED %rdi, %rsi, stook_memalign_miss
        END memalign

        ENTRY posix_memalign
        testb $7, %sil                          /* no multiple of a pointer's size */
        jnz stook_posix_memalign_miss
        DESCRIBE stook_posix_memalign_miss
        ALIGNED %rsi, %rdx, stook_posix_memalign_miss
        POP stook_posix_memalign_miss, stook_posix_memalign_miss
        movq %rax, (%rdi)
        xorl %eax, %eax
        ret
        END posix_memalign

        /* The common case is free's; a miss knows the size. */
        ENTRY free_sized
        FREE free_sized_miss, free_sized_bound, free_sized_swap, .Lsized
        END free_sized
        FROM_BOUND free_sized_bound, free_sized_checked, free_sized_sealed
        FREE_CHECKED free_sized_checked, free_sized_miss, free_sized_swap
        SWAP_PUSH free_sized_swap, free_sized_miss, free_sized_sealed
        SEALED_PUSH free_sized_sealed, free_sized_miss, 1, 1, free_sized_checked

        ALIAS cfree, free
        ALIAS free_aligned_sized, free

        ENTRY _Znwm
        ALLOC new_miss, new_checked, new_swap, new_large, new_bound
        END _Znwm
        ALLOC_LARGE new_large, new_miss, new_checked, new_swap
        FROM_BOUND new_bound, new_checked, new_sealed
        ALLOC_CHECKED new_checked, new_miss, new_swap
        SWAP_POP new_swap, new_miss, new_sealed
        SEALED_POP new_sealed, new_miss, 3, new_checked

        ENTRY _Znam
        ALLOC new_array_miss, new_array_checked, new_array_miss, new_array_large, new_array_checked
        END _Znam
        ALLOC_LARGE new_array_large, new_array_miss, new_array_checked, new_array_miss
        ALLOC_CHECKED new_array_checked, new_array_miss, new_array_miss

        ENTRY _ZnwmRKSt9nothrow_t
        ALLOC nothrow_miss, nothrow_checked, nothrow_miss, nothrow_miss, nothrow_checked
        END _ZnwmRKSt9nothrow_t
        ALLOC_CHECKED nothrow_checked, nothrow_miss, nothrow_miss

        ENTRY _ZnamRKSt9nothrow_t
        ALLOC array_nothrow_miss, array_nothrow_checked, array_nothrow_miss, array_nothrow_miss, \
              array_nothrow_checked
        END _ZnamRKSt9nothrow_t
        ALLOC_CHECKED array_nothrow_checked, array_nothrow_miss, array_nothrow_miss

        ENTRY _ZnwmSt11align_val_t
        ALLOC_ALIGNED %rsi, %rdi, new_aligned_miss
        END _ZnwmSt11align_val_t

        ENTRY _ZnamSt11align_val_t
        ALLOC_ALIGNED %rsi, %rdi, new_array_aligned_miss
        END _ZnamSt11align_val_t

        ENTRY _ZnwmSt11align_val_tRKSt9nothrow_t
        ALLOC_ALIGNED %rsi, %rdi, aligned_nothrow_miss
        END _ZnwmSt11align_val_tRKSt9nothrow_t

        ENTRY _ZnamSt11align_val_tRKSt9nothrow_t
        ALLOC_ALIGNED %rsi, %rdi, array_aligned_nothrow_miss
        END _ZnamSt11align_val_tRKSt9nothrow_t

        /* As free, and free_sized. A miss knows which it is: hardening compares pairs. */
        ENTRY _ZdlPv
        FREE delete_miss, delete_bound, delete_swap, .Ldelete
        END _ZdlPv
        FROM_BOUND delete_bound, delete_checked, delete_sealed
        FREE_CHECKED delete_checked, delete_miss, delete_swap
        SWAP_PUSH delete_swap, delete_miss, delete_sealed
        SEALED_PUSH delete_sealed, delete_miss, 3, 0, delete_checked

        ENTRY _ZdaPv
        FREE delete_array_miss, delete_array_bound, delete_array_swap, .Ldelete_array
        END _ZdaPv
        FROM_BOUND delete_array_bound, delete_array_checked, delete_array_sealed
        FREE_CHECKED delete_array_checked, delete_array_miss, delete_array_swap
        SWAP_PUSH delete_array_swap, delete_array_miss, delete_array_sealed
        SEALED_PUSH delete_array_sealed, delete_array_miss, 5, 0, delete_array_checked

        ENTRY _ZdlPvm
        FREE delete_sized_miss, delete_sized_bound, delete_sized_swap, .Ldelete_sized
        END _ZdlPvm
        FROM_BOUND delete_sized_bound, delete_sized_checked, delete_sized_sealed
        FREE_CHECKED delete_sized_checked, delete_sized_miss, delete_sized_swap
        SWAP_PUSH delete_sized_swap, delete_sized_miss, delete_sized_sealed
        SEALED_PUSH delete_sized_sealed, delete_sized_miss, 3, 1, delete_sized_checked

        ENTRY _ZdaPvm
        FREE delete_array_sized_miss, array_sized_bound, array_sized_swap, .Larray_sized
        END _ZdaPvm
        FROM_BOUND array_sized_bound, array_sized_checked, array_sized_sealed
        FREE_CHECKED array_sized_checked, delete_array_sized_miss, array_sized_swap
        SWAP_PUSH array_sized_swap, delete_array_sized_miss, array_sized_sealed
        SEALED_PUSH array_sized_sealed, delete_array_sized_miss, 5, 1, array_sized_checked

        ENTRY _ZdlPvSt11align_val_t
        FREE delete_aligned_miss, aligned_checked, delete_aligned_miss, .Lfree_aligned
        END _ZdlPvSt11align_val_t
        FREE_CHECKED aligned_checked, delete_aligned_miss, delete_aligned_miss

        ENTRY _ZdaPvSt11align_val_t
        FREE delete_array_aligned_miss, array_aligned_checked, delete_array_aligned_miss, \
             .Lfree_array_aligned
        END _ZdaPvSt11align_val_t
        FREE_CHECKED array_aligned_checked, delete_array_aligned_miss, delete_array_aligned_miss

        ALIAS _ZdlPvRKSt9nothrow_t, _ZdlPv
        ALIAS _ZdaPvRKSt9nothrow_t, _ZdaPv
        ALIAS _ZdlPvmSt11align_val_t, _ZdlPvSt11align_val_t
        ALIAS _ZdaPvmSt11align_val_t, _ZdaPvSt11align_val_t
        ALIAS _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdlPvSt11align_val_t
        ALIAS _ZdaPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_t

        .section .note.GNU-stack, "", @progbits
