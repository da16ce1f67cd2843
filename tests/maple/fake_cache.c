#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stook/cache.h>
#include <stook/sheaf.h>
#include <stook/rcu.h>
#include "fake_cache.h"

struct stook_cache {
        size_t size, align;
};

struct stook_sheaf {
        size_t n, capacity;
        void  *objects[];
};

size_t fake_live, fake_waiting, fake_taken;
long fake_fail_in, fake_requests;
bool fake_no_rcu, fake_rcu_full;
static void *waiting[1 << 20];
static struct stook_cache the_cache;

static bool refused(void)
{
        fake_requests++;
        if (!fake_fail_in)
                return false;
        if (fake_fail_in > 1) {
                fake_fail_in--;
                return false;
        }
        return true;
}

/*
 * libc's own words about free memory go before the object: what was freed reads as poison, all of
 * it.
 */
static void *make(void)
{
        char *object = aligned_alloc(the_cache.align, the_cache.size + the_cache.align);

        if (!object)
                abort();
        object += the_cache.align;
        memset(object, 0xa5, the_cache.size);
        fake_live++;
        return object;
}

static void drop(void *object)
{
        memset(object, 0x5a, the_cache.size);
        free((char *)object - the_cache.align);
        fake_live--;
}

struct stook_cache *stook_cache_create(const char *name, size_t size,
                                       const struct stook_cache_args *args)
{
        if (strcmp(name, "maple_node") || size != 256 || args->align != 256 ||
            args->args_size != sizeof(*args))
                abort();
        if (refused())
                return NULL;
        the_cache = (struct stook_cache){ size, args->align };
        return &the_cache;
}

int stook_cache_destroy(struct stook_cache *cache)
{
        (void)cache;
        return 0;
}

void *stook_cache_alloc(struct stook_cache *cache)
{
        (void)cache;
        if (refused())
                return NULL;
        fake_taken++;
        return make();
}

void stook_cache_free(struct stook_cache *cache, void *object)
{
        (void)cache;
        drop(object);
}

int stook_cache_alloc_bulk(struct stook_cache *cache, unsigned flags, size_t n, void **objects)
{
        (void)cache;
        if (flags || !n)
                abort();
        if (refused()) {
                memset(objects, 0xee, n * sizeof(*objects));
                return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++)
                objects[i] = make();
        fake_taken += n;
        return 0;
}

struct stook_sheaf *stook_sheaf_prefill(struct stook_cache *cache, unsigned flags, size_t n)
{
        struct stook_sheaf *sheaf;

        (void)cache;
        if (!n || flags)
                abort();
        if (refused()) {
                errno = ENOMEM;
                return NULL;
        }
        sheaf = malloc(sizeof(*sheaf) + n * sizeof(void *));
        if (!sheaf)
                abort();
        sheaf->capacity = n;
        for (sheaf->n = 0; sheaf->n < n; sheaf->n++)
                sheaf->objects[sheaf->n] = make();
        return sheaf;
}

int stook_sheaf_refill(struct stook_cache *cache, unsigned flags, struct stook_sheaf **sheaf,
                       size_t n)
{
        struct stook_sheaf *more;

        if ((*sheaf)->n >= n)
                return 0;
        more = stook_sheaf_prefill(cache, flags, n);
        if (!more)
                return -ENOMEM;
        stook_sheaf_return(cache, *sheaf);
        *sheaf = more;
        return 0;
}

size_t stook_sheaf_available(const struct stook_sheaf *sheaf)
{
        return sheaf->n;
}

void *stook_sheaf_alloc(struct stook_cache *cache, struct stook_sheaf *sheaf)
{
        (void)cache;
        if (!sheaf || !sheaf->n)
                abort();                        /* more was taken than was planned */
        fake_taken++;
        return sheaf->objects[--sheaf->n];
}

void stook_sheaf_return(struct stook_cache *cache, struct stook_sheaf *sheaf)
{
        (void)cache;
        if (!sheaf)
                return;
        while (sheaf->n)
                drop(sheaf->objects[--sheaf->n]);
        free(sheaf);
}

int stook_cache_free_rcu(struct stook_cache *cache, void *object)
{
        (void)cache;
        if (fake_no_rcu)
                return -ENOTSUP;
        if (fake_rcu_full || fake_waiting == sizeof(waiting) / sizeof(*waiting))
                return -EAGAIN;
        waiting[fake_waiting++] = object;
        return 0;
}

void stook_cache_rcu_barrier(struct stook_cache *cache)
{
        (void)cache;
        fake_grace();
        fake_rcu_full = false;
}

void fake_grace(void)
{
        while (fake_waiting)
                drop(waiting[--fake_waiting]);
}
