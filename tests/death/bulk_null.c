// aborts: stook: foreign pointer (cache victim): NULL in a bulk free
#include <stook/cache.h>

void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = stook_cache_create("victim", 64, NULL);
        void *objects[2] = { stook_cache_alloc(cache), NULL };

        stook_cache_free_bulk(cache, 2, objects);
}
