/*
 * Purpose: objects with a stamp: their holder, kind, size and address, sealed by a hash.
 *
 * A stamp is on an object from right after its allocation until right before its free. So an object
 * with a valid stamp of its kind must not be handed out. An object that was given to two threads
 * does not have the stamp of its holder, nor does one that another thread wrote to. Objects that
 * wait for readers keep their stamp, because readers look at it. The test does not look at them
 * when they are handed out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

struct stamp {
        uint64_t seal, serial;
        uint32_t size;
        uint16_t owner;
        uint8_t  kind, parent;
};

static const struct { const char *name; size_t size; uint64_t flags; } kinds[CACHES] = {
        [PLAIN_32]        = { "soak-32", 32, 0 },
        [PLAIN_200]       = { "soak-200", 200, 0 },
        [PLAIN_1000]      = { "soak-1000", 1000, 0 },
        [PLAIN_5000]      = { "soak-5000", 5000, 0 },
        [RANDOM_64]       = { "soak-random", 64, STOOK_CACHE_RANDOM_ORDER |
                              STOOK_CACHE_HWCACHE_ALIGN },
        [NO_SHEAVES_128]  = { "soak-no-sheaves", 128, STOOK_CACHE_NO_SHEAVES },
        [ACCOUNTED_96]    = { "soak-accounted", 96, STOOK_CACHE_ACCOUNT },
        [RCU_48]          = { "soak-rcu", 48, 0 },
        [RCU_CHAINED_160] = { "soak-rcu-chained", 160, STOOK_CACHE_RCU | STOOK_CACHE_NO_SHEAVES },
};

struct stook_cache *caches[CACHES];
static uint64_t serials;                /* atomic */

struct stook_cache *make_cache(unsigned kind)
{
        struct stook_cache_args args = {
                .args_size = sizeof(args), .flags = kinds[kind].flags,
                /* Only caches with the process's RCU share sheaves. */
                .rcu = kind == RCU_CHAINED_160 ? &soak_rcu : NULL,
        };
        struct stook_cache *cache = stook_cache_create(kinds[kind].name, kinds[kind].size, &args);

        if (!cache)
                fail("cannot create %s", kinds[kind].name);
        return cache;
}

void make_caches(void)
{
        for (unsigned kind = 0; kind < CACHES; kind++)
                caches[kind] = make_cache(kind);
}

static uint64_t seal_of(const void *object, const struct stamp *stamp)
{
        uint64_t hash = (uintptr_t)object ^ stamp->serial << 20 ^ (uint64_t)stamp->size << 40;

        hash ^= (uint64_t)stamp->owner << 8 ^ stamp->kind ^ (uint64_t)stamp->parent << 56;
        return draw(&hash) | 1;
}

static bool sealed(const void *object)
{
        const struct stamp *stamp = object;

        return stamp->seal == seal_of(object, stamp);
}

/* The last word: what its holder would overwrite first beyond the size. */
static uint64_t *tail_of(void *object, size_t size)
{
        return (uint64_t *)((char *)object + (size - 8) / 8 * 8);
}

static void put_stamp(void *object, unsigned owner, unsigned kind, size_t size, unsigned parent)
{
        struct stamp *stamp = object;

        if (kind < FIRST_RCU || kind == MALLOC) {
                if (sealed(object) && stamp->kind == kind)
                        fail("handed out twice: %p to %u, held by %u, kind %u, serial %llu", object,
                             owner, stamp->owner, kind, (unsigned long long)stamp->serial);
        }
        stamp->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
        stamp->size = (uint32_t)size;
        stamp->owner = (uint16_t)owner;
        stamp->kind = (uint8_t)kind;
        stamp->parent = (uint8_t)parent;
        if (size >= sizeof(*stamp) + 8)
                *tail_of(object, size) = stamp->serial;
        stamp->seal = seal_of(object, stamp);
}

uint64_t check(const void *object, unsigned owner)
{
        const struct stamp *stamp = object;

        if (!sealed(object))
                fail("wrong stamp: %p of %u: seal %llx, serial %llu, owner %u, kind %u, size %u",
                     object, owner, (unsigned long long)stamp->seal,
                     (unsigned long long)stamp->serial, stamp->owner, stamp->kind, stamp->size);
        if (owner && stamp->owner != owner)
                fail("wrong owner: %p of %u is stamped by %u, kind %u", object, owner, stamp->owner,
                     stamp->kind);
        if (stamp->size >= sizeof(*stamp) + 8 &&
            *tail_of((void *)(uintptr_t)object, stamp->size) != stamp->serial)
                fail("wrong end: %p of %u, kind %u, size %u", object, stamp->owner, stamp->kind,
                     stamp->size);
        return stamp->serial;
}

unsigned kind_of(const void *object)
{
        return ((const struct stamp *)object)->kind;
}

