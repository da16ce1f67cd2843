/*
 * bench/none/none_charge.c - charges in front of the older front end
 *
 * Purpose: the accounted columns of table 1.1. After each allocation the CPU's stock is lowered by the object's bytes;
 * an empty stock is filled with 64 pages from the group's counter, a stock that overflows goes back to it. The object
 * remembers its group. Simpler than the kernel's, and so a stronger rival: one group, no reference counts, no statistics
 * by page, and the group's address lies behind the object instead of in a vector of the slab's.
 * Concurrency: any CPU's stock will do, so nothing goes wrong when a thread is moved between the look and the change.
 */
#include "none_slot.h"
#include "cache/cache.h"

#define STOCK_FILL (64 * 4096)
#define STOCK_MOST (128 << 10)                  /* as the library's */

static void **owner_of(const struct none_cache *cache, void *object)
{
        return (void **)((char *)object + cache->object_bytes - sizeof(void *));
}

STOOK_INLINE int64_t *stock_of(const struct none_cache *cache)
{
        uint32_t index = stook_self->ready ? *stook_slot_index(stook_self) : 0;

        return &((struct none_slot *)(cache->slots + ((uintptr_t)index << STOOK_SLOT_SHIFT)))->stock;
}

static STOOK_NOINLINE void fill(struct none_cache *cache, int64_t *stock)
{
        __atomic_fetch_add(&cache->charged, STOCK_FILL, __ATOMIC_RELAXED);
        __atomic_fetch_add(stock, STOCK_FILL, __ATOMIC_RELAXED);
}

static STOOK_NOINLINE void drain(struct none_cache *cache, int64_t *stock)
{
        int64_t most = STOCK_MOST / 2;

        __atomic_fetch_sub(stock, most, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&cache->charged, most, __ATOMIC_RELAXED);
}

STOOK_INLINE void *charge(struct none_cache *cache, void *object)
{
        int64_t bytes = (int64_t)cache->object_bytes, *stock = stock_of(cache);

        if (STOOK_UNLIKELY(!object))
                return NULL;
        if (STOOK_UNLIKELY(__atomic_fetch_sub(stock, bytes, __ATOMIC_RELAXED) < bytes))
                fill(cache, stock);
        *owner_of(cache, object) = cache;
        return object;
}

STOOK_INLINE void uncharge(struct none_cache *cache, void *object)
{
        void **owner = owner_of(cache, object);
        int64_t bytes = (int64_t)cache->object_bytes, *stock = stock_of(cache);

        if (STOOK_UNLIKELY(!*owner))
                return;
        *owner = NULL;
        if (STOOK_UNLIKELY(__atomic_fetch_add(stock, bytes, __ATOMIC_RELAXED) > STOCK_MOST))
                drain(cache, stock);
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
