/*
 * Purpose: operator new and delete of C++, all replaceable forms, in C under their mangled names: the drop-in
 * needs no C++ library. (Left to the C++ library they would work, too, by calling malloc: slower by two calls.)
 * Place: the hot paths of malloc/malloc_hot.h; failures go to the next definition (foreign.c).
 * Invariants:
 *  I1 a sized or aligned delete frees by the pointer alone: programs get the size wrong.
 *  I2 a throwing new never returns NULL. An exception of the next definition passes through frames of this file
 *     and of foreign.c, which hold nothing: both are compiled with unwind tables.
 */
#include <stddef.h>
#include "base/compiler.h"
#include "foreign.h"
#include "malloc/malloc.h"
#include "malloc/malloc_hot.h"

void free(void *object);

static STOOK_NOINLINE void *new_miss(size_t size, const char *name)
{
        void *object = stook_malloc_object(size);

        return STOOK_LIKELY(object != NULL) ? object : stook_foreign_new(name, size);
}

static STOOK_NOINLINE void *new_miss_nothrow(size_t size, const void *nothrow, const char *name)
{
        void *object = stook_malloc_object(size);

        return STOOK_LIKELY(object != NULL) ? object : stook_foreign_new_nothrow(name, size, nothrow);
}

#define NEW(symbol)                                                                             \
        void *symbol(size_t size);                                                              \
        STOOK_API void *symbol(size_t size)                                                     \
        {                                                                                       \
                void *object = stook_malloc_hot(size);                                          \
                                                                                                \
                return STOOK_LIKELY(object != NULL) ? object : new_miss(size, #symbol);         \
        }

#define NEW_NOTHROW(symbol)                                                                     \
        void *symbol(size_t size, const void *nothrow);                                         \
        STOOK_API void *symbol(size_t size, const void *nothrow)                                \
        {                                                                                       \
                void *object = stook_malloc_hot(size);                                          \
                                                                                                \
                return STOOK_LIKELY(object != NULL) ? object                                    \
                        : new_miss_nothrow(size, nothrow, #symbol);                             \
        }

#define NEW_ALIGNED(symbol)                                                                     \
        void *symbol(size_t size, size_t align);                                                \
        STOOK_API void *symbol(size_t size, size_t align)                                       \
        {                                                                                       \
                void *object = stook_malloc_aligned(align, size);                               \
                                                                                                \
                return STOOK_LIKELY(object != NULL) ? object                                    \
                        : stook_foreign_new_aligned(#symbol, size, align);                      \
        }

#define NEW_ALIGNED_NOTHROW(symbol)                                                             \
        void *symbol(size_t size, size_t align, const void *nothrow);                           \
        STOOK_API void *symbol(size_t size, size_t align, const void *nothrow)                  \
        {                                                                                       \
                void *object = stook_malloc_aligned(align, size);                               \
                                                                                                \
                return STOOK_LIKELY(object != NULL) ? object                                    \
                        : stook_foreign_new_aligned_nothrow(#symbol, size, align, nothrow);     \
        }

/* size_t is mangled m on every system here. new: nw, new[]: na. */
NEW(_Znwm)
NEW(_Znam)
NEW_NOTHROW(_ZnwmRKSt9nothrow_t)
NEW_NOTHROW(_ZnamRKSt9nothrow_t)
NEW_ALIGNED(_ZnwmSt11align_val_t)
NEW_ALIGNED(_ZnamSt11align_val_t)
NEW_ALIGNED_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t)
NEW_ALIGNED_NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t)

/* Arguments behind the pointer differ by form, and none of them is looked at. */
#define DELETE(symbol, ...)                                                                     \
        void symbol(void *object __VA_OPT__(,) __VA_ARGS__);                                    \
        STOOK_API void symbol(void *object __VA_OPT__(,) __VA_ARGS__)                           \
        {                                                                                       \
                if (STOOK_UNLIKELY(!stook_free_hot(object)))                                    \
                        free(object);                                                           \
        }

#pragma GCC diagnostic ignored "-Wunused-parameter"
DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm, size_t size)
DELETE(_ZdaPvm, size_t size)
DELETE(_ZdlPvSt11align_val_t, size_t align)
DELETE(_ZdaPvSt11align_val_t, size_t align)
DELETE(_ZdlPvmSt11align_val_t, size_t size, size_t align)
DELETE(_ZdaPvmSt11align_val_t, size_t size, size_t align)
DELETE(_ZdlPvRKSt9nothrow_t, const void *nothrow)
DELETE(_ZdaPvRKSt9nothrow_t, const void *nothrow)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, size_t align, const void *nothrow)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, size_t align, const void *nothrow)
