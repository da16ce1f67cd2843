/*
 * Purpose: see cache_account.h; and stook_cache_alloc_group.
 * Concurrency: any thread, any instruction. The word belongs to whoever has the object.
 */
#include <errno.h>
#include <string.h>

#include "cache/cache_account.h"
#include "life/life.h"
#include "report/report.h"
#include "slot/slot_fast.h"

static uint64_t *word_of(const struct stook_cache *cache, const void *object)
{
        return (uint64_t *)((char *)(uintptr_t)object + stook_account_offset(cache->object_size));
}

static void mark(const struct stook_cache *cache, const void *object, uint16_t id)
{
        *word_of(cache, object) = (uint64_t)(uintptr_t)object << 16 | id;
}

static STOOK_COLD void report_overwritten(const struct stook_cache *cache, const void *object)
{
        stook_report_fault(STOOK_FAULT_CORRUPT, object, cache->name, NULL, 0,
                           "the group behind the object was overwritten; its charge is lost");
}

/* The group the object is charged to, 0 if none; from now on none. */
static uint16_t unmark(const struct stook_cache *cache, const void *object)
{
        uint64_t word = *word_of(cache, object);

        if (STOOK_UNLIKELY(word >> 16 != (uint64_t)(uintptr_t)object << 16 >> 16)) {
                report_overwritten(cache, object);
                word = 0;
        }
        mark(cache, object, 0);
        return (uint16_t)word;
}

static STOOK_NOINLINE void *get_slow(struct stook_cache *cache)
{
        stook_fork_check();
        return stook_slot_alloc_miss(&cache->front);
}

static STOOK_NOINLINE void put_slow(struct stook_cache *cache, void *object)
{
        stook_fork_check();
        stook_slot_free_miss(&cache->front, object, stook_cache_free_double);
}

static void put(struct stook_cache *cache, void *object)
{
        if (STOOK_UNLIKELY(!stook_slot_push(cache->front.offset, object)))
                put_slow(cache, object);
}

void *stook_account_alloc(struct stook_cache *cache, uint16_t id, unsigned how)
{
        void *object;

        if (id && STOOK_UNLIKELY(!stook_group_charge(id, cache->slabs.slot_size, how)))
                return NULL;
        object = stook_slot_pop(cache->front.offset);
        if (STOOK_UNLIKELY(!object)) {
                object = get_slow(cache);
                if (!object) {
                        if (id)
                                stook_group_uncharge(id, cache->slabs.slot_size);
                        return NULL;
                }
        }
        mark(cache, object, id);
        return object;
}

void stook_account_free(struct stook_cache *cache, void *object)
{
        uint16_t id = unmark(cache, object);

        if (id)
                stook_group_uncharge(id, cache->slabs.slot_size);
        put(cache, object);
}

bool stook_account_charge(struct stook_cache *cache, size_t n, void *const *objects, uint16_t id, unsigned how)
{
        if (id && !stook_group_charge(id, n * cache->slabs.slot_size, how))
                return false;
        for (size_t i = 0; i < n; i++)
                mark(cache, objects[i], id);
        return true;
}

void stook_account_uncharge(struct stook_cache *cache, size_t n, void *const *objects)
{
        uint16_t charged = 0;
        size_t run = 0;

        /* Objects of one group lie together as a rule: one uncharge for each run. */
        for (size_t i = 0; i < n; i++) {
                uint16_t id = unmark(cache, objects[i]);

                if (id != charged && run) {
                        if (charged)
                                stook_group_uncharge(charged, run * cache->slabs.slot_size);
                        run = 0;
                }
                charged = id;
                run++;
        }
        if (run && charged)
                stook_group_uncharge(charged, run * cache->slabs.slot_size);
}

STOOK_API void *stook_cache_alloc_group(struct stook_cache *cache, unsigned flags, struct stook_group *group)
{
        void *object;

        if (!cache || (flags & ~(STOOK_ZERO | STOOK_NOWAIT)) || !stook_cache_is_accounted(cache) ||
            ((flags & STOOK_ZERO) && cache->slabs.ctor)) {
                errno = EINVAL;
                return NULL;
        }
        object = stook_account_alloc(cache, group ? group->id : 0, flags & STOOK_NOWAIT ? STOOK_CHARGE_QUIET : 0);
        if (!object)
                errno = ENOMEM;
        else if (flags & STOOK_ZERO)
                memset(object, 0, stook_cache_object_size(cache));
        return object;
}
