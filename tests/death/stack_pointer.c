// aborts: stook: foreign pointer: pointer 0x* (cache victim): no memory of this library
#include <stook/cache.h>

void misuse(void);
void misuse(void)
{
        char here[64];

        stook_cache_free(stook_cache_create("victim", 64, NULL), here);
}
