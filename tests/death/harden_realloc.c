// aborts: stook: double free: pointer 0x* (cache malloc-64, slab 0x* offset 0): it is free in the main sheaf of a slot
#include "harden.h"

void misuse(void);
void misuse(void)
{
        void *object = stook_malloc(50), *moved = stook_realloc(object, 5000);

        if (moved && moved != object)
                stook_free(object);
}
