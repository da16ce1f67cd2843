/*
 * Purpose: see cache_account.h.
 */
#include "cache/cache_account.h"

#include "report/report.h"

static STOOK_COLD void report_overwritten(const struct stook_cache *cache, const void *object)
{
        stook_report_fault(STOOK_FAULT_CORRUPT, object, stook_cache_name(cache), NULL, 0,
                           "the group behind the object was overwritten; its charge is lost");
}

uint16_t stook_account_unmark(const struct stook_cache *cache, const void *object)
{
        uint64_t id = *stook_account_word(cache, object) ^ stook_account_tag(object);

        if (STOOK_UNLIKELY(id > UINT16_MAX)) {
                report_overwritten(cache, object);
                id = 0;
        }
        stook_account_mark(cache, object, 0);
        return (uint16_t)id;
}

bool stook_account_charge(struct stook_cache *cache, size_t n, void *const *objects, uint16_t id,
                          unsigned how)
{
        if (id && !stook_group_charge(id, n * cache->slabs.stride, how))
                return false;
        for (size_t i = 0; i < n; i++)
                stook_account_mark(cache, objects[i], id);
        return true;
}

void stook_account_uncharge(struct stook_cache *cache, size_t n, void *const *objects)
{
        uint16_t charged = 0;
        size_t run = 0;

        /* Objects of one group lie together as a rule: one uncharge for each run. */
        for (size_t i = 0; i < n; i++) {
                uint16_t id = stook_account_unmark(cache, objects[i]);

                if (id != charged && run) {
                        if (charged)
                                stook_group_uncharge(charged, run * cache->slabs.stride);
                        run = 0;
                }
                charged = id;
                run++;
        }
        if (run && charged)
                stook_group_uncharge(charged, run * cache->slabs.stride);
}
