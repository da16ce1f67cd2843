/*
 * Purpose: malloc for threads in an accounting group: the same classes once more, from accounted caches, in whose
 * slots the last 8 bytes name the group.
 * Place: called by malloc_object.c; calls cache (cache_account.h) and large.c.
 *
 * The hot paths know nothing of groups. Once there is one, the table they look classes up in points to a line where
 * no cache is, so that every malloc misses and comes to malloc_object.c, which asks. Frees need no such thing: an
 * object's page names its cache, and an accounted one sends them here (cache_account.h).
 */
#include "cache/cache_account.h"
#include "life/life.h"
#include "malloc/large.h"
#include "malloc/malloc.h"

static struct stook_cache *charged_class[STOOK_CLASSES];        /* const once stook_groups_exist */

bool stook_malloc_charge(void)
{
        for (unsigned class = 0; class < STOOK_CLASSES; class++) {
                if (!charged_class[class])
                        charged_class[class] = stook_class_create(class, true);
                if (!charged_class[class])
                        return false;
        }
        /* Any order will do: a class that is still found there is one of malloc's. */
        for (unsigned i = 0; i < STOOK_ARRAY_SIZE(stook_class_line); i++)
                __atomic_store_n(&stook_class_line[i], stook_slots_first_line(STOOK_STOCK_LINE), __ATOMIC_RELAXED);
        return true;
}

void *stook_malloc_charged(size_t size, uint16_t id)
{
        if (STOOK_UNLIKELY(size > STOOK_CLASS_MAX - STOOK_ACCOUNT_BYTES))
                return stook_large_alloc(1, size, false);
        return stook_account_alloc(charged_class[stook_class_for(size + STOOK_ACCOUNT_BYTES)], id, 0);
}
