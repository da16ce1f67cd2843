/*
 * Purpose: operator new of C++ where the common case does not hold, in C: the drop-in needs no C++
 * library. (Left to the C++ library new would work, too, by calling malloc: slower by two calls.)
 * Every operator delete is free, or free_sized, and on x86-64 a copy of it (hot_x86_64.S).
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
#include "cache/cache_watch.h"
#include "foreign.h"
#include "hot.h"
#include "malloc/malloc.h"

/* Hardening keeps which of them made the object (stook_malloc_pairs). */
static inline void *made(void *object, enum stook_entry_point by)
{
        if (STOOK_UNLIKELY(stook_malloc_pairs) && STOOK_DROP_IN_TELLS && object)
                stook_watch_duties.made(object, by);
        return object;
}

static inline void *make(size_t size, enum stook_entry_point by)
{
        void *object;

        while (STOOK_UNLIKELY(!(object = stook_malloc_object(size))))
                stook_foreign_no_memory();
        return made(object, by);
}

static inline void *make_aligned(size_t size, size_t align, enum stook_entry_point by)
{
        void *object;

        while (STOOK_UNLIKELY(!(object = stook_malloc_aligned(align, size, 0))))
                stook_foreign_no_memory();
        return made(object, by);
}

/* What the next definition of the operator returns was made by it, in the end by throwing new. */
static inline void *make_nothrow(size_t size, const void *nothrow, enum stook_entry_point by)
{
        void *object = stook_malloc_object(size);

        return STOOK_LIKELY(object != NULL)
                       ? made(object, by)
                       : made(stook_foreign_new_nothrow(size, nothrow), by);
}

static inline void *make_aligned_nothrow(size_t size, size_t align, const void *nothrow,
                                         enum stook_entry_point by)
{
        void *object = stook_malloc_aligned(align, size, 0);

        return STOOK_LIKELY(object != NULL)
                       ? made(object, by)
                       : made(stook_foreign_new_aligned_nothrow(size, align, nothrow), by);
}

void *stook_new_miss(size_t size)
{
        return make(size, STOOK_BY_NEW);
}

void *stook_new_aligned_miss(size_t size, size_t align)
{
        return make_aligned(size, align, STOOK_BY_NEW_ALIGNED);
}

void *stook_new_nothrow_miss(size_t size, const void *nothrow)
{
        return make_nothrow(size, nothrow, STOOK_BY_NEW);
}

void *stook_new_aligned_nothrow_miss(size_t size, size_t align, const void *nothrow)
{
        return make_aligned_nothrow(size, align, nothrow, STOOK_BY_NEW_ALIGNED);
}

void *stook_new_array_miss(size_t size)
{
        return make(size, STOOK_BY_NEW_ARRAY);
}

void *stook_new_array_aligned_miss(size_t size, size_t align)
{
        return make_aligned(size, align, STOOK_BY_NEW_ARRAY_ALIGNED);
}

void *stook_new_array_nothrow_miss(size_t size, const void *nothrow)
{
        return make_nothrow(size, nothrow, STOOK_BY_NEW_ARRAY);
}

void *stook_new_array_aligned_nothrow_miss(size_t size, size_t align, const void *nothrow)
{
        return make_aligned_nothrow(size, align, nothrow, STOOK_BY_NEW_ARRAY_ALIGNED);
}
