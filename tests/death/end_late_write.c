// goes on: stook: write after free: pointer 0x* (cache malloc-112, slab 0x* offset 160): found by a check of all objects
//   the object has 112 bytes, 100 of them requested
//   at 0x* (99 bytes from its start): expected 6b, found 01
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b[01]6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b a5  kkk.kkkkkkkkkkk.
//   0x*:  bb bb bb bb bb bb bb bb bb bb bb bb bb bb bb bb  ................
#include <stdlib.h>
#include <stook/malloc.h>

/* It is in the quarantine when the program ends. */
void misuse(void)
{
        char *object = stook_malloc(100);

        stook_free(object);
        ((volatile char *)object)[99] = 1;
        exit(0);
}
