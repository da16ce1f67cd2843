// aborts: stook: double free: pointer 0x* (cache victim, slab 0x* offset 0)
#include <stook/cache.h>

void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = stook_cache_create("victim", 64, NULL);
        void *object = stook_cache_alloc(cache);

        stook_cache_free(cache, object);
        stook_cache_free(cache, object);
}
