// aborts: stook: double free: pointer 0x* (cache malloc-4096, slab 0x* offset 0): it is free in the main sheaf of a slot
#include "harden.h"

void misuse(void);
void misuse(void)
{
        void *object = stook_aligned_alloc(4096, 4000);

        stook_free(object);
        stook_free(object);
}
