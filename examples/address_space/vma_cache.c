/* Areas from an object cache, freed when the faults that may still look at them have left. */
#include <stook/cache.h>
#include <stook/rcu.h>
#include "address_space.h"

static struct stook_cache *areas;

struct area *vma_new(void)
{
        struct stook_cache *made = __atomic_load_n(&areas, __ATOMIC_ACQUIRE), *none = NULL;

        if (!made) {
                made = stook_cache_create("area", sizeof(struct area),
                                          STOOK_CACHE_ARGS(.flags = STOOK_CACHE_RCU));
                if (!made)
                        return NULL;
                if (!__atomic_compare_exchange_n(&areas, &none, made, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE)) {
                        stook_cache_destroy(made);
                        made = none;
                }
        }
        return stook_cache_alloc(made);
}

void vma_delete(struct area *area)
{
        stook_cache_free_rcu(areas, area);      /* cannot fail: STOOK_CACHE_RCU */
}
