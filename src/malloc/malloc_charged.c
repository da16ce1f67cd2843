/*
 * Purpose: malloc for threads in an accounting group: the same classes once more, from accounted
 * caches. The last 8 bytes of an object's stride name the group.
 * Place: called by malloc_object.c; calls cache (cache_slow.h) and large.c.
 *
 * The hot paths know nothing of groups. Once there is one, the table they look classes up in points
 * to a line where no cache is. So every malloc misses and enters malloc_object.c, which looks for
 * the group. Frees need no such thing: the page of an object names its cache, and an accounted
 * cache sends them to the slow call (cache_account.h).
 * Concurrency: M1: the release that stores a class's cache pairs with the acquire of a thread that
 *  makes the first group, too, and finds it there.
 */
#include <errno.h>

#include "cache/cache_account.h"
#include "malloc/large.h"
#include "malloc/malloc.h"

/* Const once stook_groups_exist; two threads may each make the first group, so set only once. */
static struct stook_cache *charged_class[STOOK_CLASSES] STOOK_MOSTLY_UNUSED;

/* If another thread was faster, the cache that this one made is not used. False: no memory. */
static bool has_charged(unsigned class)
{
        struct stook_cache *none = NULL, *made;

        if (__atomic_load_n(&charged_class[class], __ATOMIC_ACQUIRE))                   /* M1 */
                return true;
        made = stook_class_create(class, STOOK_CLASS_CHARGED);
        if (!made)
                return __atomic_load_n(&charged_class[class], __ATOMIC_ACQUIRE) != NULL;
        __atomic_compare_exchange_n(&charged_class[class], &none, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);                                  /* M1 */
        return true;
}

int stook_malloc_charge(void)
{
        if (!stook_registry_may_wait(STOOK_REFUSED("stook_group_create, for the first group,")))
                return -EDEADLK;
        for (unsigned class = 0; class < STOOK_CLASSES; class++) {
                if (!has_charged(class))
                        return -ENOMEM;
        }
        /* Any order will do: a class that is still found there is one of malloc's. */
        for (unsigned i = 0; i < STOOK_ARRAY_SIZE(stook_class_line); i++)
                __atomic_store_n(&stook_class_line[i], stook_slots_first_line(STOOK_PRECHARGE_LINE),
                                 __ATOMIC_RELAXED);
        return 0;
}

struct stook_cache *stook_charged_class_for(size_t size)
{
        return charged_class[stook_class_for(size + STOOK_ACCOUNT_BYTES)];
}

void *stook_malloc_charged(size_t size, uint16_t group, uint64_t how)
{
        if (STOOK_UNLIKELY(size > STOOK_CLASS_MAX - STOOK_ACCOUNT_BYTES))
                return stook_large_alloc(1, size, how);
        return stook_alloc_slow(stook_charged_class_for(size), stook_how_with_group(how, group));
}
