// aborts: stook: wrong cache: pointer 0x* (cache other, slab 0x* offset 72): it belongs to cache victim
//   the object has 24 bytes
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(FZPQ), *other = stook_cache_create("other", 24, NULL);

        stook_cache_free(other, stook_cache_alloc(cache));
}
