// goes on: stook: objects left (cache victim): 2 still allocated at destroy
// stook: objects left: pointer 0x* (cache victim, slab 0x* offset 0)
// stook: objects left: pointer 0x* (cache victim, slab 0x* offset 64)
#include <errno.h>
#include <stdlib.h>
#include <stook/cache.h>

void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = stook_cache_create("victim", 64, NULL);

        if (!stook_cache_alloc(cache) || !stook_cache_alloc(cache) ||
            stook_cache_destroy(cache) != -EBUSY)
                abort();
}
