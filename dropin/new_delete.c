/*
 * Purpose: operator new of C++ where the common case does not hold, in C: the drop-in needs no C++
 * library. (Left to the C++ library new would work, too, by calling malloc: slower by two calls.)
 * Every operator delete is free, or free_sized (hot_x86_64.S, hot_aarch64.S).
 * Place: called by the hot paths; failures go to the next definition (foreign.c).
 * Invariants:
 *  I1 a sized or aligned delete goes by the pointer alone: programs get the size wrong. Debug mode
 *     F reports one that names another size.
 *  I2 a throwing new never returns NULL. An exception of the next definition passes through frames
 *     of this file and of foreign.c, which hold nothing: both are compiled with unwind tables.
 */
#include <stddef.h>
#include "base/compiler.h"
#include "foreign.h"
#include "hot.h"
#include "malloc/malloc.h"

#define MISS(function, symbol)                                                                  \
        void *function(size_t size)                                                             \
        {                                                                                       \
                void *object = stook_malloc_object(size);                                       \
                                                                                                \
                return STOOK_LIKELY(object != NULL) ? object : stook_foreign_new(symbol, size); \
        }

#define MISS_NOTHROW(function, symbol)                                                          \
        void *function(size_t size, const void *nothrow)                                        \
        {                                                                                       \
                void *object = stook_malloc_object(size);                                       \
                                                                                                \
                return STOOK_LIKELY(object != NULL) ? object                                    \
                        : stook_foreign_new_nothrow(symbol, size, nothrow);                     \
        }

#define MISS_ALIGNED(function, symbol)                                                          \
        void *function(size_t size, size_t align)                                               \
        {                                                                                       \
                void *object = stook_malloc_aligned(align, size, 0);                            \
                                                                                                \
                return STOOK_LIKELY(object != NULL) ? object                                    \
                        : stook_foreign_new_aligned(symbol, size, align);                       \
        }

#define MISS_ALIGNED_NOTHROW(function, symbol)                                                  \
        void *function(size_t size, size_t align, const void *nothrow)                          \
        {                                                                                       \
                void *object = stook_malloc_aligned(align, size, 0);                            \
                                                                                                \
                return STOOK_LIKELY(object != NULL) ? object                                    \
                        : stook_foreign_new_aligned_nothrow(symbol, size, align, nothrow);      \
        }

/* size_t is mangled m on every system here. new: nw, new[]: na. */
MISS(stook_new_miss, "_Znwm")
MISS(stook_new_array_miss, "_Znam")
MISS_NOTHROW(stook_new_nothrow_miss, "_ZnwmRKSt9nothrow_t")
MISS_NOTHROW(stook_new_array_nothrow_miss, "_ZnamRKSt9nothrow_t")
MISS_ALIGNED(stook_new_aligned_miss, "_ZnwmSt11align_val_t")
MISS_ALIGNED(stook_new_array_aligned_miss, "_ZnamSt11align_val_t")
MISS_ALIGNED_NOTHROW(stook_new_aligned_nothrow_miss, "_ZnwmSt11align_val_tRKSt9nothrow_t")
MISS_ALIGNED_NOTHROW(stook_new_array_aligned_nothrow_miss, "_ZnamSt11align_val_tRKSt9nothrow_t")
