// aborts: stook: underrun: pointer 0x* (cache victim, slab 0x* offset 72): found when the object was freed
//   the object has 24 bytes
//   at 0x* (2 bytes before its start): expected cc, found 01
//   0x*:                          cc cc cc cc cc cc cc cc          ........
//   0x*:  cc cc cc cc cc cc[01]01 01 01 01 01 01 01 01 01  ................
//   0x*:  01 01 01 01 01 01 01 01 01 01 01 01 01 01 01 01  ................
//   0x*:  cc cc cc cc cc cc cc cc cc cc cc cc cc cc cc cc  ................
#include <string.h>
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(FZPQ);
        char *object = stook_cache_alloc(cache);

        memset(object - 2, 1, 26);
        stook_cache_free(cache, object);
}
