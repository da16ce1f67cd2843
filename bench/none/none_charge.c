/*
 * bench/none/none_charge.c - charges in front of the older front end
 *
 * Purpose: the accounted columns of table 1.1. After each allocation the CPU's precharge is lowered
 * by the object's bytes; an empty precharge is filled with 64 pages from the group's counter, a
 * precharge that overflows goes back to it. The object remembers its group. Simpler than the
 * kernel's, and so a stronger rival: one group, no reference counts, no statistics by page, and the
 * group's address lies behind the object instead of in a vector of the slab's.
 * Concurrency: any CPU's precharge will do, so nothing goes wrong when a thread is moved between
 * the look and the change.
 */
#include "none_slot.h"
#include "cache/cache.h"

#define PRECHARGE_FILL (64 * 4096)
#define PRECHARGE_MOST (128 << 10)                  /* as the library's */

static void **owner_of(const struct none_cache *cache, void *object)
{
        return (void **)((char *)object + cache->object_bytes - sizeof(void *));
}

STOOK_INLINE int64_t *precharge_of(const struct none_cache *cache)
{
        uint32_t index = stook_self->ready ? *stook_section_index(stook_self) : 0;

        return &((struct none_slot *)(cache->slots + ((uintptr_t)index << STOOK_SLOT_SHIFT)))
                        ->precharge;
}

static STOOK_NOINLINE void fill(struct none_cache *cache, int64_t *precharge)
{
        __atomic_fetch_add(&cache->charged, PRECHARGE_FILL, __ATOMIC_RELAXED);
        __atomic_fetch_add(precharge, PRECHARGE_FILL, __ATOMIC_RELAXED);
}

static STOOK_NOINLINE void give_back(struct none_cache *cache, int64_t *precharge)
{
        int64_t most = PRECHARGE_MOST / 2;

        __atomic_fetch_sub(precharge, most, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&cache->charged, most, __ATOMIC_RELAXED);
}

STOOK_INLINE void *charge(struct none_cache *cache, void *object)
{
        int64_t bytes = (int64_t)cache->object_bytes, *precharge = precharge_of(cache);

        if (STOOK_UNLIKELY(!object))
                return NULL;
        if (STOOK_UNLIKELY(__atomic_fetch_sub(precharge, bytes, __ATOMIC_RELAXED) < bytes))
                fill(cache, precharge);
        *owner_of(cache, object) = cache;
        return object;
}

STOOK_INLINE void uncharge(struct none_cache *cache, void *object)
{
        void **owner = owner_of(cache, object);
        int64_t bytes = (int64_t)cache->object_bytes, *precharge = precharge_of(cache);

        if (STOOK_UNLIKELY(!*owner))
                return;
        *owner = NULL;
        if (STOOK_UNLIKELY(__atomic_fetch_add(precharge, bytes, __ATOMIC_RELAXED) > PRECHARGE_MOST))
                give_back(cache, precharge);
}

void *none_cas_alloc_charged(struct none_cache *cache)
{
        return charge(cache, none_cas_alloc(cache));
}

void none_cas_free_charged(struct none_cache *cache, void *object)
{
        uncharge(cache, object);
        none_cas_free(cache, object);
}

void *none_rseq_alloc_charged(struct none_cache *cache)
{
        return charge(cache, none_rseq_alloc(cache));
}

void none_rseq_free_charged(struct none_cache *cache, void *object)
{
        uncharge(cache, object);
        none_rseq_free(cache, object);
}
