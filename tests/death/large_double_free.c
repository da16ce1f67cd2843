// aborts: stook: double free: pointer 0x* (cache malloc-large, slab 0x* offset 0): it is in the quarantine
//   the object has 200000 bytes
#include <stook/malloc.h>

void misuse(void)
{
        char *object = stook_malloc(200000);

        stook_free(object);
        stook_free(object);
}
