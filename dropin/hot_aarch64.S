/*
 * Purpose: the drop-in's calls where the common case holds, in assembly: the sections of
 * <stook/section.h> with what malloc/malloc_hot.h does around them. What is said in hot_x86_64.S
 * holds here: which calls, where misses go, and the invariants.
 * Direct sections are glibc's, as there. Differences:
 *  - The area and the bound are two parts of one word, which a call loads once, before its section.
 *    The index is found by the area, and the slot by the index. So the slot's lines cannot be
 *    loaded before the word, although aarch64 may load in any order (src/direct/direct.c M1).
 *  - Before the start that word is 0. Linkers have no value for it that would do no harm: ld and
 *    gold refuse R_AARCH64_TLS_TPREL64 in data. An indirect function's "address" is that of a jump
 *    to it in a static program that is not relocated, and gold's is wrong everywhere. So allocating
 *    calls compare sizes with a word that is 0, too: all sizes go to the checked section then. A
 *    free misses before the start, because no address is in the range.
 *  - What the calls look at stands at a known distance from one register, x8: each other address
 *    takes two instructions.
 *  - No swap stands behind an empty or a full main sheaf: they are misses.
 *  - The guess of the top object is neither asked nor stored.
 * Registers: x0 to x3 are arguments and stay as they are up to the commit; an object is in x9, for
 * x0 is one of them; x12 is the line in slot 0 that a section works on, x8 is stook_class_line, x7
 * the word of direct sections, x6 the word for sizes, x17 the thread pointer and then the area.
 * Label 4, which each macro DESCRIBE makes, is where a miss goes, in a section or before it: a
 * conditional branch must reach it, and the function behind it may lie farther away.
 */
#include <features.h>                   /* __GLIBC__ */
#define READY      0                    /* <stook/layout.h> */
#define RSEQ_CS    8
#define MM_CID     24
#define SLOT_SHIFT 19
#define OBJECTS    32
#define BOUND      8                    /* of `bound` in a sheaf, as on x86-64 */
#define TABLE_MAX  16384                /* STOOK_CLASS_TABLE_MAX */
#define ALIGNED_MAX 4096                /* STOOK_CLASS_ALIGNED_MAX */
#define CLASS_MAX  131072               /* STOOK_CLASS_MAX */
#define BY_CLASS   8200                 /* 8 * STOOK_CLASS_LINE_LARGE */
#define CLEAR_MAX  128                  /* calloc clears so much itself; arbitrary, as on x86-64 */
#define SIGNATURE  0xd428bc00           /* brk #0x45e0 */
#define CLASSES    72                   /* STOOK_CLASSES */
#define POP_ONE    0xffff
#define POPPABLE   0x8000ffff           /* STOOK_SHEAF_POPPABLE */
#define RANGE      -64                  /* of stook_range from stook_class_line */
#define SLOTS      -40                  /* of stook_direct: direct/direct.h */
#define ALL_READY  -32                  /* and behind it SIZES */
#define BOUND_AT   48                   /* STOOK_DIRECT_BOUND_SHIFT */

        .hidden stook_sections
        .hidden stook_class_of_large
        .hidden stook_shapes
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
 * Behind the descriptors of the sections, less than 4 KiB from each of them: malloc/malloc.h,
 * pages/pagemap.h and direct/direct.h. A call loads the entries of the range and slot 0 at once.
 */
        .section .data.rel.stook_hot, "aw"
        .subsection 1
        .globl stook_range, stook_direct, stook_class_line
        .hidden stook_range, stook_direct, stook_class_line
        .type stook_range, %object
        .type stook_direct, %object
        .type stook_class_line, %object
        .balign 64
stook_range:
        .zero 24
        .size stook_range, . - stook_range
stook_direct:
        .quad 0, 0, 0
        .quad (TABLE_MAX + 1) << 16 | POP_ONE
        .size stook_direct, . - stook_direct
        .balign 64
stook_class_line:
        .zero BY_CLASS + 8 * CLASSES
        .size stook_class_line, . - stook_class_line

/* x8 = stook_class_line. */
.macro BASE
        adrp x8, stook_class_line
        add x8, x8, #:lo12:stook_class_line
.endm

/* A section from label 1 to label 2 that goes to \miss when aborted; its descriptor is label 3. */
.macro DESCRIBE miss
        .pushsection .data.rel.stook_hot, "aw"
        .balign 32
