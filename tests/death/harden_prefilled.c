// aborts: stook: double free: pointer 0x* (cache victim, slab 0x* offset 0): it is free in a prefilled sheaf
#include "harden.h"

void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = victim();
        struct stook_sheaf *sheaf;
        void *objects[OBJECTS];

        for (int i = 0; i < OBJECTS; i++)
                objects[i] = stook_cache_alloc(cache);
        for (int i = 0; i < OBJECTS; i++)
                stook_cache_free(cache, objects[i]);
        sheaf = stook_sheaf_prefill(cache, 0, 3);
        for (int i = 0; sheaf && i < OBJECTS; i++)
                if (!strcmp(stook_watch_where(cache, objects[i]),
                            "it is free in a prefilled sheaf"))
                        stook_cache_free(cache, objects[i]);
}
