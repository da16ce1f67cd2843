// aborts: stook: wrong size: pointer 0x* (cache malloc-large, slab 0x* offset 0): freed with 300000 bytes, allocated with 200000
//   the object has 200000 bytes
#include <stook/malloc.h>

void misuse(void)
{
        stook_free_sized(stook_malloc(200000), 300000);
}
