// aborts: stook: overrun: pointer 0x* (cache victim, slab 0x* offset 72): found when the object was freed
//   the object has 24 bytes
//   at 0x* (24 bytes from its start): expected cc, found 00
//   0x*:                          cc cc cc cc cc cc cc cc          ........
//   0x*:  cc cc cc cc cc cc cc cc 00 00 00 00 00 00 00 00  ................
//   0x*:  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
//   0x*: [00]00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
#include <string.h>
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(FZPQ);
        char *object = stook_cache_alloc(cache);

        /* The red zone, and the state of the object behind it. */
        memset(object, 0, 24 + 16 + 32);
        stook_cache_free(cache, object);
}
