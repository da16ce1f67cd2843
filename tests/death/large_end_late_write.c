// goes on: stook: write after free: pointer 0x* (cache malloc-large, slab 0x* offset 0): found by a check of all objects
//   the object has 200000 bytes
//   at 0x* (199999 bytes from its start): expected a5, found 01
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b[01] kkkkkkkkkkkkkkk.
//   0x*:  bb bb bb bb bb bb bb bb bb bb bb bb bb bb bb bb  ................
//   0x*:  bb bb bb bb bb bb bb bb bb bb bb bb bb bb bb bb  ................
//   0x*:  bb bb bb bb bb bb bb bb bb bb bb bb bb bb bb bb  ................
#include <stdlib.h>
#include <stook/malloc.h>

/* It is in the quarantine when the program ends. */
void misuse(void)
{
        char *object = stook_malloc(200000);

        stook_free(object);
        ((volatile char *)object)[199999] = 1;
        exit(0);
}
