// aborts: stook: pointer to no live object: pointer 0x* (cache victim): a cache that was destroyed before
#include <stook/cache.h>

/* The cache was in use: its sheaves were emptied by the destroy. */
void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = stook_cache_create("victim", 64, NULL);

        stook_cache_free(cache, stook_cache_alloc(cache));
        stook_cache_destroy(cache);
        stook_cache_alloc(cache);
}
