/*
 * Purpose: malloc and free of the drop-in where the common case holds, by the inlined hot paths in C.
 * Place: misses go to stook_malloc_miss and stook_drop_in_free_miss, which look at everything again.
 */
#include "base/compiler.h"
#include "hot.h"
#include "malloc/malloc.h"
#include "malloc/malloc_hot.h"

STOOK_API void *malloc(size_t size)
{
        void *object = stook_malloc_hot(size);

        return STOOK_LIKELY(object != NULL) ? object : stook_malloc_miss(size);
}

STOOK_API void free(void *object)
{
        if (STOOK_UNLIKELY(!stook_free_hot(object)))
                stook_drop_in_free_miss(object);
}
