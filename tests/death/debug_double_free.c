// aborts: stook: double free: pointer 0x* (cache victim, slab 0x* offset 40): it is free in its slab already, or was never handed out
//   the object has 24 bytes
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(STOOK_CACHE_CHECK);
        void *object = stook_cache_alloc(cache), *other = stook_cache_alloc(cache);

        stook_cache_free(cache, object);
        stook_cache_free(cache, other);
        stook_cache_free(cache, object);
}
