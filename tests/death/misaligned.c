// aborts: stook: interior pointer: pointer 0x* (cache victim, slab 0x* offset 1): 1 bytes from the start of the object at 0x*
#include <stook/cache.h>

void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = stook_cache_create("victim", 64, NULL);

        stook_cache_free(cache, (char *)stook_cache_alloc(cache) + 1);
}
