/*
 * Purpose: operator new of C++ where the common case does not hold, in C: the drop-in needs no C++
 * library. (Left to the C++ library new would work, too, by calling malloc: slower by two calls.)
 * Each operator delete is free, or free_sized, with a miss of its own. @by: which operator it is,
 * for hardening's pairs; new and new[] differ in nothing else.
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

static uint64_t made(unsigned by)
{
        return (uint64_t)by << STOOK_HOW_BY_SHIFT;
}

void *stook_new_miss(size_t size, unsigned by)
{
        void *object;

        while (STOOK_UNLIKELY(!(object = stook_malloc_slow(size, made(by)))))
                stook_foreign_no_memory();
        return object;
}

void *stook_new_aligned_miss(size_t size, size_t align, unsigned by)
{
        void *object;

        while (STOOK_UNLIKELY(!(object = stook_malloc_aligned(align, size, made(by)))))
                stook_foreign_no_memory();
        return object;
}

/* What the next definition of the operator returns was made by its throwing new. */
void *stook_new_nothrow_miss(size_t size, const void *nothrow, unsigned by)
{
        void *object = stook_malloc_slow(size, made(by));

        return STOOK_LIKELY(object != NULL) ? object : stook_foreign_new_nothrow(size, nothrow);
}

void *stook_new_aligned_nothrow_miss(size_t size, size_t align, const void *nothrow, unsigned by)
{
        void *object = stook_malloc_aligned(align, size, made(by));

        return STOOK_LIKELY(object != NULL) ? object
                                            : stook_foreign_new_aligned_nothrow(size, align,
                                                                                nothrow);
}
