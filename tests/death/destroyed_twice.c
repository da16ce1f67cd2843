// aborts: stook: double free: pointer 0x* (cache victim): a cache that was destroyed before
#include <stook/cache.h>

/*
 * Accounted: such a cache has two indices. Given back twice, one of them went to every later cache.
 */
void misuse(void);
void misuse(void)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_CACHE_ACCOUNT };
        struct stook_cache *cache = stook_cache_create("victim", 64, &args);

        stook_cache_destroy(cache);
        stook_cache_destroy(cache);
}
