// goes on: stook: overrun: pointer 0x* (cache victim, slab 0x* offset 72): found when the object was freed
//   the object has 24 bytes
//   at 0x* (24 bytes from its start): expected cc, found 01
//   0x*:                          cc cc cc cc cc cc cc cc          ........
//   0x*:  cc cc cc cc cc cc cc cc 00 00 00 00 00 00 00 00  ................
//   0x*:  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
//   0x*: [01]cc cc cc cc cc cc cc cc cc cc cc cc cc cc cc  ................
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(STOOK_CACHE_RED_ZONE);
        char *object = stook_cache_alloc(cache);

        object[24] = 1;
        stook_cache_free(cache, object);
        for (int i = 0; i < 1000; i++)
                if (stook_cache_alloc(cache) == object)
                        __builtin_trap();
}
