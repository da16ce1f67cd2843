// aborts: stook: double free: pointer 0x* (cache victim, slab 0x* offset 0): it is free in the main sheaf of a slot
#include "harden.h"

void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = victim();
        void *object = stook_cache_alloc(cache), *other = stook_cache_alloc(cache);

        stook_cache_free(cache, object);
        stook_cache_free(cache, other);
        stook_cache_free(cache, object);
}
