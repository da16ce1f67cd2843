// aborts: stook: interior pointer: pointer 0x* (cache victim, slab 0x* offset 80): 8 bytes from the start of the object at 0x*
//   the object has 24 bytes
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(FZPQ);

        stook_cache_free(cache, (char *)stook_cache_alloc(cache) + 8);
}
