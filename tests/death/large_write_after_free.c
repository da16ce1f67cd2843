// aborts: stook: write after free: pointer 0x* (cache malloc-large, slab 0x* offset 0): found when the object left the quarantine
//   the object has 200000 bytes
//   at 0x* (7 bytes from its start): expected 6b, found 01
//   0x*:  6b 6b 6b 6b 6b 6b 6b[01]6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkk.kkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
//   0x*:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
#include <stook/malloc.h>

/* The quarantine has room for five of them. */
void misuse(void)
{
        char *object = stook_malloc(200000);

        stook_free(object);
        ((volatile char *)object)[7] = 1;
        for (int i = 0; i < 6; i++)
                stook_free(stook_malloc(200000));
}
