// aborts: stook: wrong size: pointer 0x* (cache victim, slab 0x* offset 40): freed with 20 bytes, allocated with 24
//   the object has 24 bytes
#include <stook/malloc.h>
#include "debug.h"

void misuse(void)
{
        stook_free_sized(stook_cache_alloc(victim(STOOK_CACHE_CHECK)), 20);
}
