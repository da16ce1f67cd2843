// aborts: stook: double free: pointer 0x* (cache victim, slab 0x* offset 0): it is free in the spare sheaf of a slot
#include "harden.h"

void misuse(void);
void misuse(void)
{
        free_again_from("it is free in the spare sheaf of a slot");
}
