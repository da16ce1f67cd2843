// goes on: stook: overrun: pointer 0x* (cache malloc-112, slab 0x* offset 160): found by a check of all objects
//   the object has 112 bytes, 100 of them requested
//   at 0x* (100 bytes from its start): expected cc, found 01
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b[01]cc cc cc cc cc cc cc cc cc cc cc  kkkk............
//   0x*:  cc cc cc cc cc cc cc cc cc cc cc cc cc cc cc cc  ................
#include <stdlib.h>
#include <stook/malloc.h>

/* It is not freed: the check at exit finds it. */
void misuse(void)
{
        volatile char *object = stook_malloc(100);      /* else the store is dead */

        object[100] = 1;
        exit(0);
}
