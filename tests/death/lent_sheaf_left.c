// goes on: stook: objects left (cache victim): 1 prefilled sheaf not returned at destroy, 63 objects in it
// stook: objects left (cache victim): 2 still allocated at destroy
// stook: objects left: pointer 0x* (cache victim, slab 0x* offset 0)
// stook: objects left: pointer 0x* (cache victim, slab 0x* offset 512)
#include <errno.h>
#include <stdlib.h>
#include <stook/sheaf.h>

/*
 * The report counts objects in a sheaf that is still lent apart from objects that were not freed.
 */
void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = stook_cache_create("victim", 64, NULL);
        struct stook_sheaf *sheaf;

        if (!stook_cache_alloc(cache))
                abort();
        sheaf = stook_sheaf_prefill(cache, 0, 4);
        if (!sheaf || !stook_sheaf_alloc(cache, sheaf) || stook_cache_destroy(cache) != -EBUSY)
                abort();
}
