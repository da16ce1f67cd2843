// aborts: stook: double free: pointer 0x* (cache victim, slab 0x* offset 3136): it is free in its slab already, or was never handed out
#include <stook/cache.h>

void misuse(void);
void misuse(void)
{
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_NO_SHEAVES };
        struct stook_cache *cache = stook_cache_create("victim", 64, &args);

        stook_cache_free(cache, (char *)stook_cache_alloc(cache) + 49 * 64);
}
