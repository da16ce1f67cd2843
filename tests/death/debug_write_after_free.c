// aborts: stook: write after free: pointer 0x* (cache victim, slab 0x* offset 40): found when the object was to be allocated
//   the object has 24 bytes
//   at 0x* (3 bytes from its start): expected 6b, found 78
//   0x*:                          6b 6b 6b[78]6b 6b 6b 6b          kkkxkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b a5  kkkkkkkkkkkkkkk.
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(STOOK_CACHE_POISON);
        char *object = stook_cache_alloc(cache);

        stook_cache_free(cache, object);
        object[3] = 'x';
        stook_cache_alloc(cache);
}
