// goes on: stook: objects left (cache victim): 1 still allocated at destroy
// stook: objects left: pointer 0x* (cache victim, slab 0x* offset 72)
//   the object has 24 bytes
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(FZPQ);

        stook_cache_alloc(cache);
        stook_cache_destroy(cache);
}
