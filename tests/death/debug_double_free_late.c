// aborts: stook: double free: pointer 0x* (cache victim, slab 0x* offset 72): it is in the quarantine
//   the object has 24 bytes
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(FZPQ);
        void *object = stook_cache_alloc(cache);

        stook_cache_free(cache, object);
        stook_cache_free(cache, object);
}
