// aborts: stook: pointer to no live object: pointer 0x* (cache victim)
#include <stook/cache.h>

/* The object was freed before the destroy, which would have failed else. */
void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = stook_cache_create("victim", 64, NULL);
        void *object = stook_cache_alloc(cache);

        stook_cache_free(cache, object);
        stook_cache_destroy(cache);
        stook_cache_free(cache, object);
}
