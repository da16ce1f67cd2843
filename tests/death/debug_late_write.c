// aborts: stook: write after free: pointer 0x* (cache victim, slab 0x* offset 72): found when the object left the quarantine
//   the object has 24 bytes
//   at 0x* (23 bytes from its start): expected a5, found 78
//   0x*:                          bb bb bb bb bb bb bb bb          ........
//   0x*:  bb bb bb bb bb bb bb bb 6b 6b 6b 6b 6b 6b 6b 6b  ........kkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b[78] kkkkkkkkkkkkkkkx
//   0x*:  bb bb bb bb bb bb bb bb bb bb bb bb bb bb bb bb  ................
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(FZPQ);
        char *object = stook_cache_alloc(cache);

        stook_cache_free(cache, object);
        stook_cache_free(cache, stook_cache_alloc(cache));
        object[23] = 'x';
        stook_cache_destroy(cache);
}
