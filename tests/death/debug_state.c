// aborts: stook: corrupted: pointer 0x* (cache victim, slab 0x* offset 40): the state of the object was overwritten, 16 bytes before its start
//   the object has 24 bytes
#include <string.h>
#include "debug.h"

void misuse(void)
{
        struct stook_cache *cache = victim(STOOK_CACHE_CHECK);
        char *object = stook_cache_alloc(cache);

        memset(object - 16, 1, 16);     /* without red zones only the state shows it */
        stook_cache_free(cache, object);
}
