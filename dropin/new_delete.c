/*
 * Purpose: operator new of C++ where the common case does not hold, in C: the drop-in needs no C++
 * library. (Left to the C++ library new would work, too, by calling malloc: slower by two calls.)
 * Every operator delete is free, or free_sized (hot_x86_64.S, hot_aarch64.S).
 * Place: called by the hot paths. Without memory it does what the language says (foreign.c): it
 * runs the new handler, or throws.
 * Invariants:
 *  I1 a sized or aligned delete goes by the pointer alone: programs get the size wrong. Debug mode
 *     F reports one that names another size.
 *  I2 a throwing new never returns NULL. Exceptions pass through frames of this file and of
 *     foreign.c, which hold nothing: both are compiled with unwind tables.
 *  I3 each allocation that fails is seen by the program: memory is asked for once for each run of
 *     the new handler.
 */
#include <stddef.h>
#include "base/compiler.h"
#include "foreign.h"
#include "hot.h"
#include "malloc/malloc.h"

void *stook_new_miss(size_t size)
{
        void *object;

        while (STOOK_UNLIKELY(!(object = stook_malloc_object(size))))
                stook_foreign_no_memory();
        return object;
}

void *stook_new_aligned_miss(size_t size, size_t align)
{
        void *object;

        while (STOOK_UNLIKELY(!(object = stook_malloc_aligned(align, size, 0))))
                stook_foreign_no_memory();
        return object;
}

void *stook_new_nothrow_miss(size_t size, const void *nothrow)
{
        void *object = stook_malloc_object(size);

        return STOOK_LIKELY(object != NULL) ? object : stook_foreign_new_nothrow(size, nothrow);
}

void *stook_new_aligned_nothrow_miss(size_t size, size_t align, const void *nothrow)
{
        void *object = stook_malloc_aligned(align, size, 0);

        return STOOK_LIKELY(object != NULL) ? object
                : stook_foreign_new_aligned_nothrow(size, align, nothrow);
}
