/* See inlined.h. */
#include <stook/inline.h>

#include "unit/group/inlined.h"

void *inlined_alloc(struct stook_cache *cache)
{
        return stook_cache_alloc_inline(cache);
}

void inlined_free(struct stook_cache *cache, void *object)
{
        stook_cache_free_inline(cache, object);
}