bool is_for_readers(const void *object)
{
        return kind_of(object) >= FIRST_RCU && kind_of(object) < CACHES;
}

unsigned parent_of(const void *object)
{
        return ((const struct stamp *)object)->parent;
}

size_t size_of(const void *object)
{
        return ((const struct stamp *)object)->size;
}

/* Mostly small; now and then a span of its own. */
static size_t malloc_size(uint64_t random)
{
        if (random % 500 == 0)
                return (128 << 10) + random / 500 % (300 << 10);
        return 24 + random / 500 % (random % 8 ? 500 : 20000);
}

static void *from_sheaf(struct stook_cache *cache, uint64_t random)
{
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 1 + random % 80);
        void *object;

        if (!sheaf)
                return NULL;
        if (random % 3 == 0 && stook_sheaf_refill(cache, 0, &sheaf, random % 100)) {
                stook_sheaf_return(cache, sheaf);
                return NULL;
        }
        object = stook_sheaf_alloc(cache, sheaf);
        stook_sheaf_return(cache, sheaf);
        return object;
}

static void *from_bulk(struct stook_cache *cache, uint64_t random)
{
        void *objects[64];
        size_t n = 1 + random % 64;

        if (stook_cache_alloc_bulk(cache, 0, n, objects))
                return NULL;
        if (n > 1)
                stook_cache_free_bulk(random % 2 ? cache : NULL, n - 1, objects + 1);
        return objects[0];
}

static void check_zeros(const char *object, size_t size)
{
        for (size_t i = 0; i < size; i++)
                if (object[i])
                        fail("zeroed object %p has %d at %zu", (const void *)object, object[i], i);
}

void *get(unsigned kind, unsigned owner, enum how how, uint64_t random)
{
        size_t size = kind == MALLOC ? malloc_size(random) : kinds[kind].size;
        struct stook_cache *cache = kind == MALLOC ? NULL : caches[kind];
        void *object;

        if (kind == MALLOC && how == NOLOCK)
                object = stook_malloc_nolock(size);
        else if (kind == MALLOC)
                object = how == ZEROED ? stook_calloc(1, size) : stook_malloc(size);
        else if (how == NOLOCK)
                object = stook_cache_alloc_nolock(cache);
        else if (how == ZEROED)
                object = stook_cache_zalloc(cache);
        else if (how == SHEAF)
                object = from_sheaf(cache, random);
        else if (how == BULK)
                object = from_bulk(cache, random);
        else
                object = stook_cache_alloc(cache);
        if (!object) {
                count(&done.refusals);
                return NULL;
        }
        if (how == ZEROED)
                check_zeros(object, size);
        put_stamp(object, owner, kind, size, PARENTS);
        return object;
}

void *get_of_group(struct stook_group *group, unsigned parent, unsigned owner)
{
        void *object = stook_cache_alloc_group(caches[ACCOUNTED_96], 0, group);

        if (object)
                put_stamp(object, owner, ACCOUNTED_96, kinds[ACCOUNTED_96].size, parent);
        else
                count(&done.refusals);
        return object;
}

void give(void *object, unsigned owner, enum how how)
{
        struct stamp *stamp = object;
        unsigned kind;

        check(object, owner);
        kind = stamp->kind;
        stamp->seal = 0;
        if (kind == MALLOC && how == NOLOCK)
                stook_free_nolock(object);
        else if (kind == MALLOC)
                stook_free(object);
        else if (how == NOLOCK)
                stook_cache_free_nolock(caches[kind], object);
        else if (how == BULK)
                stook_cache_free_bulk(caches[kind], 1, &object);
        else
                stook_cache_free(caches[kind], object);
}

void give_rcu(void *object, bool nolock)
{
        struct stook_cache *cache = caches[kind_of(object)];
        int error = -EAGAIN;

        check(object, 0);
        if (nolock)
                error = stook_cache_free_rcu_nolock(cache, object);
        if (!nolock || error == -EAGAIN)
                error = stook_cache_free_rcu(cache, object);
        /* No place for it: this thread waits itself. No reader has seen a handler's objects. */
        if (error == -EAGAIN) {
                count(&done.refusals);
                if (!nolock)
                        soak_rcu_synchronize();
                stook_cache_free(cache, object);
        } else if (error) {
                fail("free_rcu of %p: %d", object, error);
        }
        count(&done.rcu_frees);
}

void *resize(void *object, unsigned owner, uint64_t random)
{
        struct stamp *stamp = object;
        size_t size = malloc_size(random);
        void *moved;

        check(object, owner);
        stamp->seal = 0;
        moved = stook_realloc(object, size);
        if (!moved) {
                count(&done.refusals);
                moved = object;
                size = stamp->size;
        }
        stamp = moved;
        stamp->seal = 0;
        put_stamp(moved, owner, MALLOC, size, PARENTS);
        return moved;
}
