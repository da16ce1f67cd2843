// aborts: stook: foreign pointer: pointer 0x* (cache victim): no memory of this library
#include <stook/cache.h>

static char somewhere[64];

void misuse(void);
void misuse(void)
{
        stook_cache_free(stook_cache_create("victim", 64, NULL), somewhere);
}