3:      .long 0, 0
        .quad 1f, 2f - 1f, 4f
        .popsection
        .subsection 1
        .long SIGNATURE
4:      b \miss
        .previous
.endm

/*
 * Behind BASE and DESCRIBE: x15 = bytes from slot 0 to the slot whose index the kernel shows now. A
 * miss if it is not ready, or the index is not at its fixed place: stook_sections.area is 0 then,
 * and the record's no_index is read. Uses x9 to x11, x16, x17.
 */
.macro SLOT
        mrs x9, tpidr_el0
        adrp x10, :gottprel:stook_thread
        ldr x10, [x10, #:gottprel_lo12:stook_thread]
        adrp x11, stook_sections
        ldr x11, [x11, #:lo12:stook_sections]
        add x9, x9, x10
        ldr w16, [x9, #READY]           /* before the area: hot_x86_64.S */
        add x17, x9, x11
        sub x15, x8, #stook_class_line - 3b
        str x15, [x17, #RSEQ_CS]
1:      ldr w15, [x17, #MM_CID]
        cmp w15, w16
        b.hs 4b
        lsl x15, x15, #SLOT_SHIFT
.endm

/*
 * Behind DESCRIBE, with x7, x8 and the thread pointer in x17: as SLOT, of a direct section where
 * there may be one. An index that is not below the bound of all threads goes to \checked: other
 * registers are as they were.
 */
.macro FIND_SLOT checked
#ifdef __GLIBC__
        sub x15, x8, #stook_class_line - 3b
        add x17, x17, w7, sxtw          /* the area */
        str x15, [x17, #RSEQ_CS]
1:      ldr w15, [x17, #MM_CID]
        cmp x15, x7, lsr #BOUND_AT
        b.hs \checked
        lsl x15, x15, #SLOT_SHIFT
#else
        SLOT
#endif
.endm

/* \name: where a call of entry point \by misses: hot_x86_64.h. */
.macro MISS name, to, argument, by
        .type \name, %function
\name:
        .cfi_startproc
        mov \argument, #\by
        b \to
        .cfi_endproc
        .size \name, . - \name
.endm

.macro ENTRY name
        .globl \name
        .type \name, %function
        .p2align 6
\name:
        .cfi_startproc
        hint #34                        /* bti c */
.endm

.macro END name
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

/* Behind BASE: x12 = the line of the class for \bytes, at most TABLE_MAX; they may be in x12. */
.macro LINE bytes
        add x12, \bytes, #15
        lsr x12, x12, #4
        ldr x12, [x8, x12, lsl #3]
.endm

/* Behind BASE: x12 = the line of the class for \bytes above TABLE_MAX. Uses x11. */
.macro LINE_LARGE bytes
        cmp \bytes, #CLASS_MAX
        b.hi 4f
        add x12, \bytes, #63
        adrp x11, stook_class_of_large
        add x11, x11, #:lo12:stook_class_of_large
        lsr x12, x12, #6
        ldrb w12, [x11, x12]
        add w12, w12, #BY_CLASS / 8
        ldr x12, [x8, x12, lsl #3]
.endm

/*
 * x12 = the line for \size bytes at a multiple of \align: malloc_miss.c. The rounded size is 0,
 * which misses, for size 0, for alignment 0, and where it overflows; as a multiple of the alignment
 * it is above ALIGNED_MAX if that is above a page. x8 as behind BASE. Uses x9, x10.
 */
.macro ALIGNED align, size
        sub x9, \align, #1
        tst x9, \align
        b.ne 4f                         /* no power of two */
        add x12, x9, \size
        bic x12, x12, x9
        sub x10, x12, #1
        cmp x10, #ALIGNED_MAX
        b.hs 4f
        BASE
        LINE x12
.endm

/*
 * x9 = an object from the line x12 of the slot x15; a miss where main has none or is marked. In a
 * direct section x6 has what a pop adds to the word. Uses x13 to x16.
 */
.macro TAKE kind
        ldr x14, [x15, x12]             /* main */
        ldr x15, [x14]                  /* its word */
        ands w13, w15, #POPPABLE
        b.le 4b                         /* no object, or the mark, which is the sign */
        add x16, x14, x13, lsl #3
        ldr x9, [x16, #OBJECTS - 8]
.ifc \kind, direct
        add x15, x15, w6, uxth
.else
        add x15, x15, #16, lsl #12      /* one pop more, ... */
        sub x15, x15, #1                /* ... one object less */
.endif
        str x15, [x14]
2:
.endm

/* Behind BASE: the same, checked. Arguments stay as they are for \miss. Uses x10, x11, x17, too. */
.macro POP miss
        DESCRIBE \miss
        SLOT
        TAKE checked
.endm

/* \large: where sizes above the table go; none: they miss. */
.macro ALLOC miss, checked, large
        BASE
#ifdef __GLIBC__
        mrs x17, tpidr_el0
        ldp x7, x6, [x8, #ALL_READY]
        cmp x0, x6, lsr #16             /* 0 where there is no direct section: all sizes go */
.ifb \large
        b.hs \checked
.else
        b.hs \large
.endif
        LINE x0
        DESCRIBE \miss
        FIND_SLOT .L\checked\()_line
        TAKE direct
#else
        cmp x0, #TABLE_MAX
.ifb \large
        b.hi 4f
.else
        b.hi \large
.endif
        LINE x0
        POP \miss
#endif
        mov x0, x9
        ret
.endm

/* Behind ALLOC: its registers. */
.macro ALLOC_LARGE name, miss, checked
        .type \name, %function
        .p2align 6
\name:
        .cfi_startproc
#ifdef __GLIBC__
        cbz x6, \checked
        LINE_LARGE x0
        DESCRIBE \miss
        FIND_SLOT .L\checked\()_line
        TAKE direct
#else
        LINE_LARGE x0
        POP \miss
#endif
        mov x0, x9
        ret
        .cfi_endproc
        .size \name, . - \name
.endm

/* Behind both, at .L\name\()_line: x12 = the line. At \name, behind BASE: any size. */
.macro ALLOC_CHECKED name, miss, large
#ifdef __GLIBC__
        .type \name, %function
        .p2align 6
\name:
        .cfi_startproc
        cmp x0, #TABLE_MAX
.ifb \large
        b.hi 4f
.else
        b.ls 5f
        LINE_LARGE x0
        b .L\name\()_line
5:
.endif
        LINE x0
.L\name\()_line:
        POP \miss
        mov x0, x9
        ret
        .cfi_endproc
        .size \name, . - \name
#endif
.endm

.macro ALLOC_ALIGNED align, size, miss
        ALIGNED \align, \size
        POP \miss
        mov x0, x9
        ret
.endm

/* x0 onto main of the line x12 of the slot x15; a miss where it has no room. */
.macro FREE_PUSH
        ldr x14, [x15, x12]             /* main */
        ldr x15, [x14]                  /* its word */
        and x13, x15, #0xffff
        ldr w16, [x14, #BOUND]
        cmp w13, w16
        b.hs 4b
        add x16, x14, x13, lsl #3
        ldr x17, [x16, #OBJECTS - 8]
        cmp x17, x0
        b.eq 4b                         /* free already */
        str x0, [x16, #OBJECTS]
        add x15, x15, #1
        str x15, [x14]
2:      ret
.endm

/* What FREE needs behind \known: x7, x8, x12 and x17. */
.macro FREE_BEGIN
        BASE
#ifdef __GLIBC__
        mrs x17, tpidr_el0
        ldr x7, [x8, #ALL_READY]
#endif
.endm

/*
 * x0 goes onto main of its cache. x1 stays as it is for \miss. \known, behind FREE_BEGIN and with
 * slot 0 in x12: x0 and the cache's index * 8 in x2 have been looked at.
 *
 * An object is allocated after the start, and after its cache's line was filled. The thread that
 * frees it has it from there. So the loads of the range, the entry, the shape and slot 0 find what
 * was stored then.
 */
.macro FREE miss, checked, known
        FREE_BEGIN
        ldp x10, x11, [x8, #RANGE]
        ldp x9, x12, [x8, #RANGE + 16]  /* the entries; slot 0 */
        sub x10, x0, x10
        cmp x10, x11
        b.hs 4f                         /* NULL and foreign pointers, too */
        lsr x10, x10, #12
        ldr x10, [x9, x10, lsl #3]      /* the entry */
        adrp x11, stook_shapes
        add x11, x11, #:lo12:stook_shapes
        lsr x2, x10, #48                /* cache index * 8: bits 48 to 50 are zero. 0: full */
        add x11, x11, x2, lsl #1
        add w10, w0, w10, lsl #12
        and w10, w10, #0x7ffff          /* offset in the slab */
        ldp x13, x14, [x11]
        mul x15, x10, x13
        cmp x15, x14
        b.hs 4f                         /* no object starts there */
\known:
        add x12, x12, x2, lsl #3        /* a line is 64 bytes */
        DESCRIBE \miss
        FIND_SLOT \checked
        FREE_PUSH
.endm

/* Behind it: x0, x8, x12. */
.macro FREE_CHECKED name, miss
#ifdef __GLIBC__
        .type \name, %function
        .p2align 6
\name:
        .cfi_startproc
        DESCRIBE \miss
        SLOT
        FREE_PUSH
        .cfi_endproc
        .size \name, . - \name
#endif
.endm

        /* enum stook_entry_point; an aligned new and an aligned delete are kinds of their own. */
        .text
        MISS free_miss, stook_drop_in_free_miss, w1, 0
        MISS free_sized_miss, stook_drop_in_free_sized_miss, w2, 0
        MISS delete_miss, stook_drop_in_free_miss, w1, 1
        MISS delete_array_miss, stook_drop_in_free_miss, w1, 2
        MISS delete_sized_miss, stook_drop_in_free_sized_miss, w2, 1
        MISS delete_array_sized_miss, stook_drop_in_free_sized_miss, w2, 2
        MISS delete_aligned_miss, stook_drop_in_free_miss, w1, 3
        MISS delete_array_aligned_miss, stook_drop_in_free_miss, w1, 4
        MISS new_miss, stook_new_miss, w1, 1
        MISS new_array_miss, stook_new_miss, w1, 2
        MISS nothrow_miss, stook_new_nothrow_miss, w2, 1
        MISS array_nothrow_miss, stook_new_nothrow_miss, w2, 2
        MISS new_aligned_miss, stook_new_aligned_miss, w2, 3
        MISS new_array_aligned_miss, stook_new_aligned_miss, w2, 4
        MISS aligned_nothrow_miss, stook_new_aligned_nothrow_miss, w3, 3
        MISS array_aligned_nothrow_miss, stook_new_aligned_nothrow_miss, w3, 4

        .text
        ENTRY malloc
        ALLOC stook_malloc_miss, malloc_checked, malloc_large
        END malloc
        ALLOC_LARGE malloc_large, stook_malloc_miss, malloc_checked
        ALLOC_CHECKED malloc_checked, stook_malloc_miss, large

        .hidden stook_hot_object
        ENTRY stook_hot_object
        ALLOC stook_malloc_object, object_checked
        END stook_hot_object
        ALLOC_CHECKED object_checked, stook_malloc_object

        ENTRY free
        FREE free_miss, free_checked, .Lknown
        END free
        FREE_CHECKED free_checked, free_miss

        .hidden stook_hot_free_known
        ENTRY stook_hot_free_known
        FREE_BEGIN
        ldr x12, [x8, #SLOTS]
        b .Lknown
        END stook_hot_free_known

        ENTRY calloc
        umulh x9, x0, x1
        cbnz x9, 4f
        mul x2, x0, x1
        sub x3, x2, #1
        cmp x3, #TABLE_MAX              /* 0, too */
        b.hs 4f
        BASE
        LINE x2
        POP stook_drop_in_calloc_miss
        mov x0, x9
        cmp x2, #CLEAR_MAX
        b.hi 5f
        /* In whole 16 bytes, as classes are; from both ends: few jumps depend on the size. */
        and x3, x3, #-16                /* where the last ones begin */
        movi v0.2d, #0
        add x1, x0, x3
        str q0, [x0]
        str q0, [x1]
        cmp x3, #16
        b.ls 6f
        str q0, [x0, #16]
        stur q0, [x1, #-16]
        cmp x3, #48
        b.ls 6f
        stp q0, q0, [x0, #32]
        stp q0, q0, [x1, #-48]
6:      ret
5:      mov w1, #0
        b memset                        /* returns the object */
        END calloc

        ENTRY aligned_alloc
        ALLOC_ALIGNED x0, x1, stook_aligned_alloc_miss
        END aligned_alloc

        ENTRY memalign
        ALLOC_ALIGNED x0, x1, stook_memalign_miss
        END memalign

        ENTRY posix_memalign
        tst x1, #7                      /* no multiple of a pointer's size */
        b.ne 4f
        ALIGNED x1, x2
        POP stook_posix_memalign_miss
        str x9, [x0]
        mov w0, #0
        ret
        END posix_memalign

        ENTRY free_sized
        FREE free_sized_miss, free_sized_checked, .Lsized
        END free_sized
        FREE_CHECKED free_sized_checked, free_sized_miss

        ALIAS cfree, free
        ALIAS free_aligned_sized, free

        ENTRY _Znwm
        ALLOC new_miss, new_checked, new_large
        END _Znwm
        ALLOC_LARGE new_large, new_miss, new_checked
        ALLOC_CHECKED new_checked, new_miss, large

        ENTRY _Znam
        ALLOC new_array_miss, new_array_checked, new_array_large
        END _Znam
        ALLOC_LARGE new_array_large, new_array_miss, new_array_checked
        ALLOC_CHECKED new_array_checked, new_array_miss, large

        ENTRY _ZnwmRKSt9nothrow_t
        ALLOC nothrow_miss, nothrow_checked
        END _ZnwmRKSt9nothrow_t
        ALLOC_CHECKED nothrow_checked, nothrow_miss

        ENTRY _ZnamRKSt9nothrow_t
        ALLOC array_nothrow_miss, array_nothrow_checked
        END _ZnamRKSt9nothrow_t
        ALLOC_CHECKED array_nothrow_checked, array_nothrow_miss

        ENTRY _ZnwmSt11align_val_t
        ALLOC_ALIGNED x1, x0, new_aligned_miss
        END _ZnwmSt11align_val_t

        ENTRY _ZnamSt11align_val_t
        ALLOC_ALIGNED x1, x0, new_array_aligned_miss
        END _ZnamSt11align_val_t

        ENTRY _ZnwmSt11align_val_tRKSt9nothrow_t
        ALLOC_ALIGNED x1, x0, aligned_nothrow_miss
        END _ZnwmSt11align_val_tRKSt9nothrow_t

        ENTRY _ZnamSt11align_val_tRKSt9nothrow_t
        ALLOC_ALIGNED x1, x0, array_aligned_nothrow_miss
        END _ZnamSt11align_val_tRKSt9nothrow_t

        /* As free, and free_sized. A miss knows which it is: hardening compares pairs. */
        ENTRY _ZdlPv
        FREE delete_miss, delete_checked, .Ldelete
        END _ZdlPv
        FREE_CHECKED delete_checked, delete_miss

        ENTRY _ZdaPv
        FREE delete_array_miss, delete_array_checked, .Ldelete_array
        END _ZdaPv
        FREE_CHECKED delete_array_checked, delete_array_miss

        ENTRY _ZdlPvm
        FREE delete_sized_miss, delete_sized_checked, .Ldelete_sized
        END _ZdlPvm
        FREE_CHECKED delete_sized_checked, delete_sized_miss

        ENTRY _ZdaPvm
        FREE delete_array_sized_miss, array_sized_checked, .Larray_sized
        END _ZdaPvm
        FREE_CHECKED array_sized_checked, delete_array_sized_miss

        ENTRY _ZdlPvSt11align_val_t
        FREE delete_aligned_miss, aligned_checked, .Laligned
        END _ZdlPvSt11align_val_t
        FREE_CHECKED aligned_checked, delete_aligned_miss

        ENTRY _ZdaPvSt11align_val_t
        FREE delete_array_aligned_miss, array_aligned_checked, .Larray_aligned
        END _ZdaPvSt11align_val_t
        FREE_CHECKED array_aligned_checked, delete_array_aligned_miss

        ALIAS _ZdlPvRKSt9nothrow_t, _ZdlPv
        ALIAS _ZdaPvRKSt9nothrow_t, _ZdaPv
        ALIAS _ZdlPvmSt11align_val_t, _ZdlPvSt11align_val_t
        ALIAS _ZdaPvmSt11align_val_t, _ZdaPvSt11align_val_t
        ALIAS _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdlPvSt11align_val_t
        ALIAS _ZdaPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_t

        .section .note.GNU-stack, "", %progbits
