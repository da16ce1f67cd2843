// aborts: stook: wrong cache: pointer 0x* (cache victim, slab 0x* offset 0): it belongs to cache owner
#include <stook/cache.h>

void misuse(void);
void misuse(void)
{
        struct stook_cache *owner = stook_cache_create("owner", 64, NULL);
        struct stook_cache *victim = stook_cache_create("victim", 64, NULL);
        void *objects[3] = { stook_cache_alloc(victim), stook_cache_alloc(owner),
                             stook_cache_alloc(victim) };

        stook_cache_free_bulk(victim, 3, objects);
}
